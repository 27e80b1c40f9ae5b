"""Simulations that staff queues: asked for here, played one at a time by a process of their own, and read here.

Nothing in this room plays: what does is a program apart, that the job worker starts (`casino_brag.jobs.simulations`).
A row holds what is played to the last word, so its result is of exactly that digest, and can be repeated with
``casino-brag simulate --seed``.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Json, Jsonb

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.drafts import read_draft
from casino_brag.catalogue.guards import check_text
from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7
from casino_brag.odds.strategies import MAX_EXPECTATION, Strategy
from casino_brag.staff.people import Person

ROUNDS_MIN: Final = 100_000
ROUNDS_MAX: Final = 10**10
"""Fewer rounds decide nothing (`casino_brag.simulation.plan.ROUNDS_MIN`); more are hours of one core's work, for which
there is the command, and a cluster."""

SEED_BYTES: Final = 48
QUEUE_MAX: Final = 20

BEGINNINGS_MAX: Final = 5
"""So often a simulation is begun without coming any further, before it is given up."""

ACTOR: Final = "system:simulations"


class SimulationState(StrEnum):
    """How far a simulation is."""

    QUEUED = "queued"
    """It waits for its turn."""
    RUNNING = "running"
    """It is being played, or will be gone on with as soon as a worker runs."""
    DONE = "done"
    """All rounds are played, and there is a verdict."""
    FAILED = "failed"
    """It cannot be played."""
    CANCELLED = "cancelled"
    """Somebody ended it before."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self not in (SimulationState.QUEUED, SimulationState.RUNNING)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation as it stands.

    It is of a version or of a draft, by their numbers; `digest` is the paytable's.  `rounds_done` are those that what
    follows is of: `result`, the figures, fits and sums of `casino_brag.simulation.verdict.Verdict.document`, and the
    last point of `course`, each of which has ``rounds`` and for each return to player what was ``simulated``, and the
    ``half_width`` of its 95 % interval.
    """

    simulation_id: UUID
    game: str
    version: int | None
    draft: int | None
    digest: str
    strategy: str
    rounds: int
    seed: bytes
    state: SimulationState
    queued_by: str
    queued_at: datetime
    begun_at: datetime | None
    ended_at: datetime | None
    rounds_done: int
    course: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any] | None
    conclusion: str | None
    failure: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", SimulationState(self.state))


@dataclass(frozen=True, slots=True)
class Begun:
    """A simulation to be played, and how far it came before: `progress` is None at its first beginning."""

    simulation_id: UUID
    document: str
    strategy: str
    rounds: int
    seed: bytes
    beginnings: int
    rounds_done: int
    progress: Mapping[str, Any] | None
    course: Sequence[Mapping[str, Any]]


_SIMULATIONS: Final = """
    SELECT s.simulation_id, s.game, v.version, s.draft, s.digest, s.strategy, s.rounds, s.seed, s.state,
        p.name AS queued_by, s.queued_at, s.begun_at, s.ended_at, s.rounds_done, s.course, s.result, s.conclusion,
        s.failure
    FROM simulation AS s JOIN staff AS p ON p.staff_id = s.queued_by LEFT JOIN paytable_version AS v USING (version_id)
