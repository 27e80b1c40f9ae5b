"""For every hand a player can hold, how many dealer hands end the round in each way; exact.

Method: inclusion and exclusion.  Number the rank classes 0 to 740 and let B(k) be the number of hands below
class k that avoid the player's cards a, b, c.  It is the number of all hands below k, less those with a, with
b and with c, plus those with both of a pair of them, less the player's own hand if it is below k.  Each term
is looked up in a table made once, and every outcome is a difference of two values of B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import RANK_CLASSES, Category, Hand, Ranking, all_hands
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import Result, qualifying_class

HANDS: Final = 22_100
"""Three-card hands a player can hold: 52 x 51 x 50 / 6."""

DEALER_HANDS: Final = 18_424
"""Three-card hands left for the dealer: 49 x 48 x 47 / 6."""

DEALS: Final = HANDS * DEALER_HANDS
"""(player, dealer) deals, all equally likely: 407,170,400."""

PLAYED_RESULTS: Final = (Result.NOT_QUALIFIED, Result.WIN, Result.TIE, Result.LOSE)
"""What can happen once the player plays: the columns of :attr:`Outcomes.counts`."""

Integers = NDArray[np.int64]


class HandOutcomes(NamedTuple):
    """Dealer hands, of 18,424, by what they do to one player hand that is played."""

    not_qualified: int
    win: int
    tie: int
    lose: int


@dataclass(frozen=True, eq=False, slots=True)
class Outcomes:
    """The outcome counts of all 22,100 player hands under one ranking and qualifier.

    Rows are in the order of :func:`casino_brag.game.hands.all_hands`.  ``rank_class`` holds 1..741 a hand;
    ``category`` the position of its category among the members of Category; ``counts`` four columns, those of
    ``PLAYED_RESULTS``, each row of which sums to 18,424.  The arrays are read-only.
    """

    rank_class: Integers
    category: Integers
    counts: Integers

    def of(self, hand: Hand) -> HandOutcomes:
        """The counts of one player hand.

        >>> from casino_brag.game.hands import AceLowRun
        >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
        >>> outcomes(brag, Qualifier.QUEEN).of(Hand.parse("3c 3d 3h"))
        HandOutcomes(not_qualified=5190, win=13234, tie=0, lose=0)
        """
        cards = np.array(sorted(card.index for card in hand))
        row = np.searchsorted(_sort_key(_hand_cards()), _sort_key(cards[np.newaxis]))[0]
        return HandOutcomes(*self.counts[row].tolist())


@lru_cache(maxsize=16)
def outcomes(ranking: Ranking, qualifier: Qualifier) -> Outcomes:
    """Count the outcomes of all 22,100 player hands; some tens of milliseconds the first time.

    >>> from casino_brag.game.hands import AceLowRun
    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> outcomes(brag, Qualifier.QUEEN).counts.sum(axis=0).tolist()
    [123809280, 97417516, 279840, 185663764]
    """
    rank_class = np.array([ranking.rank_class(hand) for hand in all_hands()], dtype=np.int64)
    members = list(Category)
    category = np.array([members.index(ranking.category(hand)) for hand in all_hands()], dtype=np.int64)
    counts = _count(rank_class - 1, qualifying_class(ranking, qualifier) - 1)
    for array in (rank_class, category, counts):
        array.setflags(write=False)
    return Outcomes(rank_class, category, counts)


def _count(classes: Integers, threshold: int) -> Integers:
    """The four counts of every hand, for classes 0..740 and the lowest class that qualifies."""
    below = _Below(classes)
    own = np.maximum(classes, threshold)
    above = np.maximum(classes + 1, threshold)
    unqualified, not_better, not_beaten = (
        below.counts(k) for k in (np.full_like(classes, threshold), own, above)
    )
    columns = (unqualified, not_better - unqualified, not_beaten - not_better, DEALER_HANDS - not_beaten)
    return np.stack(columns, axis=1)


class _Below:
    """The tables behind B(k), each indexed last by k = 0..741."""

    def __init__(self, classes: Integers) -> None:
        self._classes = classes
        self._cards = _hand_cards()
        a, b, c = self._cards.T
        self._all = self._table(np.zeros_like(classes), 1)
        self._with_card = self._table(a, 52) + self._table(b, 52) + self._table(c, 52)
        self._with_pair = (
            self._table(52 * a + b, 52 * 52)
            + self._table(52 * a + c, 52 * 52)
            + self._table(52 * b + c, 52 * 52)
        )

    def _table(self, row: Integers, rows: int) -> Integers:
        """In each row, the running count of the hands put there that are below class k."""
        width = RANK_CLASSES + 1
        filled = np.bincount(row * width + self._classes + 1, minlength=rows * width)
        return filled.reshape(rows, width).cumsum(axis=1)

    def counts(self, k: Integers) -> Integers:
        """B(k) for each player hand and its own k."""
        a, b, c = self._cards.T
        with_one = self._with_card[a, k] + self._with_card[b, k] + self._with_card[c, k]
        with_two = (
            self._with_pair[52 * a + b, k] + self._with_pair[52 * a + c, k] + self._with_pair[52 * b + c, k]
        )
        with_three = (self._classes < k).astype(np.int64)
        counted: Integers = self._all[0, k] - with_one + with_two - with_three
        return counted


@lru_cache(maxsize=1)
def _hand_cards() -> Integers:
    """Three card indexes a hand, ascending, in the order of ``all_hands``."""
    return np.array(list(combinations(range(52), 3)), dtype=np.int64)


def _sort_key(cards: Integers) -> Integers:
    key: Integers = cards @ np.array([52 * 52, 52, 1])
    return key
