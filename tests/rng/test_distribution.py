"""A million seeds, drawn by sixteen threads: none twice, and every one in its turn.

How even cards are is proven at the boundaries (`test_bounded.py`, `test_deal.py`, `test_every_deal.py`); statistics of
a million deals, and mistakes that they see, are in `tests/laboratory/test_statistics.py`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

import pytest

from casino_brag.rng import Drawn, Generator, State, draw_seed

DRAWS = 1_000_000
THREADS = 16
DRAWS_EACH = DRAWS // THREADS


@dataclass(frozen=True)
class Million:
    """What was drawn, thread after thread, and how the generator stood afterwards."""

    drawn: list[Drawn]
    state: State


@pytest.fixture(scope="module")
def million() -> Million:
    generator = Generator()

    def draw(thread: int) -> list[Drawn]:
        return [draw_seed(generator, UUID(int=thread)) for _ in range(DRAWS_EACH)]

    with ThreadPoolExecutor(THREADS) as pool:
        drawn = [answer for answers in pool.map(draw, range(THREADS)) for answer in answers]
    return Million(drawn, generator.state)


def test_no_seed_is_drawn_twice_by_sixteen_threads(million: Million) -> None:
    """With a seed space of 2^32, however it came about, 116 of a million would be."""
    assert len(million.drawn) == DRAWS
    assert len({answer.output for answer in million.drawn}) == DRAWS


def test_sixteen_threads_are_served_one_after_the_other(million: Million) -> None:
    """By one instance, whose requests are numbered without a gap and were each reseeded for."""
    assert million.state is State.READY
    assert len({answer.instance for answer in million.drawn}) == 1
    numbers = range(1, DRAWS + 1)
    assert sorted((answer.request, answer.reseeds) for answer in million.drawn) == [(n, n) for n in numbers]


def test_threads_took_turns(million: Million) -> None:
    """Or nothing was shown: requests of one thread stand between those of the others."""
    for at in range(0, DRAWS, DRAWS_EACH):
        first, last = million.drawn[at].request, million.drawn[at + DRAWS_EACH - 1].request
        assert last - first > DRAWS_EACH
