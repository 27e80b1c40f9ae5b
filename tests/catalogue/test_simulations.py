"""Queued simulations: played once and whole, whatever is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors as pg

from casino_brag.catalogue import simulations
from casino_brag.catalogue.drafts import create_draft, save_draft
from casino_brag.catalogue.guards import check_text
from casino_brag.catalogue.paytables import Shelf
from casino_brag.catalogue.simulations import (
    BEGINNINGS_MAX,
    QUEUE_MAX,
    ROUNDS_MAX,
    ROUNDS_MIN,
    SEED_BYTES,
    Simulation,
    SimulationState,
    cancel_simulation,
    list_simulations,
    queue_simulation,
    read_simulation,
)
from casino_brag.cli import simulating
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import ServiceError
from casino_brag.jobs.simulations import Simulations
from casino_brag.odds.strategies import MAX_RTP, Strategy
from casino_brag.simulation import plan as of_command
from casino_brag.simulation.ctr_drbg import SEED_BYTES as DRBG_SEED_BYTES
from casino_brag.simulation.plan import CHUNK_ROUNDS, Plan, StakePattern
from casino_brag.simulation.state import Progress
from casino_brag.simulation.verdict import judge
from casino_brag.staff.people import Role, revoke
from tests.catalogue.persons import GAME, SAID, person
from tests.inprocess import AppHouse, app_house_in

ENDS_SECONDS = 120

WORKER = """
import os, time
from casino_brag.db.pool import Database
from casino_brag.jobs.simulations import Simulations
url = os.environ["DATABASE_URL"]
Simulations(url).attend(Database(url, pool_size=1).connection)
time.sleep(600)
"""
"""A worker that attends to simulations once, and then does nothing."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("simulations")) as started:
        yield started


@pytest.fixture
def conn(house: AppHouse) -> Iterator[psycopg.Connection[Any]]:
    """A connection as the application has them; afterwards nothing waits any more."""
    with house.service.database.connection() as conn:
        yield conn
        by = person(conn, Role.EDITOR)
        for found in list_simulations(conn, limit=200):
            if not found.state.is_over:
                cancel_simulation(conn, by, found.simulation_id)


@pytest.fixture
def worker(house: AppHouse) -> Iterator[Simulations]:
    """The job as a worker has it; its child is gone afterwards."""
    job = Simulations(house.config.database_url)
    yield job
    if job.pid is not None:
        kill(job)


def kill(job: Simulations) -> None:
    assert job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    until(lambda: job.pid is None)


def until(holds: Callable[[], bool], seconds: float = ENDS_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def attended(
    house: AppHouse, job: Simulations, simulation_id: UUID, holds: Callable[[Simulation], bool]
) -> Simulation:
    """The simulation, once this holds of it; meanwhile the job is attended to as a worker does."""

    def is_so() -> bool:
        job.attend(house.service.database.connection)
        return holds(found())

    def found() -> Simulation:
        with house.service.database.connection() as conn:
            return read_simulation(conn, simulation_id)

    until(is_so)
    return found()


def plays(conn: psycopg.Connection[Any]) -> bool:
    return conn.execute("SELECT simulation_player() IS NOT NULL").fetchone() == (True,)


def further(house: AppHouse, job: Simulations, before: Simulation) -> Simulation:
    """The simulation, once more of it is played than before."""
    return attended(house, job, before.simulation_id, lambda now: now.rounds_done > before.rounds_done)


def over(found: Simulation) -> bool:
    return found.state.is_over


def entries(conn: psycopg.Connection[Any], simulation_id: UUID) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry WHERE type LIKE 'simulation.%%'"
        " AND after ->> 'simulation_id' = %s ORDER BY entry_id",
        [str(simulation_id)],
    ).fetchall()
    return [json.loads(text) for (text,) in rows]


def plan_of(conn: psycopg.Connection[Any], found: Simulation) -> Plan:
    """The plan that the command `simulate` makes of the same paytable, rounds, strategy and seed."""
    row = conn.execute("SELECT version_id FROM paytable_version WHERE digest = %s", [found.digest]).fetchone()
    assert row is not None
    paytable = Shelf().version(conn, row[0]).paytable
    pattern = StakePattern.smallest(paytable)
    return Plan(paytable, Strategy.parse(found.strategy), pattern, found.rounds, found.seed)


def told(plan: Plan) -> dict[str, Any]:
    """What the command tells of a plan that is played without an interruption."""
    progress = Progress(plan)
    for chunk in range(plan.chunks):
        progress.add(chunk, plan.play(chunk))
    return judge(plan, progress.tally).document()


