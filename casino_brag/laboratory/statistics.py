"""Our own tests of final outcomes: whether deals are as independent and as even as they ought to be.

The tests are the usual ones (D. E. Knuth, The Art of Computer Programming 2, 3.3.2) in the words of a card table.
All theory is exact counting, so a p-value is limited only by the law that the statistic follows in the limit.

What statistics cannot see, however many deals there are, is a bias that is small: a 32-bit modulo or scaling by a
float passes all of this.  The tests of :mod:`casino_brag.rng` at the boundaries see those.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from math import comb, factorial, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.cards import PACK
from casino_brag.game.hands import Category, all_hands
from casino_brag.laboratory.collectors import paytable
from casino_brag.laboratory.forms import Counts, Floats, fit, geometric, normal, runs
from casino_brag.laboratory.judging import Test
from casino_brag.odds.tails import poisson_p
from casino_brag.rng.deal import CARDS_DEALT, DEALS, PACK_SIZE
from casino_brag.simulation.mapper import Cards

DEALS_MIN: Final = 30_000
"""Fewer leave less than five to a pair of cards, which is too few for chi-square."""

DEALS_MAX: Final = 10_000_000
"""More than this would not be held in memory."""

INDEX_RANGES: Final = 1_000
"""Ranges of deal indexes that are counted; they are of equal size to one part in fourteen million."""

COLLECTION_ROUNDS_MAX: Final = 1_500
"""More rounds than this are needed once in a hundred thousand million collections."""

COLLECTION_CLASSES: Final = 20
"""Classes of lengths of collections, in each of which six or more of `DEALS_MIN` rounds' are expected."""

CATEGORIES: Final = tuple(Category)


def deal_tests(cards: Cards) -> list[Test]:
    """Every test of deals in the order they were dealt: shape (6, rounds), card numbers 0..51, the player's first.

    ``ValueError`` for fewer than `DEALS_MIN` deals.
    """
    if cards.shape[1] < DEALS_MIN:
        raise ValueError(f"{DEALS_MIN:,} deals are the fewest that these tests decide anything from")
    index = indexes(cards)
    return [*_within(cards, index), *_between(cards, index)]


def indexes(cards: Cards) -> Counts:
    """The index of each deal, as `casino_brag.rng.rank` has it.

    >>> indexes(np.array([[51, 0, 1, 2, 3, 4]], dtype=np.uint8).T).tolist() == [DEALS - 1]
    True
    """
    index = np.zeros(cards.shape[1], dtype=np.int64)
    chosen: list[Counts] = []
    for place in range(CARDS_DEALT):
        lies = cards[place].astype(np.int64)
        for earlier, to in enumerate(chosen):
            lies = np.where(lies == earlier, to, lies)  # it lay where an earlier exchange took its card from
        chosen.append(lies)
        index = index * (PACK_SIZE - place) + lies - place
    return index


def cards_by_position(cards: Cards) -> Counts:
    """How often each card came in each position: shape (6, 52)."""
    return np.stack([np.bincount(dealt, minlength=PACK_SIZE) for dealt in cards])


def categories(cards: Cards) -> tuple[Counts, Counts]:
    """How often the player and the dealer held each category, in the order of `CATEGORIES`."""
    of_hand = _category_of_hand()
    player, dealer = of_hand[tuple(cards[:3])], of_hand[tuple(cards[3:])]
    return np.bincount(player, minlength=len(CATEGORIES)), np.bincount(dealer, minlength=len(CATEGORIES))


def category_chances() -> Floats:
    """The probability of each category, counted over all 22,100 hands."""
    ranking = paytable().ranking
    held = [CATEGORIES.index(ranking.category(hand)) for hand in all_hands()]
    return np.bincount(held, minlength=len(CATEGORIES)) / len(held)


