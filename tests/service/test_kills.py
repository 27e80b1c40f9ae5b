"""Workers, the service and the database killed under load: every round is untouched or complete, every answer kept."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import requests

from casino_brag.db.embedded import EmbeddedServer
from tests.running import Player, RunningService, code_of, together

PLAYERS = 4
GIVE_UP_SECONDS = 30
PASSING = {"busy", "database_unavailable"}


def kill_workers(service: RunningService) -> None:
    for pid in service.worker_pids():
        os.kill(pid, signal.SIGKILL)


def kill_service(service: RunningService) -> list[int]:
    """The main process and its workers, all at once.  Returns the workers, as do those below."""
    workers = service.worker_pids()
    process, service.process = service.process, None
    assert process is not None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    return workers


def kill_main_process(service: RunningService) -> list[int]:
    """The main process alone: the workers have to see it."""
    workers = service.worker_pids()
    process, service.process = service.process, None
    assert process is not None
    process.kill()
    process.wait(timeout=10)
    return workers


def kill_main_process_at_a_birth(service: RunningService) -> list[int]:
    """The main process, before a new worker has asked the kernel to be told of it."""
    assert service.process is not None
    elder, deadline = service.worker_pids(), time.monotonic() + 10
    service.process.send_signal(signal.SIGTTIN)  # one worker more
    while (workers := service.worker_pids()) == elder:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    (newborn,) = set(workers) - set(elder)
    os.kill(newborn, signal.SIGSTOP)
    kill_main_process(service)
    os.kill(newborn, signal.SIGCONT)
    return workers


def ended(pids: list[int]) -> bool:
    """Whether processes end within a few seconds, without being told again."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not any(
            Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()
            for pid in pids
        ):
            return True
        time.sleep(0.05)
    return False


def kill_database(service: RunningService) -> None:
    note = service.data_dir / "postgres" / "postmaster.pid"
    pid = int(note.read_text().partition("\n")[0])
    assert Path(f"/proc/{pid}/comm").read_text() == "postgres\n"
    os.kill(pid, signal.SIGKILL)


@dataclass
class Request:
    """A request, and the first answer that its sender saw."""

    path: str
    body: dict[str, object]
    key: str = field(default_factory=lambda: secrets.token_hex(12))
    answer: tuple[int, str] | None = None
    attempts: int = 0


class Load:
    """Players who open and decide rounds, and send a request again by its key until it is answered."""

    def __init__(self, service: RunningService, players: list[Player]) -> None:
        self.requests: list[tuple[Player, Request]] = []
        self.faults: list[str] = []
        self._service = service
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._play, args=[player]) for player in players]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=2 * GIVE_UP_SECONDS)
            assert not thread.is_alive()
        assert self.faults == []

    def answered(self) -> int:
        return sum(request.answer is not None for _, request in list(self.requests))

    def _play(self, player: Player) -> None:
        try:
            while not self._stop.is_set():
                opened = self._send(player, Request("/v1/rounds", {"ante_minor": 5, "pair_bonus_minor": 5}))
                round_id = opened.json()["round_id"]
                decision = secrets.choice(["play", "fold"])
                self._send(player, Request(f"/v1/rounds/{round_id}/decision", {"decision": decision}))
        except Exception as fault:  # a thread's failure is told by `finish`
            self.faults.append(repr(fault))

    def _send(self, player: Player, request: Request) -> requests.Response:
        self.requests.append((player, request))
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while True:
            request.attempts += 1
            try:
                answer = player.post(request.path, request.body, key=request.key)
            except requests.RequestException:
                answer = None
            if answer is not None and answer.status_code in {200, 201}:
                request.answer = (answer.status_code, answer.text)
                return answer
            if answer is not None:
                code = code_of(answer)
                assert code in PASSING, answer.text
            assert time.monotonic() < deadline, f"no answer to {request.path} in {GIVE_UP_SECONDS} s"
            time.sleep(0.05)

    def go_on_for(self, seconds: float) -> None:
        """Lets the players play, and sees that they can."""
        before, deadline = self.answered(), time.monotonic() + GIVE_UP_SECONDS
        time.sleep(seconds)
        while self.answered() < before + 4 * PLAYERS:
            assert time.monotonic() < deadline, "the service does not come back"
            time.sleep(0.05)


def test_nothing_is_lost_or_halved_by_kills_under_load(own_service: RunningService) -> None:
    service = own_service
    operator = service.operator()
    with ExitStack() as held:

        def restart_database() -> None:
            held.enter_context(EmbeddedServer.attach(service.data_dir))

        load = Load(service, [operator.player() for _ in range(PLAYERS)])
        load.go_on_for(0.5)
        for _ in range(4):
            kill_workers(service)
            load.go_on_for(0.3)
        for _ in range(2):
            kill_database(service)
            restart_database()
            load.go_on_for(0.3)
        for kill in (kill_service, kill_main_process, kill_main_process_at_a_birth):
            assert ended(kill(service))
            service.launch()
            load.go_on_for(0.3)
        kill_database(service)
        kill_service(service)
        service.launch()  # which starts its database too
        load.go_on_for(0.5)
        load.finish()

        assert service.broken_laws() == {}
        assert sum(request.attempts > 1 for _, request in load.requests) >= PLAYERS
        with service.connect() as conn:
            kept = {
                key: (status, body)
                for key, status, body in conn.execute("SELECT idempotency_key, status, body FROM answer")
            }
            states = dict(conn.execute("SELECT state, count(*) FROM round GROUP BY state").fetchall())
        assert kept == {request.key: request.answer for _, request in load.requests}
        assert states == {"settled": len(load.requests) // 2}
        for player, request in load.requests[-40:]:
            again = player.post(request.path, request.body, key=request.key)
            assert (again.status_code, again.text) == request.answer
            assert again.headers["Idempotency-Replayed"] == "true"


def answered_within(seconds: float, send: Callable[[], requests.Response]) -> requests.Response:
    """Sends a request until it is answered by something else than that it should be sent again."""
    deadline = time.monotonic() + seconds
    while (answer := send()).status_code == 503:
        assert code_of(answer) in PASSING
        assert time.monotonic() < deadline, f"not answered in {seconds} s"
        time.sleep(0.1)
    return answer


def assert_refused_for_now(answer: requests.Response) -> None:
    """A 503 that came in bounded time and says when to try again."""
    assert code_of(answer) in PASSING
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.elapsed.total_seconds() < 7


def test_the_service_recovers_by_itself_when_its_database_does(own_service: RunningService) -> None:
    service = own_service
    operator = service.operator()
    player = operator.player()
    round_id = player.open(100).json()["round_id"]
    workers = service.worker_pids()

    kill_database(service)
    calls = (
        partial(player.again().decide, round_id, "play", key="k"),
        partial(player.again().open, 100),
        partial(player.again().get, "/v1/session"),
        partial(operator.deposit, "p", 100, key="d"),
    )
    for answer in together(calls):
        assert_refused_for_now(answer)
    ready = requests.get(service.base + "/readyz", timeout=10)
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert requests.get(service.base + "/healthz", timeout=2).status_code == 200

    with EmbeddedServer.attach(service.data_dir):
        service.wait_until_it_answers("/readyz")
        settled = answered_within(10, lambda: player.decide(round_id, "play", key="k"))
        assert settled.status_code == 200
        assert service.worker_pids() == workers, "nothing had to be started again"
        deposit = answered_within(10, lambda: operator.deposit("p", 100, key="d"))
        assert deposit.json()["balance_minor"] == 100
        assert service.broken_laws() == {}