def refused(code: str, call: Callable[[], Any]) -> ServiceError:
    with pytest.raises(ServiceError) as error:
        call()
    assert error.value.code.value == code
    return error.value


def test_the_bounds_are_those_of_the_command_or_narrower() -> None:
    assert of_command.ROUNDS_MIN == ROUNDS_MIN
    assert of_command.ROUNDS_MAX >= ROUNDS_MAX
    assert SEED_BYTES == DRBG_SEED_BYTES


def test_what_is_played_is_what_the_command_plays(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    by, rounds = person(conn, Role.EDITOR), 2 * CHUNK_ROUNDS + 12_345
    queued = queue_simulation(conn, by, GAME, rounds=rounds, strategy=MAX_RTP)
    assert (queued.state, queued.version, queued.draft, queued.queued_by) == ("queued", 1, None, by.name)
    done = attended(house, worker, queued.simulation_id, over)
    document = told(plan_of(conn, done))
    assert (done.state, done.conclusion) == ("done", document["conclusion"])
    assert done.rounds_done == rounds
    assert done.result is not None
    assert {name: document[name] for name in done.result.keys() - {"stakes"}} == {
        name: done.result[name] for name in done.result.keys() - {"stakes"}
    }
    assert done.result["stakes"] == document["plan"]["stakes"]


def test_a_course_begins_early_ends_with_all_rounds_and_tells_what_so_many_rounds_say(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    rounds = CHUNK_ROUNDS + 1_000_000
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=rounds)
    done = attended(house, worker, queued.simulation_id, over)
    at = [point["rounds"] for point in done.course]
    assert at == [ROUNDS_MIN * 2**doubled for doubled in range(6)] + [CHUNK_ROUNDS, rounds]
    plan = plan_of(conn, done)
    for point in done.course:
        of_point = told(replace(plan, rounds=point["rounds"]))["figures"]
        for name, estimate in point["figures"].items():
            assert estimate["simulated"] == of_point[name]["simulated"]
            assert of_point[name]["high"] - of_point[name]["low"] == pytest.approx(2 * estimate["half_width"])
    widths = [point["figures"]["main_rtp"]["half_width"] for point in done.course]
    assert widths == sorted(widths, reverse=True)


def test_whatever_is_killed_no_chunk_is_lost_or_counted_twice(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=40 * CHUNK_ROUNDS)
    for _ in range(2):
        further(house, worker, read_simulation(conn, queued.simulation_id))
        kill(worker)
    assert read_simulation(conn, queued.simulation_id).rounds_done < queued.rounds, (
        "killed in the midst of it"
    )
    done = attended(house, worker, queued.simulation_id, over)
    document = told(plan_of(conn, done))
    assert done.result is not None
    assert (done.conclusion, done.result["figures"]) == (document["conclusion"], document["figures"])
    assert [kind["type"] for kind in entries(conn, done.simulation_id)] == [
        "simulation.queued",
        "simulation.completed",
    ]


def test_of_two_workers_one_plays_and_the_other_takes_over_from_where_it_was_killed(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MAX)
    first = further(house, worker, queued)
    other = Simulations(house.config.database_url)
    assert other.attend(house.service.database.connection) == 0
    assert not simulations.take(conn)
    kill(worker)
    try:
        later = further(house, other, first)
    finally:
        kill(other)
    assert later.state is SimulationState.RUNNING
    at = [point["rounds"] for point in later.course]
    assert at == sorted(set(at))


def test_a_child_whose_worker_is_killed_plays_no_longer(
    house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MAX)
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], env={**os.environ, "DATABASE_URL": house.config.database_url}
    ) as worker:
        until(lambda: plays(conn))
        worker.kill()
    until(lambda: not plays(conn), 20)


def test_a_connection_that_the_database_ends_is_gone_on_from(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MAX)
    first = further(house, worker, queued)
    with house.connect(DatabaseRole.SUPERUSER) as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = simulation_player()"
        )
    until(lambda: worker.pid is None)
    later = further(house, worker, first)
    assert later.state is SimulationState.RUNNING


