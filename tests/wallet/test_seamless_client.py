"""The client of operators' wallets, against a wallet on a real socket that answers as it is told."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

import pytest

from casino_brag import outbound
from casino_brag.catalogue.operators import add_operator, rotate_key, wallet_of
from casino_brag.catalogue.signing import signature
from casino_brag.wallet import seamless
from casino_brag.wallet.seamless import Operation, Reply, Verdict, Wallet, Wallets, judged
from tests.inprocess import AppHouse

BODY = {
    "transaction_id": str(UUID(int=1)),
    "round_id": str(UUID(int=2)),
    "game": "three-card-brag",
    "wager": "ante",
    "amount_minor": 100,
    "currency": "GBP",
    "player": "Zoë 7",
    "round_closed": False,
}
DONE = (200, b'{"status": "done", "balance_minor": 900}')
BROKEN = (500, b"")
SECRET = "sk_never-to-be-told"
LONG = 60.0


@dataclass
class Asked:
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: OperatorsWallet

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(Asked(self.path, dict(self.headers), body))
        status, answer = self.server.answer()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


class OperatorsWallet(ThreadingHTTPServer):
    """A wallet that gives one answer to everything, or what a function makes of the moment."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: list[Asked] = []
        self.answer: Callable[[], tuple[int, bytes]] = lambda: DONE

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/brag"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may go, having had enough
            raise AssertionError


@pytest.fixture
def operators() -> Iterator[OperatorsWallet]:
    with OperatorsWallet() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
    for kept in outbound._shared._idle.values():
        while kept:
            kept.pop().socket.close()


def at(url: str) -> Wallet:
    return Wallet(uuid4(), "casino-1", url, "k_1", SECRET)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """One operator's wallet, the calls to it, and a clock that a test moves."""

    operators: OperatorsWallet
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.wallet = at(self.operators.url)
        self.wallets = Wallets(signature, clock=self.clock)

    def call(self, operation: Operation = Operation.DEBIT) -> Reply:
        return self.wallets.call(self.wallet, operation, BODY)

    def answers(self, answer: tuple[int, bytes]) -> None:
        """Has the wallet answer thus from now on."""
        self.operators.answer = lambda: answer

    def available(self) -> bool:
        return self.wallets.available(self.wallet.operator_id)

    def reached(self) -> bool:
        """Makes a call, and says whether it arrived."""
        before = len(self.operators.asked)
        sent = self.call().sent
        assert sent == (len(self.operators.asked) > before)
        return sent


@pytest.fixture
def bench(operators: OperatorsWallet) -> Bench:
    return Bench(operators)


@pytest.mark.parametrize("operation", Operation)
def test_a_call_is_signed_as_calls_to_us_are(bench: Bench, operation: Operation) -> None:
    before = int(time.time())
    assert bench.call(operation) == Reply(Verdict.DONE, 900)
    (asked,) = bench.operators.asked
    assert asked.path == f"/brag/{operation}"
    assert json.loads(asked.body) == BODY
    told = asked.headers
    assert (told["Content-Type"], told["X-Operator"], told["X-Key-Id"]) == (
        "application/json",
        "casino-1",
        "k_1",
    )
    assert before <= int(told["X-Timestamp"]) <= time.time()
    assert told["X-Signature"] == signature(
        SECRET, "POST", asked.path, told["X-Timestamp"], told["X-Nonce"], asked.body
    )


def test_each_call_has_a_nonce_of_its_own(bench: Bench) -> None:
    for _ in range(20):
        bench.call()
    nonces = {asked.headers["X-Nonce"] for asked in bench.operators.asked}
    assert len(nonces) == 20
    assert all(16 <= len(nonce) <= 64 and nonce.isascii() and nonce.isprintable() for nonce in nonces)


def test_the_secret_is_in_no_text(bench: Bench) -> None:
    assert SECRET not in repr(bench.wallet)
    assert all(SECRET.encode() not in asked.body for asked in bench.operators.asked)


REFUSED = b'{"status": "refused", "reason": "insufficient_funds", "balance_minor": 5}'
NOT_FOUND = b'{"status": "not_found"}'


