"""Starts `casino-brag serve` as a person would, and calls it as operators and players do."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import requests
from click.testing import CliRunner

import casino_brag
from casino_brag.catalogue.signing import signature
from casino_brag.cli import commands
from casino_brag.cli.installation import seal_keys
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.errors import MEANINGS, Code
from casino_brag.sealing import Sealer
from casino_brag.staff.people import Role as StaffRole
from casino_brag.staff.people import Said, add_staff, issue_token
from tests.books import broken_laws
from tests.forked import Forked
from tests.postgres import forget, furnished_programs, quick_programs

START_SECONDS = 60
CALL_SECONDS = 30

T = TypeVar("T")

_PORTS_HELD: list[socket.socket] = []


@dataclass
class Player:
    """A player's session."""

    base: str
    token: str
    http: requests.Session = field(default_factory=requests.Session)
    name: str = ""

    def get(self, path: str, **kwargs: Any) -> requests.Response:
        return self.http.get(self.base + path, headers=self.headers(), timeout=CALL_SECONDS, **kwargs)

    def post(self, path: str, body: Any, *, key: str | None = None) -> requests.Response:
        """`body` is sent as JSON, or as it is when it is bytes."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers(key or secrets.token_hex(8))
        return self.http.post(self.base + path, data=sent, headers=headers, timeout=CALL_SECONDS)

    def open(
        self, ante_minor: int = 100, pair_bonus_minor: int = 0, *, key: str | None = None, **named: Any
    ) -> requests.Response:
        """`named` are further members of the body: `game`, `client_seed`, `commitment`."""
        body = {"ante_minor": ante_minor, **named}
        if pair_bonus_minor:
            body["pair_bonus_minor"] = pair_bonus_minor
        return self.post("/v1/rounds", body, key=key)

    def decide(self, round_id: str, decision: str, **kwargs: Any) -> requests.Response:
        return self.post(f"/v1/rounds/{round_id}/decision", {"decision": decision}, **kwargs)

    def played(self, decision: str = "fold", **named: Any) -> dict[str, Any]:
        """A round that is opened and decided at once, as it is answered when it is settled."""
        opened = self.open(**named)
        assert opened.status_code == 201, opened.text
        settled = self.decide(opened.json()["round_id"], decision)
        assert settled.status_code == 200, settled.text
        return dict(settled.json())

    def proof(self, round_id: str) -> requests.Response:
        return self.get(f"/v1/rounds/{round_id}/proof")

    def next_commitment(self) -> Any:
        """What the session shows of the next round: an object, or None."""
        return self.get("/v1/session").json()["next_commitment"]

    def headers(self, key: str | None = None) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return headers if key is None else headers | {"Idempotency-Key": key}

    def balance_minor(self) -> int:
        return int(self.get("/v1/session").json()["balance_minor"])

    def again(self) -> Player:
        """The same session over a connection of its own, which is open already."""
        twin = Player(self.base, self.token)
        twin.get("/healthz")
        return twin

    def send_only(self, path: str, body: Any, key: str) -> socket.socket:
        """Sends a request and leaves its answer to the caller, who closes the connection."""
        sent = json.dumps(body).encode()
        host, port = self.base.removeprefix("http://").split(":")
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(sent)}"]
        lines += [f"{name}: {value}" for name, value in self.headers(key).items()]
        connection = socket.create_connection((host, int(port)), timeout=CALL_SECONDS)
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + sent)
        return connection


@dataclass
class Operator:
    """An operator's back end, which signs what it sends."""

    base: str
    name: str
    key_id: str
    secret: str

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        timestamp: int | None = None,
        nonce: str | None = None,
    ) -> requests.Response:
        sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        stamp, once = str(timestamp or int(time.time())), nonce or secrets.token_hex(16)
        signed = {
            "X-Operator": self.name,
            "X-Key-Id": self.key_id,
            "X-Timestamp": stamp,
            "X-Nonce": once,
            "X-Signature": signature(self.secret, method, path, stamp, once, sent),
        }
        if sent:
            signed["Content-Type"] = "application/json"
        return requests.request(
            method, self.base + path, data=sent, headers=signed | (headers or {}), timeout=CALL_SECONDS
        )

    def open_session(self, **wanted: Any) -> requests.Response:
        defaults = {
            "player": secrets.token_hex(6),
            "currency": "GBP",
            "mode": "demo",
            "game": "three-card-brag",
        }
        return self.send("POST", "/v1/operator/sessions", defaults | wanted)

    def player(self, **wanted: Any) -> Player:
        """A new session; a new player's unless one is named."""
        answer = self.open_session(**wanted)
        assert answer.status_code == 201, answer.text
        return Player(self.base, answer.json()["token"])

    def player_of_any_game(self) -> Player:
        """A new player's session that is for no game in particular."""
        wanted = {"player": secrets.token_hex(6), "currency": "GBP", "mode": "demo"}
        return Player(self.base, self.send("POST", "/v1/operator/sessions", wanted).json()["token"])

    def deposit(
        self, player: str, amount_minor: int, currency: str = "GBP", key: str = ""
    ) -> requests.Response:
        return self.send(
            "POST",
            f"/v1/operator/players/{player}/deposits",
            {"amount_minor": amount_minor, "currency": currency},
            headers={"Idempotency-Key": key or secrets.token_hex(8)},
        )

    def withdraw(
        self, player: str, amount_minor: int, currency: str = "GBP", key: str = ""
    ) -> requests.Response:
        return self.send(
            "POST",
            f"/v1/operator/players/{player}/withdrawals",
            {"amount_minor": amount_minor, "currency": currency},
            headers={"Idempotency-Key": key or secrets.token_hex(8)},
        )

    def real_player(self, amount_minor: int, currency: str = "GBP", **wanted: Any) -> Player:
        """A new player with real money."""
        name = secrets.token_hex(6)
        assert self.deposit(name, amount_minor, currency).status_code == 201
        return self.player(player=name, currency=currency, mode="real", **wanted)