def index_ranges(index: Counts) -> Counts:
    """How many deals have an index in each of `INDEX_RANGES` equal ranges."""
    return np.bincount(index * INDEX_RANGES // DEALS, minlength=INDEX_RANGES)


def _within(cards: Cards, index: Counts) -> Iterator[Test]:
    """Each deal by itself."""
    even = np.full(PACK_SIZE, 1 / PACK_SIZE)
    for place, counted in enumerate(cards_by_position(cards), start=1):
        yield fit(f"card in position {place}", counted, even)
    pairs = np.full((PACK_SIZE, PACK_SIZE), 1 / (PACK_SIZE * (PACK_SIZE - 1)))
    np.fill_diagonal(pairs, 0)
    for one, other in combinations(range(CARDS_DEALT), 2):
        met = _together(cards[one], cards[other])
        yield fit(f"cards in positions {one + 1} and {other + 1}", met, pairs.ravel())
    order = np.argsort(cards, axis=0).astype(np.int64)
    pattern = np.ravel_multi_index(tuple(order), (CARDS_DEALT,) * CARDS_DEALT)
    patterns = np.unique(pattern, return_counts=True)[1].astype(np.int64)
    missing = np.zeros(factorial(CARDS_DEALT) - len(patterns), dtype=np.int64)
    counted = np.append(patterns, missing)
    yield fit("order of the six cards", counted, np.full(len(counted), 1 / len(counted)))
    for whose, held in zip(("player", "dealer"), categories(cards), strict=True):
        yield fit(f"category of the {whose}'s hand", held, category_chances())
    yield fit("ranges of the deal index", index_ranges(index), np.full(INDEX_RANGES, 1 / INDEX_RANGES))


def _between(cards: Cards, index: Counts) -> Iterator[Test]:
    """Deals with each other, in the order they were dealt."""
    rounds = len(index)
    repeated = int(_pairs_of_equals(index))
    expected = rounds * (rounds - 1) / 2 / DEALS
    yield Test("deals dealt twice", "Poisson", repeated, None, poisson_p(repeated, expected))
    # Whatever one round holds, the number of its cards in another is hypergeometric, and independently so.
    held = np.bitwise_or.reduce(np.uint64(1) << cards.astype(np.uint64), axis=0)
    shared = np.array(
        [
            comb(CARDS_DEALT, k) * comb(PACK_SIZE - CARDS_DEALT, CARDS_DEALT - k)
            for k in range(CARDS_DEALT + 1)
        ]
    ) / comb(PACK_SIZE, CARDS_DEALT)
    for later in (1, 2, 3):
        common = np.bitwise_count(held[later:] & held[:-later]).astype(np.int64)
        name = f"cards in common with the round {later} before"
        yield fit(name, np.bincount(common, minlength=CARDS_DEALT + 1), shared)
    even = np.full(PACK_SIZE**2, 1 / PACK_SIZE**2)
    first, second = cards[0][0 : rounds // 2 * 2 : 2], cards[0][1::2]
    yield fit("first cards of two rounds in a row", _together(first, second), even)
    part = (index + 0.5) / DEALS - 0.5
    correlation = float((part[1:] * part[:-1]).sum())
    yield normal("serial correlation of the deal index", correlation, 0, sqrt(rounds - 1) / 12)
    yield from runs("runs of the deal index above and below its middle", index >= DEALS // 2)
    gaps = np.diff(np.flatnonzero(cards[0] // 4 == PACK[-1].rank))
    yield fit("gaps between aces as first card", *geometric(gaps, 1 / 13))
    yield fit("rounds until every card was first", *_collections(cards[0]))


def _together(one: Cards, other: Cards) -> Counts:
    """How often each card met each other one, 2,704 cells."""
    return np.bincount(one.astype(np.int64) * PACK_SIZE + other, minlength=PACK_SIZE**2)


def _pairs_of_equals(values: Counts) -> int:
    """How many pairs of equal values there are."""
    times = np.unique(values, return_counts=True)[1].astype(np.int64)
    return int((times * (times - 1) // 2).sum())


def _collections(first: Cards) -> tuple[Counts, Floats]:
    """How many rounds each complete collection of the 52 first cards took, in classes of about equal probability."""
    chances = _collection_chances()
    of_class = np.minimum((np.cumsum(chances) - chances / 2) * COLLECTION_CLASSES, COLLECTION_CLASSES - 1)
    of_class = of_class.astype(np.int64)
    taken = np.zeros(COLLECTION_CLASSES, dtype=np.int64)
    seen: set[int] = set()
    began = 0
    for at, card in enumerate(first.tolist(), start=1):
        seen.add(card)
        if len(seen) == PACK_SIZE:
            taken[of_class[min(at - began, COLLECTION_ROUNDS_MAX) - 1]] += 1
            began = at
            seen.clear()
    return taken, np.array([chances[of_class == one].sum() for one in range(COLLECTION_CLASSES)])


@cache
def _collection_chances() -> Floats:
    """The probability that a collection of 52 takes 1, 2, … rounds, the last of so many or more: by stepping from how
    many different cards were seen to how many are seen a round later."""
    seen = np.zeros(PACK_SIZE + 1)
    seen[0] = 1.0
    missing = 1 - np.arange(PACK_SIZE + 1) / PACK_SIZE
    chances = np.zeros(COLLECTION_ROUNDS_MAX)
    for at in range(COLLECTION_ROUNDS_MAX):
        seen[1:] = seen[1:] * (1 - missing[1:]) + seen[:-1] * missing[:-1]
        seen[0] = 0.0
        chances[at], seen[-1] = seen[-1], 0.0
    chances[-1] += seen.sum()
    return chances


@cache
def _category_of_hand() -> NDArray[np.int8]:
    """The position in `CATEGORIES` of each three cards in any order: shape (52, 52, 52)."""
    table = np.zeros((PACK_SIZE,) * 3, dtype=np.int8)
    ranking = paytable().ranking
    for hand in all_hands():
        place = CATEGORIES.index(ranking.category(hand))
        a, b, c = (card.index for card in hand)
        for cards in ((a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)):
            table[cards] = place
    return table
