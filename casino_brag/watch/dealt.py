"""What was dealt, as counts, and the usual tests of them at one look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import perm, sqrt
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Category
from casino_brag.odds.outcomes import HANDS, Integers, hand_places
from casino_brag.odds.tails import normal_p, pearson, poisson_p
from casino_brag.watch.expectation import Rules

PACK_SIZE: Final = 52
CARDS_DEALT: Final = 6
DEALS: Final = perm(PACK_SIZE, CARDS_DEALT)
"""Ordered deals, all equally likely: 14,658,134,400."""

POISSON_MAX: Final = 10_000
"""Above this mean the normal distribution takes the Poisson's place, to which it is then close."""


@dataclass(frozen=True, eq=False, slots=True)
class Dealt:
    """Counts of dealt cards, which add up exactly in whatever order.

    ``player`` and ``dealer`` count hands by category, in the order of Category; ``cards``, of shape (6, 52), counts
    each card in each position of the deal.
    """

    player: Integers
    dealer: Integers
    cards: Integers

    @property
    def rounds(self) -> int:
        """How many deals were counted."""
        return int(self.player.sum())

    @classmethod
    def none(cls) -> Self:
        """No deals."""
        return cls(
            np.zeros(len(Category), dtype=np.int64),
            np.zeros(len(Category), dtype=np.int64),
            np.zeros((CARDS_DEALT, PACK_SIZE), dtype=np.int64),
        )

    @classmethod
    def of(cls, rules: Rules, cards: NDArray[np.integer[Any]]) -> Self:
        """Deals of six card numbers each, shape (deals, 6), in the order dealt, the player's three first."""
        player, dealer = (rules.category[hand_places(cards[:, three])] for three in (slice(3), slice(3, 6)))
        return cls(
            np.bincount(player, minlength=len(Category)),
            np.bincount(dealer, minlength=len(Category)),
            np.stack([np.bincount(column, minlength=PACK_SIZE) for column in cards.T]),
        )

    def __add__(self, other: Dealt) -> Self:
        return type(self)(self.player + other.player, self.dealer + other.dealer, self.cards + other.cards)

    def document(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {"player": self.player.tolist(), "dealer": self.dealer.tolist(), "cards": self.cards.tolist()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What :meth:`document` wrote."""
        return cls(*(np.array(document[name], dtype=np.int64) for name in ("player", "dealer", "cards")))


@dataclass(frozen=True, slots=True)
class Fit:
    """Counts against their probabilities: Pearson's chi-square, its degrees of freedom and its p at one look."""

    name: str
    chi_square: float
    degrees: int
    p: float


def fits(dealt: Dealt, rules: Rules) -> tuple[Fit, ...]:
    """Categories of player and dealer, and the cards in each position; none before the first deal.

    These are to be read, not to be watched: of many looks some are unusual.  What may be watched is in
    :mod:`casino_brag.watch.evidence`.

    >>> from casino_brag.game.paytable import Paytable
    >>> rules = Rules.of(Paytable.load("paytables/three-card-brag.toml"))
    >>> dealt = Dealt.of(rules, np.array([[51, 50, 49, 0, 1, 2]] * 1000))
    >>> fits(dealt, rules)[0].p
    0.0
    """
    if not dealt.rounds:
        return ()
    chances, even = category_chances(rules), np.full(PACK_SIZE, 1 / PACK_SIZE)
    counts = {
        "player's category": (dealt.player, chances),
        "dealer's category": (dealt.dealer, chances),
        **{f"card in position {place}": (cards, even) for place, cards in enumerate(dealt.cards, start=1)},
    }
    return tuple(Fit(name, *pearson(*counted)) for name, counted in counts.items())


def category_chances(rules: Rules) -> NDArray[np.float64]:
    """The probability of each category of hand, in the order of Category."""
    chances: NDArray[np.float64] = np.bincount(rules.category, minlength=len(Category)) / HANDS
    return chances


def duplicates_p(pairs: int, deals: int) -> float:
    """The probability that so many deals, two or more, hold a number of pairs of equal ones this unusual; both sides.

    One deal that occurs three times is three pairs.  Their number is about Poisson distributed, as each two deals are
    equal once in ``DEALS``.

    >>> f"{duplicates_p(34, 1_000_000):.2f} {duplicates_p(90, 1_000_000):.0e}"
    '1.00 3e-15'
    """
    mean = deals * (deals - 1) / 2 / DEALS
    if mean > POISSON_MAX:
        return normal_p((pairs - mean) / sqrt(mean))
    return poisson_p(pairs, mean)
