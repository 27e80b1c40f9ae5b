"""Dealt cards are as even as chance makes them.  (Exactness is proven at the boundaries; this is a second look.)"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable

import pytest

from casino_brag.rng import draw_deal, unrank

DEALT = 20_000
CHI_SQUARE_MAX = 144.5
"""Exceeded by an even distribution over 52 cards (51 degrees of freedom) with probability below 1e-10."""


def chi_square(cards: Iterable[int]) -> float:
    """Pearson's statistic against an even distribution over the pack."""
    seen = Counter(cards)
    expected = sum(seen.values()) / 52
    return sum((seen[card] - expected) ** 2 / expected for card in range(52))


@pytest.fixture(scope="module")
def deals() -> list[tuple[int, ...]]:
    return [draw_deal().cards for _ in range(DEALT)]


@pytest.mark.parametrize("place", range(6))
def test_every_card_comes_equally_often_in_every_place(deals: list[tuple[int, ...]], place: int) -> None:
    assert chi_square(deal[place] for deal in deals) < CHI_SQUARE_MAX


def test_the_next_card_does_not_depend_on_the_one_before(deals: list[tuple[int, ...]]) -> None:
    """Counted from the first card, the second is even over the other 51: a distance of 0 never occurs."""
    distances = Counter((deal[1] - deal[0]) % 52 for deal in deals)
    assert distances[0] == 0
    expected = DEALT / 51
    assert sum((distances[far] - expected) ** 2 / expected for far in range(1, 52)) < CHI_SQUARE_MAX


def test_a_generator_of_few_deals_would_be_noticed() -> None:
    narrow = [unrank(secrets.randbelow(2**32)) for _ in range(DEALT)]
    assert chi_square(deal[0] for deal in narrow) > CHI_SQUARE_MAX
