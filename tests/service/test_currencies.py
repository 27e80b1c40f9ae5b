"""Currencies: played to the minor unit whatever their decimals, and refused when nobody knows them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.running import Operator, RunningService, code_of


@pytest.mark.parametrize(("currency", "exponent"), [("JPY", 0), ("GBP", 2), ("KWD", 3), ("XBT", 8)])
def test_a_round_is_played_in_a_currency_of_any_decimals(
    service: RunningService, operator: Operator, currency: str, exponent: int
) -> None:
    player = operator.player(currency=currency)
    session = player.get("/v1/session").json()
    assert (session["currency"], session["exponent"]) == (currency, exponent)
    assert session["balance_minor"] == 1_000 * 10**exponent
    limits = session["limits"]["three-card-brag"]
    stakes = (limits["ante"]["min_minor"], limits["pair_bonus"]["min_minor"])
    opened = player.open(*stakes).json()
    assert opened["currency"] == currency
    assert opened["balance_minor"] == session["balance_minor"] - sum(stakes)
    end = player.decide(opened["round_id"], "play").json()
    assert end["balance_minor"] == session["balance_minor"] + end["net_minor"] == player.balance_minor()

    assert operator.deposit(currency, 12_345, currency).json()["balance_minor"] == 12_345
    held = operator.send("GET", f"/v1/operator/players/{currency}/balance?currency={currency}").json()
    assert (held["exponent"], held["balance_minor"]) == (exponent, 12_345)
    assert service.broken_laws() == {}


@pytest.mark.parametrize(
    "currency", ["ZZZ", "gbp", "", "GB", "GBP ", "GBP\n", "XAU", "XXX", None, 826, "G" * 40]
)
def test_an_unknown_currency_is_refused(operator: Operator, currency: Any) -> None:
    assert code_of(operator.open_session(currency=currency)) == "invalid"
    answer = operator.deposit("nobody", 100, currency)
    assert code_of(answer) == "invalid"
    assert list(answer.json()["errors"]) == ["currency"]


def test_a_currency_without_limits_is_named_in_the_refusal(operator: Operator) -> None:
    player = operator.player(currency="CHF")
    assert player.get("/v1/session").json()["limits"] == {}
    answer = player.open(100)
    assert (answer.status_code, code_of(answer)) == (422, "stake_out_of_limits")
    assert list(answer.json()["errors"]) == ["currency"]
    assert player.get("/v1/rounds").json()["items"] == []