def test_a_cancelled_simulation_stops_being_played_and_stays_cancelled(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    by = person(conn, Role.AUDITOR)
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MAX)
    further(house, worker, queued)
    cancelled = cancel_simulation(conn, by, queued.simulation_id)
    assert cancelled.state is SimulationState.CANCELLED
    until(lambda: worker.pid is None)
    again = read_simulation(conn, queued.simulation_id)
    assert (again.state, again.rounds_done, again.conclusion) == ("cancelled", cancelled.rounds_done, None)
    refused("wrong_state", lambda: cancel_simulation(conn, by, queued.simulation_id))
    entry = entries(conn, queued.simulation_id)[-1]
    assert (entry["type"], entry["actor"]) == ("simulation.cancelled", by.actor)
    assert (entry["before"]["state"], entry["after"]["state"]) == ("running", "cancelled")


def test_what_plays_gives_way_to_everything_else(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    further(house, worker, queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MAX))
    assert worker.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == 19


def test_they_are_played_in_the_order_of_the_queue(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations
) -> None:
    by = person(conn, Role.EDITOR)
    queued = [queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN).simulation_id for _ in range(3)]
    attended(house, worker, queued[-1], over)
    begun = [read_simulation(conn, one).begun_at for one in queued]
    assert None not in begun
    assert begun == sorted(moment for moment in begun if moment is not None)


def test_the_queue_is_bounded_and_what_was_cancelled_makes_room(
    house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    by = person(conn, Role.EDITOR)
    queued = [queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN) for _ in range(QUEUE_MAX)]
    refused("rate_limited", lambda: queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN))
    cancel_simulation(conn, by, queued[3].simulation_id)
    assert queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN).state is SimulationState.QUEUED


@pytest.mark.parametrize("rounds", [0, ROUNDS_MIN - 1, ROUNDS_MAX + 1])
def test_rounds_have_bounds(house: AppHouse, conn: psycopg.Connection[Any], rounds: int) -> None:
    error = refused("invalid", lambda: queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=rounds))
    assert error.errors is not None
    assert error.errors.keys() == {"rounds"}


def test_what_is_not_there_is_not_queued(house: AppHouse, conn: psycopg.Connection[Any]) -> None:
    by = person(conn, Role.EDITOR)
    refused("not_found", lambda: queue_simulation(conn, by, "no-such-game", rounds=ROUNDS_MIN))
    refused("not_found", lambda: queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN, version=99))
    refused("not_found", lambda: read_simulation(conn, uuid4()))
    refused("not_found", lambda: cancel_simulation(conn, by, uuid4()))


def test_who_has_retired_or_is_another_queues_and_cancels_nothing(
    house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    by = person(conn, Role.EDITOR)
    queued = queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN)
    misnamed = replace(by, name=person(conn, Role.EDITOR).name)
    with pytest.raises(pg.CheckViolation, match="names somebody else"):
        queue_simulation(conn, misnamed, GAME, rounds=ROUNDS_MIN)
    with pytest.raises(pg.CheckViolation, match="names somebody else"):
        cancel_simulation(conn, misnamed, queued.simulation_id)
    with house.connect() as owner:
        revoke(owner, by.name, SAID)
    with pytest.raises(pg.RestrictViolation):
        queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN)
    with pytest.raises(pg.RestrictViolation):
        cancel_simulation(conn, by, queued.simulation_id)


def test_only_the_connection_that_plays_says_what_was_played(
    house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MIN)
    for call in (
        lambda: simulations.begin(conn),
        lambda: simulations.keep(conn, queued.simulation_id, 1, {}, [], {}),
        lambda: simulations.conclude(conn, queued.simulation_id, "agrees", [], {}),
        lambda: simulations.give_up(conn, queued.simulation_id, "because"),
    ):
        with pytest.raises(pg.RestrictViolation):
            call()
    assert read_simulation(conn, queued.simulation_id) == queued


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE simulation SET conclusion = 'disagrees' WHERE simulation_id = %s",
        "UPDATE simulation SET state = 'queued', ended_at = NULL, conclusion = NULL WHERE simulation_id = %s",
        "DELETE FROM simulation WHERE simulation_id = %s",
    ],
)
def test_a_simulation_that_is_over_is_kept_as_it_is(
    house: AppHouse, conn: psycopg.Connection[Any], worker: Simulations, statement: str
) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MIN)
    attended(house, worker, queued.simulation_id, over)
    with house.connect() as owner, pytest.raises(pg.RestrictViolation):
        owner.execute(statement, [queued.simulation_id])


@pytest.mark.parametrize(
    "column", ["rounds = 7", "strategy = 'max_rtp'", "seed = decode(repeat('00', 48), 'hex')"]
)
def test_what_is_to_be_played_is_not_changed_meanwhile(
    house: AppHouse, conn: psycopg.Connection[Any], column: str
) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MIN)
    with house.connect() as owner, pytest.raises(pg.RestrictViolation):
        owner.execute(f"UPDATE simulation SET {column} WHERE simulation_id = %s", [queued.simulation_id])


