"""Currencies: codes and how many decimals their amounts have.  Amounts are always whole minor units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import iso4217

DECLARED: Final[Mapping[str, int]] = {"XBT": 8}
"""Codes beyond ISO 4217, with their exponents."""

_ISO: Final[Mapping[str, int]] = {
    currency.code: currency.exponent for currency in iso4217.Currency if currency.exponent is not None
}


def exponent(currency: str) -> int | None:
    """The number of decimals of a currency's amounts; None for a code that is not known.

    >>> [exponent(code) for code in ("JPY", "GBP", "KWD", "XBT", "???")]
    [0, 2, 3, 8, None]
    """
    return DECLARED.get(currency, _ISO.get(currency))