class RunningService:
    """A service in a process of its own, on the embedded database of a directory of its own."""

    def __init__(
        self, data_dir: Path, *, workers: int, paytables: Path | None, environment: dict[str, str]
    ) -> None:
        self.data_dir = data_dir
        self.checkout = Path.cwd()
        """Whose program is started."""
        self._workers = workers
        self._paytables = paytables
        self._environment = environment
        self.log_path = data_dir.parent / f"{data_dir.name}.log"
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.process: Forked | subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def start(
        cls,
        directory: Path,
        *,
        workers: int = 2,
        paytables: Path | None = None,
        environment: dict[str, str] | None = None,
        bindir: Path | None = None,
    ) -> Iterator[RunningService]:
        """Runs until the block ends; the service and its database are stopped then, whatever happened."""
        running = cls(directory / "data", workers=workers, paytables=paytables, environment=environment or {})
        # Holding on to the database keeps its data readable when the service is killed, and stops it at the end.
        try:
            # A schema of a while ago has a log that nobody sealed for as long.  A start on it is waited for with
            # /readyz, which says more than that where the paytables are others.
            programs = quick_programs if paytables else furnished_programs
            with EmbeddedServer.attach(running.data_dir, bindir=programs(bindir)) as server:
                running.server = server
                try:
                    running.launch()
                    yield running
                finally:
                    running.stop()
        finally:
            forget(running.data_dir)

    server: EmbeddedServer

    def launch(self, *, sound: bool = True) -> None:
        """Starts the service and waits until it can deal; where that is not `sound`, until it answers."""
        words = ["serve", "--port", str(self.port)]
        words += ["--data-dir", str(self.data_dir), "--workers", str(self._workers)]
        if self._paytables is not None:
            words += ["--paytables", str(self._paytables)]
        if self.checkout == Path.cwd() and "PYTHONPATH" not in self._environment:
            self.process = Forked(*words, log=self.log_path, env=self._environment)
        else:  # another program, or another Python
            self.process = self._interpreted(words)
        self.wait_until_it_answers("/readyz" if sound and self._paytables is None else "/healthz")

    def _interpreted(self, words: list[str]) -> subprocess.Popen[bytes]:
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "casino_brag", *words],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.checkout,
                env=os.environ | self._environment,
                start_new_session=True,
            )

    def wait_until_it_answers(self, path: str = "/readyz") -> None:
        """Waits for a 200, for a bounded time."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process is None or self.process.poll() is None, self.log()
            try:
                if requests.get(self.base + path, timeout=5).status_code == 200:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.1)
        raise AssertionError(f"the service did not answer in {START_SECONDS} s:\n{self.log()}")

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """Stops the service and returns its exit code; the database runs on."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(with_signal)
        try:
            return process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise

    def worker_pids(self) -> list[int]:
        """The service's worker processes."""
        return [pid for pid in self._children() if pid not in self.job_worker_pids()]

    def job_worker_pids(self) -> list[int]:
        """The process that attends to jobs, if it runs."""
        return [pid for pid in self._children() if b"\0worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def _children(self) -> list[int]:
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children]

    def log(self) -> str:
        """Everything the service has printed."""
        return self.log_path.read_text(errors="replace")

    def operator(self, name: str | None = None, *extra: str) -> Operator:
        """A new operator, added by the command, which runs in this process: that is faster."""
        command = ["operator", "add", name or "op-" + secrets.token_hex(4), *extra]
        command += ["--json", "--data-dir", str(self.data_dir)]
        done = CliRunner().invoke(commands, command, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        made = json.loads(done.stdout)
        return Operator(self.base, made["operator"], made["key_id"], made["secret"])

    def staff(self, *roles: str) -> Player:
        """A new person of staff with these roles, who calls with a token as a player does."""
        with self.connect() as conn:
            return new_staff(conn, self.base, *roles)

    @property
    def sealer(self) -> Sealer:
        """Seals with the keys of the installation."""
        return Sealer(seal_keys(self.data_dir))

    @contextmanager
    def connect(self, role: Role = Role.OWNER) -> Iterator[psycopg.Connection[Any]]:
        """A connection to the service's database."""
        with psycopg.connect(self.server.url(role), autocommit=True) as conn:
            yield conn

    def broken_laws(self) -> dict[str, list[Any]]:
        """The laws of the books that do not hold now."""
        with self.connect() as conn:
            return broken_laws(conn)

    @contextmanager
    def held_up(self, player: Player) -> Iterator[Callable[[int], None]]:
        """Keeps a player's money from being moved for the length of the block, which may last 5 s at most.

        What is given waits until so many requests have read all they need and want to write.
        """
        find = "SELECT FROM player JOIN session USING (player_id) WHERE token_hash = sha256(%s) FOR UPDATE OF player"
        with self.connect() as holder, self.connect() as watcher, holder.transaction():
            holder.execute(find, [player.token.encode()])

            def wait_for(requests_waiting: int) -> None:
                deadline = time.monotonic() + 3
                while time.monotonic() < deadline:
                    found = watcher.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
                    if found is not None and found[0] >= requests_waiting:
                        return
                    time.sleep(0.01)
                raise AssertionError(f"fewer than {requests_waiting} requests came to wait")

            yield wait_for

    def piled_up(self, player: Player, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Makes calls about a player at the same instant, and lets them write when many have read."""
        with ThreadPoolExecutor(1) as pool:
            with self.held_up(player) as wait_for:
                answers = pool.submit(together, calls)
                wait_for(min(len(calls), 8))  # all threads of a worker, if one should have got them all
            return answers.result()

    def command(self, *arguments: str) -> str:
        """What a command of this installation prints; it has to succeed."""
        command = [sys.executable, "-m", "casino_brag", *arguments, "--data-dir", str(self.data_dir)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def copy_of_program(directory: Path) -> Path:
    """Fills a directory with everything that runs, compiled as it is here, and returns it."""
    root = Path(casino_brag.__file__).parents[1]
    for name in ("casino_brag", "migrations", "paytables", "jurisdictions"):
        # Not what another process is compiling at the moment, which has a number for its last suffix.
        shutil.copytree(root / name, directory / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    return directory


def new_staff(conn: psycopg.Connection[Any], base: str, *roles: str) -> Player:
    """A new person of staff with these roles, and a token to call with."""
    said, name = Said(actor="system:tests"), "staff-" + secrets.token_hex(4)
    add_staff(conn, name, map(StaffRole, roles), said)
    return Player(base, issue_token(conn, name, "tests", said).token, name=name)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, and that no test beside this one is given.

    It stays bound here, which keeps the kernel from giving it away, and not from letting a server listen on it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _PORTS_HELD.append(held)
    return int(held.getsockname()[1])


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Makes all calls at the same instant, each in a thread of its own; what they return, in their order."""
    barrier = threading.Barrier(len(calls))

    def make(call: Callable[[], T]) -> T:
        barrier.wait(timeout=CALL_SECONDS)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


def code_of(answer: requests.Response) -> str:
    """The code of a problem, which has to be a whole one: documented, and without a word about our insides."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    problem = answer.json()
    meaning = MEANINGS[Code(problem["code"])]
    expected = {
        "type": f"/docs/problems#{problem['code']}",
        "title": meaning.title,
        "status": meaning.status,
        "retryable": meaning.retryable,
    }
    assert expected.items() <= problem.items()
    assert answer.status_code == meaning.status
    assert ("Retry-After" in answer.headers) == (meaning.retry_after_seconds is not None)
    for inside in (
        "SELECT",
        "INSERT",
        "psycopg",
        "Traceback",
        "constraint",
        "relation",
        "violates",
        'File "',
    ):
        assert inside not in answer.text
    return str(problem["code"])
