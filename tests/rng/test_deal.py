"""Deals and their indexes: each deal has one index, and each index one deal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import perm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.rng import DEALS, Draw, rank, unrank

indexes = st.integers(0, DEALS - 1)
deals = st.permutations(range(52)).map(lambda pack: tuple(pack[:6]))


def test_there_are_as_many_deals_as_ways_to_take_six_cards_in_order() -> None:
    assert DEALS == 52 * 51 * 50 * 49 * 48 * 47 == 14_658_134_400


@given(index=indexes)
def test_the_rank_of_a_deal_is_the_index_it_came_from(index: int) -> None:
    assert rank(unrank(index)) == index


@given(dealt=deals)
def test_the_deal_of_a_rank_is_the_deal_it_came_from(dealt: tuple[int, ...]) -> None:
    assert unrank(rank(dealt)) == dealt


@given(index=indexes)
def test_a_deal_is_of_six_different_cards(index: int) -> None:
    cards = unrank(index)
    assert len(cards) == len(set(cards)) == 6
    assert all(0 <= card < 52 for card in cards)


@pytest.mark.parametrize(
    ("index", "cards"),
    [
        (0, (0, 1, 2, 3, 4, 5)),
        (1, (0, 1, 2, 3, 4, 6)),
        (46, (0, 1, 2, 3, 4, 51)),
        (47, (0, 1, 2, 3, 5, 4)),
        (DEALS // 52 - 1, (0, 51, 1, 2, 3, 4)),
        (DEALS // 52, (1, 0, 2, 3, 4, 5)),
        (DEALS - 1, (51, 0, 1, 2, 3, 4)),
    ],
)
def test_the_ends_are_where_they_belong(index: int, cards: tuple[int, ...]) -> None:
    assert unrank(index) == cards
    assert rank(cards) == index


SMALL_PACKS = [(4, 4), (5, 1), (5, 3), (6, 6), (7, 6), (9, 4)]
Chosen = Callable[[int, int, int], int]


def dealt_by(chosen: Chosen, pack: int, cards: int) -> list[tuple[int, ...]]:
    """All deals of a shuffle that exchanges each place with ``chosen(place, pick, pack)``, over all its picks."""
    dealt = []
    for index in range(perm(pack, cards)):
        remaining, divisor = list(range(pack)), perm(pack, cards)
        for place in range(cards):
            divisor //= pack - place
            other = chosen(place, index // divisor % (pack - place), pack)
            remaining[place], remaining[other] = remaining[other], remaining[place]
        dealt.append(tuple(remaining[:cards]))
    return dealt


MUTANTS: dict[str, Chosen] = {
    "Sattolo": lambda place, pick, pack: min(place + 1, pack - 1) + pick % max(pack - place - 1, 1),
    "any to any": lambda place, pick, pack: pick * pack // (pack - place),
    "pick one too far": lambda place, pick, pack: min(place + pick + 1, pack - 1),
    "pick one too near": lambda place, pick, pack: place + max(pick - 1, 0),
    "never the last card": lambda place, pick, pack: min(place + pick, pack - 2),
    "not moved on": lambda place, pick, pack: pick,
}


@pytest.mark.parametrize(("pack", "cards"), [(1, 1), *SMALL_PACKS])
def test_every_deal_of_a_small_pack_has_exactly_one_index(pack: int, cards: int) -> None:
    dealt = [unrank(index, pack=pack, cards=cards) for index in range(perm(pack, cards))]
    assert sorted(dealt) == sorted(permutations(range(pack), cards))
    assert [rank(deal, pack=pack) for deal in dealt] == list(range(perm(pack, cards)))
    assert dealt == dealt_by(lambda place, pick, pack: place + pick, pack, cards)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_small_pack_shows_each_known_mistake_of_shuffling(mutant: str) -> None:
    """Each misses some deals and repeats others, in a pack so small that all of them can be counted."""
    for pack, cards in [(4, 4), (6, 6), (7, 6), (9, 4)]:
        dealt = dealt_by(MUTANTS[mutant], pack, cards)
        assert sorted(dealt) != sorted(permutations(range(pack), cards)), (pack, cards)


@pytest.mark.parametrize("index", [-1, DEALS, DEALS + 1, 2**64])
def test_an_index_out_of_range_is_no_deal(index: int) -> None:
    with pytest.raises(ValueError, match="index"):
        unrank(index)


@pytest.mark.parametrize(
    "dealt", [(0, 1, 2, 3, 4, 0), (0, 1, 2, 3, 4, 52), (-1, 1, 2, 3, 4, 5), (0, 0, 0, 0, 0, 0)]
)
def test_repeated_or_unknown_cards_are_no_deal(dealt: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="distinct"):
        rank(dealt)


@given(index=indexes)
def test_a_draw_shows_the_cards_of_its_index(index: int) -> None:
    assert Draw(index, 0).cards == unrank(index)