@pytest.mark.parametrize(
    ("answer", "definite"),
    [
        (DONE[1], dict.fromkeys(Operation, Reply(Verdict.DONE, 900))),
        (REFUSED, {Operation.DEBIT: Reply(Verdict.REFUSED, 5, "insufficient_funds")}),
        (NOT_FOUND, {Operation.CANCEL: Reply(Verdict.NOT_FOUND)}),
        (b'{"status": "not_found", "balance_minor": 0}', {Operation.CANCEL: Reply(Verdict.NOT_FOUND, 0)}),
    ],
)
@pytest.mark.parametrize("operation", Operation)
def test_an_operation_has_its_own_definite_answers(
    operation: Operation, answer: bytes, definite: dict[Operation, Reply]
) -> None:
    reply = judged(operation, 200, answer)
    if operation in definite:
        assert reply == definite[operation]
    else:
        assert (reply.verdict, reply.balance_minor, reply.sent) == (Verdict.UNKNOWN, None, True)


@pytest.mark.parametrize("operation", [Operation.CREDIT, Operation.CANCEL, Operation.BALANCE])
def test_what_cannot_be_refused_is_unknown_and_says_the_reason(operation: Operation) -> None:
    reply = judged(operation, 200, b'{"status": "refused", "reason": "transaction_mismatch"}')
    assert (reply.verdict, reply.reason) == (Verdict.UNKNOWN, "transaction_mismatch")
    assert reply.problem == f"The wallet refused a {operation}: transaction_mismatch."


def test_a_balance_may_be_as_large_as_every_reader_keeps() -> None:
    for balance, verdict in ((0, "done"), (2**53 - 1, "done"), (2**53, "unknown")):
        assert (
            judged(Operation.DEBIT, 200, b'{"status":"done","balance_minor":%d}' % balance).verdict == verdict
        )


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize(
    "answer",
    [
        *(
            (200, b'{"status": "done", "balance_minor": %b}' % balance)
            for balance in (b"-1", b"1.0", b"1e2", b"true", b"null", b'"1"', b"[]", b"NaN", b"9" * 5000)
        ),
        (200, b'{"status": "done"}'),
        (200, b'{"status": "done", "balance_minor": 1, "balance_minor": 1}'),
        (200, b'{"status": "refused", "status": "done", "balance_minor": 1}'),
        (200, b'{"status": "done", "balance_minor": 1, "more": {"a": 1, "a": 2}}'),
        (200, b'{"status": "done", "balance_minor": 1, "more": Infinity}'),
        (200, b'{"status": "refused", "reason": "player_blocked", "balance_minor": -1}'),
        (200, b'{"status": "refused"}'),
        (200, b'{"status": "refused", "reason": 7}'),
        (200, b'{"status": "refused", "reason": "No!"}'),
        (200, b'{"status": "refused", "reason": "%b"}' % (b"a" * 65)),
        (200, b'{"status": "DONE", "balance_minor": 1}'),
        (200, b'{"status": ["done"], "balance_minor": 1}'),
        (200, b'{"balance_minor": 1}'),
        (200, b'[{"status": "done", "balance_minor": 1}]'),
        (200, b'"done"'),
        (200, b""),
        (200, b"<html>done</html>"),
        (200, b'{"status": "done", "balance_minor": 1} and more'),
        (200, b'{"status": "done", "balance_minor": 1, "x": "\xff"}'),
        (200, '{"status": "done", "balance_minor": 1}'.encode("utf-16")),
        (200, b"[" * 60_000),
        (201, DONE[1]),
        (204, b""),
        (302, DONE[1]),
        (401, DONE[1]),
        (422, REFUSED),
        (500, DONE[1]),
    ],
    ids=lambda answer: f"{answer[0]}-{answer[1][:60]!r}",
)
def test_all_else_is_unknown(operation: Operation, answer: tuple[int, bytes]) -> None:
    reply = judged(operation, *answer)
    assert reply.problem is not None
    assert reply == Reply(Verdict.UNKNOWN, problem=reply.problem)
    assert 0 < len(reply.problem) <= 200
    assert all(said not in reply.problem for said in ("No!", "html", "DONE", "aaaa", "9999"))


def test_a_redirect_is_not_followed(bench: Bench) -> None:
    bench.answers((307, b""))
    assert bench.call().problem == "The answer has HTTP status 307."
    assert len(bench.operators.asked) == 1


