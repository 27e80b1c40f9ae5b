from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from distributed import LocalCluster

from casino_brag.errors import SetUpError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.strategies import MAX_EXPECTATION
from casino_brag.simulation import engines
from casino_brag.simulation import plan as plan_module
from casino_brag.simulation.engines import Tallies, dask, local
from casino_brag.simulation.plan import CHUNK_ROUNDS, Plan, StakePattern
from casino_brag.simulation.state import Progress
from casino_brag.simulation.tally import Tally

# Six chunks, the last one short, at stakes whose number divides no chunk.
PLAN = Plan(
    Paytable.load("paytables/three-card-brag.toml"),
    MAX_EXPECTATION,
    StakePattern.parse("100+100,200,300x5"),
    5 * CHUNK_ROUNDS + 100_000,
    bytes(range(48)),
)
LOOPBACK = "127.0.0.1:0"
LONG = replace(PLAN, rounds=40 * CHUNK_ROUNDS)


def played(plan: Plan, tallies: Tallies) -> Tally:
    """All chunks' tallies as one; an error when a chunk is missing, comes twice or is of another plan."""
    progress = Progress(plan)
    for chunk, tally in tallies:
        progress.add(chunk, tally)
    assert progress.remaining() == []
    return progress.tally


@pytest.fixture(scope="module")
def alone() -> Tally:
    """What one process makes of the plan."""
    return played(PLAN, local(PLAN, range(PLAN.chunks), 1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=LOOPBACK, host="127.0.0.1"
    ) as cluster:
        yield cluster


@pytest.fixture
def address(cluster: LocalCluster) -> str:
    return str(cluster.scheduler_address).removeprefix("tcp://")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def children() -> list[int]:
    """The processes of the local engine; a cluster's are children too, of other names."""
    return [
        child.pid
        for child in multiprocessing.active_children()
        if child.pid is not None and child.name.startswith("SpawnProcess")
    ]


def test_one_process_and_two_play_the_same_rounds(alone: Tally) -> None:
    assert played(PLAN, local(PLAN, range(PLAN.chunks), 2)) == alone
    assert children() == []


def test_any_chunks_can_be_asked_for_by_themselves(alone: Tally) -> None:
    progress = Progress(PLAN)
    for part in ([4, 1], [5], [0, 3, 2]):
        asked = dict(local(PLAN, part, 1))
        assert list(asked) == part
        for chunk, tally in asked.items():
            progress.add(chunk, tally)
    assert progress.tally == alone


def test_closing_ends_the_workers() -> None:
    with closing(local(LONG, range(LONG.chunks), 2)) as tallies:
        next(tallies)
        workers = children()
        assert len(workers) == 2
    assert children() == []
    assert all(map(gone, workers))


def test_a_worker_process_that_is_killed_is_told_of() -> None:
    with closing(local(LONG, range(LONG.chunks), 2)) as tallies:
        next(tallies)
        os.kill(children()[0], signal.SIGKILL)
        with pytest.raises(SetUpError, match="A worker process was ended from outside"):
            list(tallies)
    assert children() == []


def test_a_cluster_plays_the_same_rounds(address: str, alone: Tally) -> None:
    assert played(PLAN, dask(PLAN, range(PLAN.chunks), address)) == alone


def test_a_lost_worker_s_chunks_are_played_again_and_counted_once(
    cluster: LocalCluster, address: str
) -> None:
    plan = replace(PLAN, rounds=16 * CHUNK_ROUNDS)
    progress = Progress(plan)
    killed = int(next(iter(cluster.workers.values())).pid)
    for chunk, tally in dask(plan, range(plan.chunks), address):
        if chunk == 3:
            os.kill(killed, signal.SIGKILL)
        progress.add(chunk, tally)
    assert progress.remaining() == []
    assert gone(killed)
    assert progress.tally == played(plan, local(plan, range(plan.chunks), 1))


def test_closing_leaves_the_cluster_to_others(address: str, alone: Tally) -> None:
    with closing(dask(LONG, range(LONG.chunks), address)) as tallies:
        next(tallies)
    assert played(PLAN, dask(PLAN, range(PLAN.chunks), address)) == alone


def test_a_worker_of_another_version_plays_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "VERSION", "0.0.7")
    with pytest.raises(SetUpError, match=r"made by casino-brag 0\.0\.7 in chunks") as refused:
        list(dask(PLAN, range(PLAN.chunks), address))
    assert "need casino-brag" in str(refused.value)


def test_a_scheduler_that_is_not_there_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(SetUpError, match=f"No Dask scheduler answers at {address}"):
            list(dask(PLAN, [0], address))


def test_a_cluster_without_workers_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    with LocalCluster(n_workers=0, dashboard_address=LOOPBACK, host="127.0.0.1") as empty:
        address = str(empty.scheduler_address).removeprefix("tcp://")
        with pytest.raises(SetUpError, match="has no worker: start some"):
            list(dask(PLAN, [0], address))


def test_a_scheduler_that_is_lost_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 2)
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=LOOPBACK, host="127.0.0.1"
    ) as lost:
        address = str(lost.scheduler_address).removeprefix("tcp://")
        with closing(dask(LONG, range(LONG.chunks), address)) as tallies:
            next(tallies)
            lost.close()
            with pytest.raises(SetUpError, match=f"The Dask scheduler at {address} was lost"):
                list(tallies)


def test_without_dask_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SetUpError, match="Dask is not installed here"):
        list(dask(PLAN, [0], "127.0.0.1:1"))


def test_workers_that_hang_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "STALL_SECONDS", 0.001)
    with pytest.raises(SetUpError, match=r"No chunk was done for 0\.001 seconds"):
        list(local(PLAN, range(PLAN.chunks), 2))
    assert children() == []
