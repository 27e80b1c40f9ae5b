"""Stopping: running requests finish, none is cut, nothing is left behind, and a second start finds everything."""

from __future__ import annotations

import os
import re
import secrets
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import requests

from casino_brag.db.embedded import EmbeddedServer
from tests.running import Player, RunningService, together

LOAD_THREADS = 6
SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def stopping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[RunningService, int]]:
    """A service, and the signal that this test stops it by."""
    with RunningService.start(tmp_path, workers=2) as running:
        yield running, request.param


def stop(service: RunningService, number: int) -> int:
    """Stops it as the signal's usual sender does: a supervisor signals the process, a terminal all of its processes."""
    process, service.process = service.process, None
    assert process is not None
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    code = process.wait(timeout=60)
    assert processes_of(process.pid) == []
    return code


def processes_of(group: int) -> list[int]:
    """The processes that still belong to a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[2]) == group:
                found.append(int(entry.name))
    return found


class Load:
    """Players who each send one request after another over new connections, until none is taken any more."""

    def __init__(self, players: list[Player]) -> None:
        self.answered: dict[str, requests.Response] = {}
        self.cut: dict[str, str] = {}
        self.refused = 0
        self._threads = [threading.Thread(target=self._play, args=[player]) for player in players]
        for thread in self._threads:
            thread.start()

    def go_on_until(self, answers: int) -> None:
        """Lets the players play until so many requests were answered."""
        deadline = time.monotonic() + 60
        while len(self.answered) < answers:
            assert time.monotonic() < deadline, f"no {answers} answers in a minute"
            time.sleep(0.05)

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(timeout=60)
            assert not thread.is_alive()

    def _play(self, player: Player) -> None:
        round_id = None
        while True:
            key = secrets.token_hex(8)
            path, body = "/v1/rounds", b'{"ante_minor": 5}'
            if round_id is not None:
                path, body = f"/v1/rounds/{round_id}/decision", b'{"decision": "fold"}'
            headers = player.headers(key) | {"Connection": "close"}
            try:
                answer = requests.post(player.base + path, body, headers=headers, timeout=30)
            except requests.RequestException as failure:
                if "refused" in str(failure):
                    self.refused += 1
                    return
                self.cut[key] = str(failure)
                continue
            self.answered[key] = answer
            round_id = answer.json()["round_id"] if round_id is None else None


def test_no_request_is_cut_by_a_stop_under_load(stopping: tuple[RunningService, int]) -> None:
    service, number = stopping
    operator = service.operator()
    load = Load([operator.player() for _ in range(LOAD_THREADS)])
    load.go_on_until(50)
    assert stop(service, number) == 0
    load.wait()

    assert load.refused == LOAD_THREADS
    assert {answer.status_code for answer in load.answered.values()} == {200, 201}
    assert load.cut == {}
    with service.connect() as conn:
        kept = dict(conn.execute("SELECT idempotency_key, body FROM answer").fetchall())
    assert kept == {key: answer.text for key, answer in load.answered.items()}
    assert service.broken_laws() == {}


def test_requests_that_run_or_queue_when_the_stop_comes_are_answered(
    stopping: tuple[RunningService, int],
) -> None:
    service, number = stopping
    operator = service.operator()
    sessions = [operator.player(player="slow") for _ in range(30)]  # more than there are threads
    with ThreadPoolExecutor() as pool:
        with service.held_up(sessions[0]) as wait_for:
            calls = [partial(session.open, 100, key="one") for session in sessions]
            answering = pool.submit(together, calls)
            wait_for(8)
            stopped = pool.submit(stop, service, number)
            time.sleep(1.0)
            assert not stopped.done()
        answers = answering.result()
        assert stopped.result() == 0
    assert Counter(answer.status_code for answer in answers) == {201: len(sessions)}
    assert len({answer.content for answer in answers}) == 1
    assert service.broken_laws() == {}


def demonstration_operators(service: RunningService) -> list[str]:
    """The line of each greeting that shows the demonstration operator's key."""
    return re.findall(r"^  Operator .*$", service.log(), re.MULTILINE)


def test_a_second_start_finds_everything_and_makes_nothing_anew(
    stopping: tuple[RunningService, int],
) -> None:
    service, number = stopping
    operator = service.operator()
    player = operator.real_player(1_000)
    first = player.open(100, 50, key="k")
    count = "SELECT array_agg(name), (SELECT array_agg(digest) FROM paytable_version) FROM operator"
    with service.connect() as conn:
        before = conn.execute(count).fetchone()
    service.server.release()  # from here on only the service uses the database
    assert stop(service, number) == 0
    assert not (service.data_dir / "postgres" / "postmaster.pid").exists()
    with pytest.raises(requests.ConnectionError):
        requests.get(service.base + "/healthz", timeout=5)

    with EmbeddedServer.attach(service.data_dir) as server:
        service.server = server
        service.launch()
        assert len(demonstration_operators(service)) == 2
        assert len(set(demonstration_operators(service))) == 1
        with service.connect() as conn:
            assert conn.execute(count).fetchone() == before
        again = player.again().open(100, 50, key="k")
        assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
        settled = player.again().decide(first.json()["round_id"], "play")
        assert settled.status_code == 200
        assert settled.json()["player_cards"] == first.json()["player_cards"]
        assert operator.deposit("another", 5).status_code == 201
        assert service.broken_laws() == {}
        assert stop(service, number) == 0