def test_an_endless_answer_is_unknown(bench: Bench) -> None:
    bench.answers((200, b" " * 65_536 + DONE[1]))
    assert bench.call() == Reply(Verdict.UNKNOWN, problem="The answer is longer than 65536 bytes.")


def test_a_wallet_that_does_not_answer_is_unknown_when_time_is_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def never() -> tuple[int, bytes]:
        over.wait(LONG)
        return DONE

    bench.operators.answer = never
    monkeypatch.setattr(seamless, "ANSWER_SECONDS", 0.2)
    assert bench.call() == Reply(Verdict.UNKNOWN, problem="There is no answer: 0.2 s were over.")
    assert not over.is_set()
    over.set()


def test_a_wallet_that_is_not_there_got_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        wallet = at(f"http://127.0.0.1:{gone.getsockname()[1]}")
    reply = Wallets(signature).call(wallet, Operation.DEBIT, BODY)
    assert reply == Reply(Verdict.UNKNOWN, problem="There is no connection: Connection refused.", sent=False)


def open_the_circuit(bench: Bench) -> None:
    bench.answers(BROKEN)
    assert [bench.reached() for _ in range(seamless.FAILURES_MAX)] == [True] * 3


def test_a_wallet_is_left_alone_after_three_failures_in_a_row(bench: Bench) -> None:
    for answer in (BROKEN, BROKEN, DONE, BROKEN, BROKEN):
        bench.answers(answer)
        assert bench.reached()
        assert bench.available()
    assert bench.reached()
    assert not bench.available()
    reply = bench.call()
    assert (reply.verdict, reply.sent) == (Verdict.UNKNOWN, False)
    assert len(bench.operators.asked) == 6


def test_it_is_left_alone_for_longer_each_time_but_not_for_ever(bench: Bench) -> None:
    open_the_circuit(bench)
    for seconds in (5, 10, 20, 30, 30):
        bench.clock.now += seconds - 0.1
        assert not bench.available()
        assert not bench.reached()
        bench.clock.now += 0.1
        assert bench.available()
        assert bench.reached()
    bench.clock.now += 30
    bench.answers(DONE)
    assert [bench.reached() for _ in range(3)] == [True] * 3
    open_the_circuit(bench)
    bench.clock.now += 5  # and it begins anew
    assert bench.available()


@pytest.mark.parametrize("answer", [DONE, (200, REFUSED)])
def test_a_definite_answer_makes_it_a_wallet_like_others(bench: Bench, answer: tuple[int, bytes]) -> None:
    open_the_circuit(bench)
    bench.clock.now += 5
    bench.answers(answer)
    assert all(bench.reached() for _ in range(5))


def test_a_wallet_that_refuses_credits_is_there_for_debits(bench: Bench) -> None:
    bench.answers((200, b'{"status": "refused", "reason": "transaction_mismatch"}'))
    for _ in range(5):
        assert bench.call(Operation.CREDIT).verdict is Verdict.UNKNOWN
    assert bench.available()


def test_one_operators_wallet_is_not_anothers(bench: Bench) -> None:
    open_the_circuit(bench)
    assert not bench.available()
    bench.answers(DONE)
    assert bench.wallets.call(at(bench.operators.url), Operation.DEBIT, BODY).verdict is Verdict.DONE


@dataclass
class Meeting:
    """Calls that are under way at once: each waits at the wallet until it is let go, with the answer then given."""

    bench: Bench
    answer: tuple[int, bytes] = DONE
    replies: list[Reply] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._go = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self.bench.operators.answer = self._wait

    def _wait(self) -> tuple[int, bytes]:
        self._arrived.release()
        assert self._go.acquire(timeout=LONG)
        return self.answer

    def begin(self, calls: int) -> None:
        """Begins calls, and returns when all have arrived."""
        for _ in range(calls):
            thread = threading.Thread(target=lambda: self.replies.append(self.bench.call()))
            self._threads.append(thread)
            thread.start()
            assert self._arrived.acquire(timeout=LONG)

    def end(self) -> list[Verdict]:
        """Lets all go that wait, and gives what came of them."""
        self._go.release(len(self._threads))
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        return [reply.verdict for reply in self.replies]


@pytest.fixture
def meeting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Meeting:
    monkeypatch.setattr(seamless, "ANSWER_SECONDS", LONG)
    return Meeting(bench)