"""


def queue_simulation(
    conn: psycopg.Connection[Any],
    by: Person,
    game: str,
    *,
    rounds: int,
    version: int | None = None,
    draft: int | None = None,
    strategy: Strategy = MAX_EXPECTATION,
    seed: bytes | None = None,
) -> Simulation:
    """Puts a version of a game, one of its drafts, or without either the version it offers in the queue, on record.

    Without a `seed` of 48 bytes it gets a fresh one.  Raises `ServiceError`: not_found, invalid (rounds out of bounds,
    or a draft that is no paytable yet), rate_limited (the queue is full).
    """
    if not ROUNDS_MIN <= rounds <= ROUNDS_MAX:
        problem = f"Give {ROUNDS_MIN:,} to {ROUNDS_MAX:,} rounds."
        raise ServiceError(Code.INVALID, problem, errors={"rounds": [problem]})
    played = _of_version(conn, game, version) if draft is None else _of_draft(conn, game, draft)
    seed = secrets.token_bytes(SEED_BYTES) if seed is None else seed
    simulation_id = uuid7()
    entry = Entry(
        type=EntryType.SIMULATION_QUEUED,
        occurred_at=clock(conn),
        actor=by.actor,
        after={
            "simulation_id": simulation_id,
            "state": SimulationState.QUEUED.value,
            "game": game,
            "version": played.version,
            "draft": draft,
            "digest": played.digest,
            "strategy": str(strategy),
            "rounds": rounds,
            "seed": seed.hex(),
        },
    )
    row = conn.execute(
        "SELECT simulation_queue(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [
            simulation_id,
            game,
            played.version_id,
            draft,
            played.digest,
            played.document,
            str(strategy),
            rounds,
            seed,
            by.staff_id,
            QUEUE_MAX,
            entry.text(),
        ],
    ).fetchone()
    if row != (True,):
        raise ServiceError(
            Code.RATE_LIMITED,
            f"{QUEUE_MAX} simulations wait already. Wait for one to end, or cancel one.",
            retry_after_seconds=60,
        )
    return read_simulation(conn, simulation_id)


@dataclass(frozen=True, slots=True)
class _Played:
    """What is to be played: `version_id` and `version` are None for a draft."""

    version_id: UUID | None
    version: int | None
    digest: str
    document: str


def _of_version(conn: psycopg.Connection[Any], game: str, version: int | None) -> _Played:
    with conn.cursor(row_factory=class_row(_Played)) as cursor:
        found = cursor.execute(
            """
            SELECT v.version_id, v.version, v.digest, v.document FROM paytable_version AS v
            WHERE v.game = %(game)s AND CASE WHEN %(version)s::bigint IS NULL
                THEN v.version_id = (SELECT g.active_version_id FROM game AS g WHERE g.game = %(game)s)
                ELSE v.version = %(version)s::bigint END
            """,
            {"game": game, "version": version},
        ).fetchone()
    if found is None:
        named = "is no game with a version in force" if version is None else f"has no version {version}"
        raise ServiceError(Code.NOT_FOUND, f"{game!a} {named}. What there is: GET /v1/games.")
    return found


def _of_draft(conn: psycopg.Connection[Any], game: str, draft: int) -> _Played:
    paytable = check_text(game, read_draft(conn, game, draft).text).paytable
    if paytable is None:
        problem = f"Draft {draft} of {game} is no paytable yet: mend what its preview says."
        raise ServiceError(Code.INVALID, problem, errors={"draft": [problem]})
    return _Played(None, None, paytable.digest, paytable.canonical_bytes().decode())


def read_simulation(conn: psycopg.Connection[Any], simulation_id: UUID) -> Simulation:
    """One simulation; `ServiceError` not_found."""
    with conn.cursor(row_factory=class_row(Simulation)) as cursor:
        found = cursor.execute(f"{_SIMULATIONS} WHERE s.simulation_id = %s", [simulation_id]).fetchone()
    if found is None:
        raise ServiceError(Code.NOT_FOUND, "There is no simulation of this id. See GET /v1/simulations.")
    return found


def list_simulations(
    conn: psycopg.Connection[Any], *, after: UUID | None = None, limit: int = 50
) -> list[Simulation]:
    """The newest simulations, or those older than the one that `after` names."""
    with conn.cursor(row_factory=class_row(Simulation)) as cursor:
        return cursor.execute(
            f"{_SIMULATIONS} WHERE %s::uuid IS NULL OR s.simulation_id < %s ORDER BY s.simulation_id DESC LIMIT %s",
            [after, after, limit],
        ).fetchall()


def cancel_simulation(conn: psycopg.Connection[Any], by: Person, simulation_id: UUID) -> Simulation:
    """Ends a simulation that waits or is being played, on record.

    Raises `ServiceError`: not_found, wrong_state (it has ended).
    """
    found = read_simulation(conn, simulation_id)
    named = {"simulation_id": simulation_id, "game": found.game, "digest": found.digest}
    entry = Entry(
        type=EntryType.SIMULATION_CANCELLED,
        occurred_at=clock(conn),
        actor=by.actor,
        before=named | {"state": found.state.value, "rounds_done": found.rounds_done},
        after=named | {"state": SimulationState.CANCELLED.value},
    )
    row = conn.execute(
        "SELECT simulation_cancel(%s, %s, %s)", [simulation_id, by.staff_id, entry.text()]
    ).fetchone()
    if row != (True,):
        raise ServiceError(Code.WRONG_STATE, "The simulation has ended already.")
    return read_simulation(conn, simulation_id)


def waits(conn: psycopg.Connection[Any]) -> bool:
    """Whether there is a simulation to be played that nobody plays."""
    row = conn.execute(
        "SELECT EXISTS (SELECT FROM simulation WHERE state IN ('queued', 'running')) AND simulation_player() IS NULL"
    ).fetchone()
    return row == (True,)


def take(conn: psycopg.Connection[Any]) -> bool:
    """Makes this connection the one that plays, until it is closed; false while another one is.

    `begin`, `keep`, `conclude` and `give_up` are for that connection alone.
    """
    return conn.execute("SELECT simulation_take()").fetchone() == (True,)


def begin(conn: psycopg.Connection[Any]) -> Begun | None:
    """The simulation to go on with, or the next one of the queue; None when there is none."""
    with conn.cursor(row_factory=class_row(Begun)) as cursor:
        return cursor.execute(
            "SELECT simulation_id, document, strategy, rounds, seed, beginnings, rounds_done, progress, course"
            " FROM simulation_begin()"
        ).fetchone()


def keep(
    conn: psycopg.Connection[Any],
    simulation_id: UUID,
    rounds_done: int,
    progress: Mapping[str, Any],
    course: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any],
) -> bool:
    """Keeps how far it has come, in place of what was kept before; false where somebody has cancelled it."""
    return conn.execute(
        "SELECT simulation_keep(%s, %s, %s, %s, %s)",
        [simulation_id, rounds_done, Jsonb(progress), Json(course), Json(result)],
    ).fetchone() == (True,)


def conclude(
    conn: psycopg.Connection[Any],
    simulation_id: UUID,
    conclusion: str,
    course: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any],
) -> None:
    """Ends a simulation whose rounds are all played, on record, unless somebody has cancelled it meanwhile."""
    entry = _ended(conn, simulation_id, SimulationState.DONE, {"conclusion": conclusion})
    conn.execute(
        "SELECT simulation_end(%s, %s, NULL, %s, %s, %s)",
        [simulation_id, conclusion, Json(course), Json(result), entry.text()],
    )


def give_up(conn: psycopg.Connection[Any], simulation_id: UUID, failure: str) -> None:
    """Ends a simulation that cannot be played, with what is in the way, on record."""
    entry = _ended(conn, simulation_id, SimulationState.FAILED, {"failure": failure})
    conn.execute(
        "SELECT simulation_end(%s, NULL, %s, NULL, NULL, %s)", [simulation_id, failure, entry.text()]
    )


def _ended(
    conn: psycopg.Connection[Any], simulation_id: UUID, state: SimulationState, told: Mapping[str, str]
) -> Entry:
    found = read_simulation(conn, simulation_id)
    named = {"simulation_id": simulation_id, "game": found.game, "digest": found.digest}
    return Entry(
        type=EntryType.SIMULATION_COMPLETED,
        occurred_at=clock(conn),
        actor=ACTOR,
        before=named | {"state": SimulationState.RUNNING.value},
        after=named | {"state": state.value, "rounds": found.rounds, **told},
    )
