"""Every hand that a player and the house can hold against each other is dealt by exactly one index in order.

There are 22,100 sets of three cards for the player and 18,424 for the dealer against each of them.  For all
407,170,400 pairs of sets the index of the deal in ascending order is worked out, and dealt again from that index.
What comes back is the pair of sets that was started from, so no two pairs share an index and none is out of reach.
The six orders within each set make 36 deals of each pair, and 36 times 407,170,400 is the number of indexes.
"""

from __future__ import annotations

import secrets
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from casino_brag.rng import DEALS, rank, unrank
from casino_brag.simulation.mapper import deals

Cards = NDArray[np.intp]

SETS = comb(52, 3) * comb(49, 3)
SAMPLE = 200_000

DEALERS: Cards = np.array(list(combinations(range(49), 3))).T
"""The dealer's sets, by the place of each card among the 49 that the player does not hold."""


def indexes(player: tuple[int, ...]) -> tuple[Cards, Cards]:
    """The dealer's sets against this one of the player's, and the index of each deal: shapes (3, 18424), (18424)."""
    remaining = list(range(52))
    base = 0
    for place, card in enumerate(player):
        chosen = remaining.index(card)
        base = base * (52 - place) + chosen - place
        remaining[place], remaining[chosen] = remaining[chosen], remaining[place]
    lies_at = np.argsort(remaining)
    first, second, third = dealers = np.array(sorted(remaining[3:]))[DEALERS]
    # What lay at the fourth place lies where the first card was, and what then lay at the fifth where the second was.
    fourth = lies_at[first]
    fifth = np.where(second == remaining[3], fourth, lies_at[second])
    moved = np.where(fourth == 4, remaining[3], remaining[4])
    sixth = np.where(third == remaining[3], fourth, lies_at[third])
    sixth = np.where(third == moved, fifth, sixth)
    return dealers, ((base * 49 + fourth - 3) * 48 + fifth - 4) * 47 + sixth - 5


def test_every_pair_of_sets_is_dealt_by_exactly_one_index_in_order() -> None:
    seen = 0
    for player in combinations(range(52), 3):
        dealers, index = indexes(player)
        dealt = deals(index.astype(np.uint64))
        assert all((dealt[place] == card).all() for place, card in enumerate(player)), player
        assert (dealt[3:] == dealers).all(), player
        seen += dealers.shape[1]
    assert seen == SETS == 407_170_400
    assert 36 * SETS == DEALS


def test_indexes_are_worked_out_here_as_the_module_works_them_out() -> None:
    players = list(combinations(range(52), 3))
    for player in [players[0], players[-1], *(secrets.choice(players) for _ in range(10))]:
        dealers, index = indexes(player)
        assert [rank((*player, *dealer)) for dealer in dealers.T.tolist()] == index.tolist()


def test_many_deals_at_a_time_are_bit_for_bit_those_of_live_rounds() -> None:
    index = np.array([secrets.randbelow(DEALS) for _ in range(SAMPLE)], dtype=np.uint64)
    assert [tuple(cards) for cards in deals(index).T.tolist()] == [unrank(one) for one in index.tolist()]