def test_four_calls_at_once_are_enough(bench: Bench, meeting: Meeting) -> None:
    meeting.begin(4)
    assert not bench.available()
    fifth = bench.call()
    assert (fifth.verdict, fifth.sent) == (Verdict.UNKNOWN, False)
    assert fifth.problem == "4 calls to this wallet are under way, and no more are made at once."
    assert meeting.end() == [Verdict.DONE] * 4
    assert bench.available()
    assert len(bench.operators.asked) == 4


def test_a_call_that_was_one_too_many_tells_nothing_of_the_wallet(bench: Bench, meeting: Meeting) -> None:
    meeting.begin(4)
    for _ in range(2 * seamless.FAILURES_MAX):
        assert not bench.call().sent
    meeting.end()
    assert bench.available()


def test_one_call_at_a_time_tries_a_wallet_that_was_left_alone(bench: Bench, meeting: Meeting) -> None:
    open_the_circuit(bench)
    bench.clock.now += 5
    meeting = Meeting(bench)
    meeting.begin(1)
    assert not bench.available()
    assert not bench.call().sent
    meeting.end()
    assert bench.available()


def test_calls_that_fail_together_count_as_one_opening(bench: Bench, meeting: Meeting) -> None:
    meeting.answer = BROKEN
    meeting.begin(4)
    assert meeting.end() == [Verdict.UNKNOWN] * 4
    assert not bench.available()
    bench.clock.now += 5
    assert bench.available()


def test_a_call_that_breaks_on_our_side_holds_no_place(bench: Bench) -> None:
    bench.wallets = Wallets(signature, calls_max=1)
    with pytest.raises(TypeError):
        bench.wallets.call(bench.wallet, Operation.DEBIT, {"player": object()})
    assert bench.call() == Reply(Verdict.DONE, 900)


FORK = """
import os, sys
from uuid import UUID
from casino_brag.catalogue.signing import signature
from casino_brag.wallet.seamless import Operation, Verdict, Wallet, Wallets
wallets = Wallets(signature)
wallet = Wallet(UUID(int=7), "casino-1", sys.argv[1], "k_1", "secret")
gone = Wallet(UUID(int=8), "casino-2", "http://127.0.0.1:1", "k_1", "secret")
done = lambda: wallets.call(wallet, Operation.BALANCE, {}).verdict is Verdict.DONE
assert done()
for _ in range(3):
    assert wallets.call(gone, Operation.BALANCE, {}).verdict is Verdict.UNKNOWN
assert not wallets.available(gone.operator_id)
wallets._lock.acquire()                 # as another thread may hold it when the fork comes
child = os.fork()
if child == 0:
    assert done() and done() and wallets.available(gone.operator_id)
    os._exit(0)
wallets._lock.release()
assert os.waitpid(child, 0)[1] == 0
assert done() and not wallets.available(gone.operator_id)
"""


def test_a_forked_process_begins_anew(operators: OperatorsWallet) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FORK, operators.url], check=True, timeout=LONG)
    assert len(operators.asked) == 4


def test_an_operators_wallet_is_signed_for_with_its_older_live_key(app_house: AppHouse) -> None:
    name = "op-" + secrets.token_hex(5)
    with app_house.connect() as conn, conn.transaction(force_rollback=True):
        first = add_operator(conn, app_house.sealer, name, actor="system:tests")
        row = conn.execute("SELECT operator_id FROM operator WHERE name = %s", [name]).fetchone()
        assert row is not None
        assert wallet_of(conn, app_house.sealer, row[0]) is None
        conn.execute("UPDATE operator SET wallet_url = 'https://w.example/brag' WHERE name = %s", [name])

        made, signed_with = [first], []
        for _ in range(3):
            wallet = wallet_of(conn, app_house.sealer, row[0])
            assert wallet is not None
            assert (wallet.operator_id, wallet.operator, wallet.url) == (
                row[0],
                name,
                "https://w.example/brag",
            )
            signed_with.append((wallet.key_id, wallet.secret))
            # Within a transaction all is of the same instant.
            conn.execute("UPDATE operator_key SET added_at = added_at - interval '1 day'")
            made.append(rotate_key(conn, app_house.sealer, name, actor="system:tests"))
        assert signed_with == [(made[n].key_id, made[n].secret) for n in (0, 0, 1)]
