"""What exact figures and simulation cost, as ratios taken within one run.

.venv/bin/python benchmarks/figures.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from casino_brag.game.cards import RANKS
from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.odds.outcomes import outcomes
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.odds.strategies import MAX_EXPECTATION
from casino_brag.simulation.engines import local
from casino_brag.simulation.mapper import Words, words
from casino_brag.simulation.plan import CHUNK_ROUNDS, Plan, StakePattern
from casino_brag.simulation.play import Kernel, Tables, play_words

ROOT = Path(__file__).parents[1]
BRAG = Paytable.load(ROOT / "paytables" / "three-card-brag.toml")
SEED = bytes(48)
TURNS = 7

sys.path.insert(0, str(ROOT / "verification"))
from enumeration import Ranking, outcome_counts  # noqa: E402 - a script beside the package, on purpose


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def exact_figures() -> None:
    """A new ranking counted, and an edited paytable's PAR sheet, beside comparing all deals one by one."""
    rankings = [replace(BRAG.ranking, best_prial=rank) for rank in RANKS[:TURNS]]
    counted = median(seconds(partial(outcomes, ranking, BRAG.qualifier)) for ranking in rankings)
    par_sheet(BRAG)
    edited = [
        replace(BRAG, play_pays={**BRAG.play_pays, Category.RUN: Fraction(2 + turn)})
        for turn in range(TURNS * 5)
    ]
    sheet = median(seconds(partial(par_sheet, paytable)) for paytable in edited)
    ranking = Ranking.of(BRAG.document())
    every_deal = seconds(lambda: outcome_counts(ranking, BRAG.qualifier.value))
    print(f"every deal compared (verification/)      {1e3 * every_deal:9.1f} ms   100   %")
    print(
        f"outcome counts of a new ranking          {1e3 * counted:9.1f} ms   {100 * counted / every_deal:5.2f} %"
    )
    print(
        f"PAR sheet of an edited paytable          {1e3 * sheet:9.1f} ms   {100 * sheet / every_deal:5.2f} %"
    )


def sfc64(blocks: int) -> Iterator[Words]:
    """Words of NumPy's fastest generator, which is not fit for gambling, in blocks of the same size."""
    generator = np.random.SFC64(1)
    return (generator.random_raw(8_192) for _ in range(blocks))


def simulation() -> None:
    """Rounds a second by kernel and by generator on one core, and on two cores together."""
    tables = Tables.of(BRAG.ranking, BRAG.qualifier, MAX_EXPECTATION.decisions(BRAG))
    rates: dict[tuple[Kernel, str], float] = {}
    for kernel, rounds in ((Kernel.NUMPY, CHUNK_ROUNDS), (Kernel.NUMBA, 4 * CHUNK_ROUNDS)):
        blocks = rounds // 8_192 + 1
        sources = {"CTR_DRBG": partial(words, SEED, 0), "SFC64": partial(sfc64, blocks)}
        play_words(tables, words(SEED, 0), 1, 1, 0, kernel)  # compiles
        times: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(TURNS):
            for name, source in sources.items():
                play = partial(play_words, tables, source(), rounds, 1, 0, kernel)
                times[name].append(seconds(play))
        rates |= {(kernel, name): rounds / median(taken) for name, taken in times.items()}
    for (kernel, name), rate in rates.items():
        share = rate / rates[kernel, "SFC64"]
        print(
            f"{kernel:5} on {name:8} one core            {rate / 1e6:9.1f} M/s  {100 * share:5.1f} % of SFC64"
        )
    drawn = seconds(lambda: list(islice(words(SEED, 0), 4_096)))
    print(f"CTR_DRBG words alone                     {4_096 * 8_192 / drawn / 1e6:9.1f} M/s")
    one, two = (by_workers(workers) for workers in (1, 2))
    print(f"local engine, one worker                 {one / 1e6:9.1f} M/s  100   %")
    print(f"local engine, two workers                {two / 1e6:9.1f} M/s  {100 * two / one:5.1f} %")


def by_workers(workers: int) -> float:
    """Rounds a second of the local engine, its start not counted."""
    chunks = 200 * workers
    plan = Plan(BRAG, MAX_EXPECTATION, StakePattern.smallest(BRAG), chunks * CHUNK_ROUNDS, SEED)
    with closing(local(plan, range(chunks), workers)) as tallies:
        for _ in islice(tallies, 60 * workers):
            pass
        start = time.perf_counter()
        played = sum(1 for _ in tallies)
        return played * CHUNK_ROUNDS / (time.perf_counter() - start)


if __name__ == "__main__":
    exact_figures()
    simulation()
