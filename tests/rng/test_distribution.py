"""A million rounds, drawn by sixteen threads and dealt as live rounds are: no seed twice, and cards as even as chance.

Exactness is proven at the boundaries (`test_bounded.py`, `test_deal.py`, `test_every_deal.py`); this is a second look,
at what no boundary shows: threads that disturb one another, a seed that comes again, a small space of seeds.

Each answer of the generator is cut into two seeds, which halves the time: threads that got in each other's way would
repeat, tear or skip whole answers, and so both halves.  That seeds drawn one by one are the generator's answers is in
`test_requests.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from math import perm
from uuid import UUID

import pytest

from casino_brag.rng import DEALS, Drawn, Generator, State, seeds, unrank
from casino_brag.rng.seeds import SEED_BYTES

ROUNDS = 1_000_000
THREADS = 16
RULES = "00" * 32

CHI_SQUARE_MAX = 144.5
"""Exceeded by an even distribution over 52 cards (51 degrees of freedom) with probability below 1e-10."""

REPEATED_MIN, REPEATED_MAX = 5, 84
"""Ordered deals of 10^6 that came before: 34.1 are expected, and by Poisson's law fewer than 5 or more than 84 are
seen once in 10^10 times at most."""


@dataclass(frozen=True)
class Million:
    """What was drawn, and what was dealt from it."""

    drawn: list[Drawn]
    seeds: list[bytes]
    indexes: list[int]
    deals: list[tuple[int, ...]]
    state: State


@pytest.fixture(scope="module")
def million() -> Million:
    generator = Generator()

    def block(number: int) -> list[Drawn]:
        asked = ROUNDS // 2 // THREADS
        return [generator.generate(2 * SEED_BYTES, "a test", bytes([number])) for _ in range(asked)]

    with ThreadPoolExecutor(THREADS) as pool:
        drawn = [answer for answers in pool.map(block, range(THREADS)) for answer in answers]
    halves = (slice(SEED_BYTES), slice(SEED_BYTES, None))
    drawn_seeds = [answer.output[half] for answer in drawn for half in halves]
    indexes = [
        seeds.deal(seed, UUID(int=number), RULES, None).index for number, seed in enumerate(drawn_seeds)
    ]
    return Million(drawn, drawn_seeds, indexes, [unrank(index) for index in indexes], generator.state)


def chi_square(cards: Iterable[int]) -> float:
    """Pearson's statistic against an even distribution over the pack."""
    seen = Counter(cards)
    expected = sum(seen.values()) / 52
    return sum((seen[card] - expected) ** 2 / expected for card in range(52))


def repeated(indexes: list[int]) -> int:
    """How many of these ordered deals had come before."""
    return len(indexes) - len(set(indexes))


# Threads and seeds


def test_no_seed_is_drawn_twice_by_sixteen_threads(million: Million) -> None:
    """With a seed space of 2^32, however it came about, 116 of a million would be."""
    assert len(million.seeds) == ROUNDS
    assert len(set(million.seeds)) == ROUNDS


def test_sixteen_threads_are_served_one_after_the_other(million: Million) -> None:
    """By one instance, whose requests are numbered without a gap and were each reseeded for."""
    assert million.state is State.READY
    assert len({answer.instance for answer in million.drawn}) == 1
    numbers = range(1, ROUNDS // 2 + 1)
    assert sorted((answer.request, answer.reseeds) for answer in million.drawn) == [(n, n) for n in numbers]


def test_threads_took_turns(million: Million) -> None:
    """Or nothing was shown: requests of one thread stand between those of the others."""
    asked = ROUNDS // 2 // THREADS
    for at in range(0, ROUNDS // 2, asked):
        first, last = million.drawn[at].request, million.drawn[at + asked - 1].request
        assert last - first > asked


# Deals that come again


def test_deals_come_again_as_often_as_chance_has_them(million: Million) -> None:
    assert round(ROUNDS * (ROUNDS - 1) / 2 / DEALS, 1) == 34.1
    assert REPEATED_MIN <= repeated(million.indexes) <= REPEATED_MAX


def from_few_seeds(number: int) -> int:
    """The deal of a round whose seed is one of 2^32, as a clock's or a small generator's would be."""
    seed = sha256(number.to_bytes(8, "big")).digest()[:4]
    return int.from_bytes(sha256(seed).digest()[:8], "big") % DEALS


def from_many_seeds(number: int) -> int:
    """The same, with as many seeds as there are hashes."""
    return int.from_bytes(sha256(sha256(number.to_bytes(8, "big")).digest()).digest()[:8], "big") % DEALS


def test_a_space_of_2_to_the_32_seeds_shows_in_deals_that_come_again() -> None:
    """The only statistic in which it does: 150 are expected, and its cards are as even as any."""
    assert repeated([from_few_seeds(number) for number in range(ROUNDS)]) > REPEATED_MAX
    assert REPEATED_MIN <= repeated([from_many_seeds(number) for number in range(ROUNDS)]) <= REPEATED_MAX


@pytest.mark.parametrize("every", [2, 1_000])
def test_rounds_that_are_dealt_again_show_in_deals_that_come_again(every: int, million: Million) -> None:
    """As by a cache, or by two processes with one state; one round in a thousand is enough."""
    again = [
        million.indexes[number - 1] if number % every == 1 else index
        for number, index in enumerate(million.indexes)
    ]
    assert repeated(again) > REPEATED_MAX


# Cards


@pytest.mark.parametrize("place", range(6))
def test_every_card_comes_equally_often_in_every_place(million: Million, place: int) -> None:
    assert chi_square(deal[place] for deal in million.deals) < CHI_SQUARE_MAX


def test_the_next_card_does_not_depend_on_the_one_before(million: Million) -> None:
    """Counted from the first card, the second is even over the other 51: a distance of 0 never occurs."""
    distances = Counter((deal[1] - deal[0]) % 52 for deal in million.deals)
    assert distances[0] == 0
    expected = ROUNDS / 51
    assert sum((distances[far] - expected) ** 2 / expected for far in range(1, 52)) < CHI_SQUARE_MAX


def picked(chosen: Callable[[int, int], int], index: int) -> tuple[int, ...]:
    """The deal of a shuffle that exchanges each place with another one than it should."""
    remaining, divisor = list(range(52)), perm(52, 6)
    for place in range(6):
        divisor //= 52 - place
        other = chosen(place, index // divisor % (52 - place))
        remaining[place], remaining[other] = remaining[other], remaining[place]
    return tuple(remaining[:6])


MUTANTS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "8-bit modulo": lambda index: tuple(index // 256**place % 256 % 52 for place in range(2)),
    "2^32 indexes": lambda index: unrank(index % 2**32),
    "Sattolo": lambda index: picked(lambda place, pick: place + 1 + pick % (51 - place), index),
    "any to any": lambda index: picked(lambda place, pick: pick * 52 // (52 - place), index),
    "never the last card": lambda index: picked(lambda place, pick: min(place + pick, 50), index),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_cards_of_a_known_mistake_are_not_even(mutant: str, million: Million) -> None:
    """Of a twentieth of the rounds already.  Smaller mistakes are seen at the boundaries only."""
    dealt = [MUTANTS[mutant](index) for index in million.indexes[:50_000]]
    assert any(chi_square(deal[place] for deal in dealt) > CHI_SQUARE_MAX for place in range(len(dealt[0])))
