"""How the exact numbers and the names of a PAR sheet's document are shown.

Shown numbers are made from exact ones, never from the document's decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from casino_brag.odds.outcomes import HANDS

Document = Mapping[str, Any]
"""What :func:`casino_brag.odds.par_sheet.par_sheet` makes, or a part of it."""

Exact = int | str | Fraction
"""A number of the document, an integer or ``"a/b"``; or one made of such."""

NONE: Final = "–"
"""Stands in a table where there is no figure."""

FIGURES: Final = {"rtp": "RTP", "house_edge": "House edge", "element_of_risk": "Element of risk"}
"""Figures by their names in the document."""

WAGERS: Final = {
    "main": "main game",
    "pair_bonus": "Pair Bonus",
    "ante": "Ante",
    "play": "Play",
    "ante_bonus": "Ante Bonus",
}
"""Wagers and spots by their names in the document."""

_STRATEGIES: Final = {
    "max_expectation": "Least loss per Ante",
    "max_rtp": "Highest RTP",
    "dealer_mimic": "Dealer's rule",
    "always_play": "Never fold",
    "fold_below": "Fold below",
}
_TYPOGRAPHY: Final = str.maketrans({",": "\u202f", "-": "−"})


def number(exact: Exact) -> str:
    """An exact number, with thin spaces between thousands.

    >>> number(-13_660_084), number("-3/2")
    ('−13\\u202f660\\u202f084', '−3/2')
    """
    return "/".join(f"{int(part):,}" for part in str(exact).split("/")).translate(_TYPOGRAPHY)


def decimal(figure: Exact | float) -> str:
    """To six places.

    >>> decimal("-1/8")
    '−0.125000'
    """
    return f"{float(Fraction(figure)):,.6f}".translate(_TYPOGRAPHY)


def percent(share: Exact) -> str:
    """A share in hundredths, to six places.

    >>> percent("167006979/170422000")
    '97.996138 %'
    """
    return f"{decimal(100 * Fraction(share))} %"


def strategy_name(name: str) -> str:
    """What the page calls a strategy.

    >>> [strategy_name(name) for name in ("max_rtp", "fold_below:K", "fold_below:Q-6-4")]
    ['Highest RTP', 'Fold below K high', 'Fold below Q-6-4']
    """
    rule, _, below = name.partition(":")
    return f"{_STRATEGIES[rule]} {below}{' high' if len(below) == 1 else ''}".rstrip()


def strategy_text(strategy: Document) -> str:
    """Which hands a strategy plays, in words.

    >>> strategy_text({"hands_played": 14900, "lowest_hand_played": "Q-6-4", "is_rank_threshold": True})
    'Q-6-4 or better'
    """
    if strategy["hands_played"] in {0, HANDS}:
        return "every hand" if strategy["hands_played"] else "no hand"
    lowest = strategy["lowest_hand_played"]
    return f"{lowest} or better" if strategy["is_rank_threshold"] else f"{lowest} and some better hands"


def one_line(text: str) -> str:
    """An operator's text without line breaks.

    >>> one_line("a rules\\n document ")
    'a rules document'
    """
    return " ".join(text.split())
