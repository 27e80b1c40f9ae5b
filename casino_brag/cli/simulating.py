"""The program that plays queued simulations, one after the other until none waits: what `worker` starts as a child.

It is a process of its own because the worker's belongs to live rounds: nothing there imports what plays simulated
ones, and this one gives way to everything else the machine has to do.  It may be killed at any time.  What was kept
last, a second ago at the most, is gone on from, by whoever plays next.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import psycopg

from casino_brag.catalogue import simulations
from casino_brag.catalogue.simulations import BEGINNINGS_MAX, Begun
from casino_brag.db.pool import Database
from casino_brag.errors import ServiceError, SetUpError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.strategies import Strategy
from casino_brag.simulation.plan import CHUNK_ROUNDS, ROUNDS_MIN, Plan, StakePattern
from casino_brag.simulation.state import Progress
from casino_brag.simulation.verdict import Verdict, judge
from casino_brag.web.parents import die_with_parent

KEEP_SECONDS: Final = 1.0
"""The most work that is lost by a kill, beside the chunk being played."""

POINTS_APART: Final = 1.04
"""Each point of a course has so many times the rounds of the one before, at least: 10^10 rounds have 200 of them."""

INTERRUPTED: Final = 75
"""The exit code when the database was away: whoever is started next goes on."""

_NICE_MAX: Final = 19


def main() -> None:
    """Plays what waits.  The first argument is the parent's process id, `DATABASE_URL` where the queue is."""
    os.nice(_NICE_MAX)
    if not die_with_parent(int(sys.argv[1])):
        return
    try:
        with Database(os.environ["DATABASE_URL"], pool_size=1).connection() as conn:
            play_queue(conn)
    except ServiceError as away:
        sys.stderr.write(f"casino-brag: a simulation was interrupted. {away.detail}\n")
        sys.exit(INTERRUPTED)


def play_queue(conn: psycopg.Connection[Any]) -> None:
    """Plays what waits, unless another connection does already."""
    if simulations.take(conn):
        while begun := simulations.begin(conn):
            try:
                _play(conn, begun)
            except (SetUpError, ValueError) as wrong:
                simulations.give_up(conn, begun.simulation_id, str(wrong))


def _play(conn: psycopg.Connection[Any], begun: Begun) -> None:
    if begun.beginnings > BEGINNINGS_MAX:
        raise SetUpError(
            f"It was begun {BEGINNINGS_MAX} times and came no further. See what the worker logged, and queue it again."
        )
    plan, identifier = _plan(begun), begun.simulation_id
    progress, course = _so_far(begun, plan)
    kept_at = time.monotonic()
    for chunk in progress.remaining():
        progress.add(chunk, plan.play(chunk))
        verdict = judge(replace(plan, rounds=progress.tally.rounds), progress.tally)
        if not course or progress.tally.rounds >= POINTS_APART * course[-1]["rounds"]:
            course.append(_point(verdict))
        if time.monotonic() > kept_at + KEEP_SECONDS:
            kept = progress.document()
            if not simulations.keep(conn, identifier, verdict.plan.rounds, kept, course, _result(verdict)):
                return
            kept_at = time.monotonic()
    verdict = judge(plan, progress.tally)
    if course[-1]["rounds"] < plan.rounds:
        course.append(_point(verdict))
    simulations.conclude(conn, identifier, verdict.conclusion.value, course, _result(verdict))


def _plan(begun: Begun) -> Plan:
    paytable = Paytable.from_document(json.loads(begun.document))
    pattern = StakePattern.smallest(paytable)
    return Plan(paytable, Strategy.parse(begun.strategy), pattern, begun.rounds, begun.seed)


def _so_far(begun: Begun, plan: Plan) -> tuple[Progress, list[dict[str, Any]]]:
    """What is gone on from.  Another version of casino-brag may play the same plan otherwise: then it begins anew."""
    try:
        if begun.progress is not None:
            return Progress.from_document(begun.progress), [*map(dict, begun.course)]
    except ValueError:
        pass
    return Progress(plan), [*_first_points(plan)]


def _first_points(plan: Plan) -> Iterator[dict[str, Any]]:
    """The course within the first chunk: its beginning is played by itself, twice as far each time."""
    rounds = ROUNDS_MIN
    while rounds < min(plan.rounds, CHUNK_ROUNDS):
        beginning = replace(plan, rounds=rounds)
        yield _point(judge(beginning, beginning.play(0)))
        rounds *= 2


def _point(verdict: Verdict) -> dict[str, Any]:
    return {
        "rounds": verdict.plan.rounds,
        "figures": {
            figure.name: {"simulated": float(figure.simulated), "half_width": (figure.high - figure.low) / 2}
            for figure in verdict.figures
            if figure.name.endswith("_rtp")
        },
    }


def _result(verdict: Verdict) -> dict[str, Any]:
    """All that the verdict says, but for what the queue says already."""
    document = verdict.document()
    return {
        "stakes": str(verdict.plan.pattern),
        **{
            name: document[name]
            for name in (
                *("plan_digest", "staked_minor", "returned_minor", "confidence"),
                *("figures", "fits", "impossible", "discards"),
            )
        },
    }


if __name__ == "__main__":
    main()
