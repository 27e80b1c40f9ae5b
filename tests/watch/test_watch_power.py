"""What the watch catches and what it lets pass, in a small form of benchmarks/watch.py."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from benchmarks.watch import (
    POPULATIONS,
    Cells,
    Fault,
    caught,
    false_alarms,
    played,
    settled,
    strongest,
    whole_years,
)
from casino_brag.game.paytable import Paytable
from casino_brag.odds.strategies import MAX_EXPECTATION
from casino_brag.watch.evidence import CHANCES, Evidence, Level
from casino_brag.watch.expectation import Rules

RULES = Rules.of(Paytable.load("paytables/three-card-brag.toml"))
MISTAKEN = 1e-6
"""How often a right watch may fail a test by chance, the seeds being fixed."""


@pytest.mark.parametrize(
    ("fault", "at_most", "streams"),
    [
        (Fault.FLUSH_PAYS_3, 2_000, {"impossible payout"}),
        (Fault.ONE_BAND, 40_000, {"band 4"}),
        (Fault.UNQUALIFIED, 5_000, {"main", "rankings", "impossible payout"}),
        (Fault.RANKING, 600_000, {"rankings"}),
        (Fault.ONE_CARD, 600_000, {"single cards"}),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
def test_a_fault_is_caught_by_the_stream_made_for_it(fault: Fault, at_most: int, streams: set[str]) -> None:
    found = caught(np.random.default_rng(3), fault, at_most)
    assert set(found) == set(CHANCES)
    assert found[Level.WARN].rounds <= found[Level.ALERT].rounds <= found[Level.SUSPEND].rounds <= at_most
    assert found[Level.SUSPEND].stream in streams


def test_a_fault_that_begins_after_months_is_caught_as_well() -> None:
    found = caught(np.random.default_rng(4), Fault.UNQUALIFIED, 10_000, clean_days=40)
    assert Level.SUSPEND in found


@pytest.mark.parametrize("population", ["always plays", "folds all below a pair"])
def test_how_people_play_alarms_the_raw_figure_and_not_the_watch(population: str) -> None:
    cells = Cells.of(played(POPULATIONS[population]))
    found = false_alarms(np.random.default_rng(5), cells, rounds_a_day=2_000, years=20, days=60)
    assert found.raw_at_last == 1
    assert found.reached[Level.WARN] <= 4 / 20  # a right watch exceeds that once in 300 times


def test_false_alarms_are_as_few_as_they_are_said_to_be() -> None:
    """Of 400 stretches of 50 days: so many alarms as are less likely than ``MISTAKEN`` would prove the level wrong."""
    cells = Cells.of(played(MAX_EXPECTATION))
    stretches = 400
    found = false_alarms(np.random.default_rng(6), cells, rounds_a_day=500, years=stretches, days=50)
    for level, chance in CHANCES.items():
        assert found.reached[level] * stretches <= most_alarms(stretches, float(chance))
    assert found.raw_ever > 0.05  # as looks at it daily do


def most_alarms(stretches: int, chance: float) -> int:
    """The least number that is exceeded less often than ``MISTAKEN``: binomial."""
    tail, alarms = 1.0, -1
    while tail >= MISTAKEN:
        alarms += 1
        tail -= comb(stretches, alarms) * chance**alarms * (1 - chance) ** (stretches - alarms)
    return alarms


def test_whole_years_with_every_stream_raise_no_alarm() -> None:
    assert set(whole_years(np.random.default_rng(7), years=2, rounds_a_day=200, days=90)) == {Level.NONE}


def test_the_quick_simulation_is_of_the_same_bets_as_play() -> None:
    """The share of each cell is how often it is played, and its gains are those the rounds have."""
    cells = Cells.of(played(MAX_EXPECTATION))
    assert cells.chances.sum() == pytest.approx(1)
    batch = settled(np.random.default_rng(8), 200_000, played(MAX_EXPECTATION))
    evidence = Evidence.none().after_payouts(RULES, batch, 0)
    spread = np.sqrt(200_000 * (cells.chances @ cells.gains**2))
    gains = np.concatenate((evidence.bets["main"].gains, evidence.bets["rankings"].gains))
    missed = abs(gains - 200_000 * (cells.chances @ cells.gains))
    assert (missed < 5 * spread + 1).all()


def test_the_strongest_stream_is_the_one_with_most_of_the_money() -> None:
    evidence = Evidence.none().after(
        RULES, settled(np.random.default_rng(9), 3_000, played(MAX_EXPECTATION)), 0
    )
    assert strongest(evidence) in evidence.streams
