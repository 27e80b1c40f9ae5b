"""For every hand a player can hold, how many dealer hands end the round in each way; exact.

Method: inclusion and exclusion.  Number the rank classes 0 to 740 and let B(k) be the number of hands below
class k that avoid the player's cards a, b, c.  It is the number of all hands below k, less those with a, with
b and with c, plus those with both of a pair of them, less the player's own hand if it is below k.  Each term
is looked up in a table made once, and every outcome is a difference of two values of B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import RANK_CLASSES, Category, Hand, Ranking, all_shapes, places
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

    Hands of one rank class that meet the same four counts fare alike whatever a paytable pays, so they are one
    *kind*; there are about 1,600 kinds.  ``kind`` holds the kind of each hand, 0.., in the order of
    :func:`casino_brag.game.hands.all_hands`.  The other arrays have a row for each kind: ``rank_class`` 1..741,
    ascending; ``category`` the position of its category among the members of Category; ``counts`` the four
    columns of ``PLAYED_RESULTS``, which sum to 18,424; ``hands`` how many hands are of the kind.  All arrays
    are read-only.
    """

    kind: Integers
    rank_class: Integers
    category: Integers
    counts: Integers
    hands: Integers

    def of(self, hand: Hand) -> HandOutcomes:
        """The counts of one player hand.

        >>> from casino_brag.game.hands import AceLowRun
        >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
        >>> outcomes(brag, Qualifier.QUEEN).of(Hand.parse("3c 3d 3h"))
        HandOutcomes(not_qualified=5190, win=13234, tie=0, lose=0)
        """
        return HandOutcomes(*self.counts[self.kind_of(hand)].tolist())

    def kind_of(self, hand: Hand) -> int:
        """The kind of one hand.

        >>> from casino_brag.game.hands import AceLowRun
        >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
        >>> counted = outcomes(brag, Qualifier.QUEEN)
        >>> counted.kind_of(Hand.parse("3c 3d 3h")) == counted.kind_of(Hand.parse("3d 3h 3s"))
        True
        """
        cards = np.array(sorted(card.index for card in hand))
        row = np.searchsorted(_sort_key(hand_cards()), _sort_key(cards[np.newaxis]))[0]
        return int(self.kind[row])


@lru_cache(maxsize=16)
def outcomes(ranking: Ranking, qualifier: Qualifier) -> Outcomes:
    """Count the outcomes of all 22,100 player hands; some tens of milliseconds the first time.

    >>> from casino_brag.game.hands import AceLowRun
    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> counted = outcomes(brag, Qualifier.QUEEN)
    >>> (counted.hands @ counted.counts).tolist()
    [123809280, 97417516, 279840, 185663764]
    """
    classes = rank_classes(ranking)
    counts = _count(classes - 1, qualifying_class(ranking, qualifier) - 1)
    # Counts fit 15 bits and classes 10, so that one number a hand holds all that makes its kind.
    packed = classes << 45 | counts[:, 0] << 30 | counts[:, 1] << 15 | counts[:, 2]
    _, first, kind, hands = np.unique(packed, return_index=True, return_inverse=True, return_counts=True)
    positions = {category: position for position, category in enumerate(Category)}
    category_of_class = np.array([positions[place.category] for place in places(ranking).values()])
    arrays = (kind, classes[first], category_of_class[classes[first] - 1], counts[first], hands)
    for array in arrays:
        array.setflags(write=False)
    return Outcomes(*arrays)


def rank_classes(ranking: Ranking) -> Integers:
    """The rank class, 1..741, of each hand, in the order of ``all_hands``.

    >>> from casino_brag.game.hands import AceLowRun
    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> int(rank_classes(brag)[0]) == brag.rank_class(Hand.parse("2c 2d 2h"))
    True
    """
    of_shape = np.array([places(ranking)[shape].rank_class for shape in all_shapes()])
    classes: Integers = of_shape[_shape_of_hand()]
    return classes


@lru_cache(maxsize=1)
def hand_cards() -> Integers:
    """Three card indexes a hand, ascending, in the order of ``all_hands``: shape (22100, 3), read-only."""
    cards = np.array(list(combinations(range(52), 3)), dtype=np.int64)
    cards.setflags(write=False)
    return cards


def hand_places(cards: NDArray[np.integer[Any]]) -> Integers:
    """The places of hands in the order of ``all_hands``: three different card indexes a row, in any order.

    >>> hand_places(np.array([[2, 0, 1], [51, 49, 50]])).tolist()
    [0, 22099]
    """
    found: Integers = _place_by_cards()[tuple(cards.T)].astype(np.int64)
    return found


@lru_cache(maxsize=1)
def _place_by_cards() -> NDArray[np.int32]:
    """The place of every three different cards, in any order: shape (52, 52, 52); -1 for no hand."""
    table = np.full((52, 52, 52), -1, dtype=np.int32)
    for first, second, third in permutations(hand_cards().T):
        table[first, second, third] = np.arange(HANDS)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1)
def _shape_of_hand() -> Integers:
    """Each hand's position in ``all_shapes``; the same as ``Hand.shape``, for all hands at once."""
    low, middle, high = (hand_cards() >> 2).T
    a, b, c = (hand_cards() & 3).T
    positions = np.zeros((2, 13, 13, 13), dtype=np.int64)
    for position, ((first, second, third), suited) in enumerate(all_shapes()):
        positions[int(suited), first, second, third] = position
    shapes: Integers = positions[((a == b) & (b == c)).astype(np.int64), high, middle, low]
    return shapes


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
        self._cards = hand_cards()
        a, b, c = self._cards.T
        self._all = self._table(1, np.zeros_like(classes))
        self._with_card = self._table(52, a, b, c)
        self._with_pair = self._table(52 * 52, 52 * a + b, 52 * a + c, 52 * b + c)

    def _table(self, height: int, *rows: Integers) -> NDArray[np.int32]:
        """In each row, the running count of the hands put there that are below class k; each hand is put into
        every row it is given.
        """
        width = RANK_CLASSES + 1
        places_filled = np.concatenate([row * width + self._classes + 1 for row in rows])
        filled = np.bincount(places_filled, minlength=height * width)
        return filled.reshape(height, width).cumsum(axis=1, dtype=np.int32)

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


def _sort_key(cards: Integers) -> Integers:
    key: Integers = cards @ np.array([52 * 52, 52, 1])
    return key