def test_what_cannot_be_played_fails_with_a_reason_and_the_next_one_is_played(
    house: AppHouse, conn: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    by = person(conn, Role.EDITOR)
    bad, good = (queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN).simulation_id for _ in range(2))
    play = Plan.play

    def broken(plan: Plan, chunk: int) -> Any:
        if plan.seed == read_simulation(conn, bad).seed:
            raise ValueError("nothing fits")
        return play(plan, chunk)

    monkeypatch.setattr(Plan, "play", broken)
    played_here(house)
    failed = read_simulation(conn, bad)
    assert (failed.state, failed.failure, failed.conclusion) == ("failed", "nothing fits", None)
    assert entries(conn, bad)[-1]["after"]["failure"] == "nothing fits"
    assert read_simulation(conn, good).state is SimulationState.DONE


def played_here(house: AppHouse) -> None:
    """Plays the queue in this process, on a connection that is closed afterwards."""
    with psycopg.connect(house.config.database_url, autocommit=True) as conn:
        conn.execute("SET ROLE casino_brag_app")
        until(partial(simulations.take, conn))  # once the server has seen another player leave
        simulating.play_queue(conn)


def test_one_that_comes_no_further_is_given_up(house: AppHouse, conn: psycopg.Connection[Any]) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MIN)
    for _ in range(BEGINNINGS_MAX):
        with psycopg.connect(house.config.database_url, autocommit=True) as dying:
            until(partial(simulations.take, dying))  # once the server has seen the one before leave
            assert simulations.begin(dying) is not None
    played_here(house)
    failed = read_simulation(conn, queued.simulation_id)
    assert failed.state is SimulationState.FAILED
    assert "came no further" in str(failed.failure)


def test_what_another_version_began_begins_anew(house: AppHouse, conn: psycopg.Connection[Any]) -> None:
    queued = queue_simulation(conn, person(conn, Role.EDITOR), GAME, rounds=ROUNDS_MIN)
    with psycopg.connect(house.config.database_url, autocommit=True) as other:
        assert simulations.take(other)
        assert simulations.begin(other) is not None
        progress = {"plan": {"casino_brag": "0.0.1", "chunk_rounds": 7}}
        course = [{"rounds": 99, "figures": {}}]
        assert simulations.keep(other, queued.simulation_id, 99, progress, course, {})
    played_here(house)
    done = read_simulation(conn, queued.simulation_id)
    document = told(plan_of(conn, done))
    assert done.result is not None
    assert (done.conclusion, done.result["figures"]) == (document["conclusion"], document["figures"])
    assert [point["rounds"] for point in done.course] == [ROUNDS_MIN]


def test_the_newest_come_first_page_by_page(house: AppHouse, conn: psycopg.Connection[Any]) -> None:
    by = person(conn, Role.EDITOR)
    queued = [queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN).simulation_id for _ in range(4)][::-1]
    first = [found.simulation_id for found in list_simulations(conn, limit=2)]
    assert first == queued[:2]
    then = [found.simulation_id for found in list_simulations(conn, after=first[-1], limit=2)]
    assert then == queued[2:]


def test_a_draft_is_played_as_it_was_when_it_was_queued(
    house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    by = person(conn, Role.EDITOR)
    draft = create_draft(conn, by, GAME, from_version=1)
    first = draft.text.replace("max = 300000", "max = 299995", 1)
    saved = save_draft(conn, by, GAME, draft.number, first, revision=draft.revision)
    queued = queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN, draft=draft.number)
    save_draft(conn, by, GAME, draft.number, draft.text, revision=saved.revision)
    paytable = check_text(GAME, first).paytable
    assert paytable is not None
    assert (queued.version, queued.draft, queued.digest) == (None, draft.number, paytable.digest)
    played_here(house)
    assert read_simulation(conn, queued.simulation_id).state is SimulationState.DONE


def test_a_draft_that_is_no_paytable_yet_is_not_queued(
    house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    by = person(conn, Role.EDITOR)
    draft = create_draft(conn, by, GAME, text="unfinished =")
    error = refused(
        "invalid", lambda: queue_simulation(conn, by, GAME, rounds=ROUNDS_MIN, draft=draft.number)
    )
    assert error.errors is not None
    assert error.errors.keys() == {"draft"}
