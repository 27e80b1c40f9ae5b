"""A million seeds, drawn by sixteen threads: none twice, and every one in its turn.

How even cards are is proven at the boundaries (`test_bounded.py`, `test_deal.py`, `test_every_deal.py`); statistics of
a million deals, and mistakes that they see, are in `tests/laboratory/test_statistics.py`.

Each answer of the generator is cut into two seeds, which halves the time: threads that got in each other's way would
repeat, tear or skip whole answers, and so both halves.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from casino_brag.rng import Drawn, Generator, State
from casino_brag.rng.seeds import SEED_BYTES

SEEDS = 1_000_000
REQUESTS = SEEDS // 2
THREADS = 16
REQUESTS_EACH = REQUESTS // THREADS


@dataclass(frozen=True)
class Million:
    """What was drawn, thread after thread, and how the generator stood afterwards."""

    drawn: list[Drawn]
    state: State


@pytest.fixture(scope="module")
def million() -> Million:
    generator = Generator()

    def draw(thread: int) -> list[Drawn]:
        subject = bytes([thread])
        return [generator.generate(2 * SEED_BYTES, "a test", subject) for _ in range(REQUESTS_EACH)]

    with ThreadPoolExecutor(THREADS) as pool:
        drawn = [answer for answers in pool.map(draw, range(THREADS)) for answer in answers]
    return Million(drawn, generator.state)


def test_no_seed_is_drawn_twice_by_sixteen_threads(million: Million) -> None:
    """With a seed space of 2^32, however it came about, 116 of a million would be."""
    halves = (slice(SEED_BYTES), slice(SEED_BYTES, None))
    assert len({answer.output[half] for answer in million.drawn for half in halves}) == SEEDS


def test_sixteen_threads_are_served_one_after_the_other(million: Million) -> None:
    """By one instance, whose requests are numbered without a gap and were each reseeded for."""
    assert million.state is State.READY
    assert len({answer.instance for answer in million.drawn}) == 1
    numbers = range(1, REQUESTS + 1)
    assert sorted((answer.request, answer.reseeds) for answer in million.drawn) == [(n, n) for n in numbers]


def test_threads_took_turns(million: Million) -> None:
    """Or nothing was shown: requests of one thread stand between those of the others."""
    for at in range(0, REQUESTS, REQUESTS_EACH):
        first, last = million.drawn[at].request, million.drawn[at + REQUESTS_EACH - 1].request
        assert last - first > REQUESTS_EACH
