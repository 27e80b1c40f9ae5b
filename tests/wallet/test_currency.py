"""Currencies have the decimals that the standard, or the installation, gives them."""

from __future__ import annotations

import pytest

from casino_brag.wallet.currency import DECLARED, exponent


@pytest.mark.parametrize(
    ("code", "decimals"),
    [("GBP", 2), ("EUR", 2), ("JPY", 0), ("KRW", 0), ("KWD", 3), ("TND", 3), ("CLF", 4), ("XBT", 8)],
)
def test_a_currency_has_its_decimals(code: str, decimals: int) -> None:
    assert exponent(code) == decimals


@pytest.mark.parametrize(
    "code", ["", "gbp", "GB", "GBPX", "ZZZ", "XXX", "XAU", "XTS", " GBP", "GBP\n", "ＧＢＰ"]
)
def test_what_is_no_currency_has_none(code: str) -> None:
    assert exponent(code) is None


def test_declared_codes_are_none_of_the_standards_own() -> None:
    for code, decimals in DECLARED.items():
        assert code.isupper()
        assert 0 <= decimals <= 18
