"""An operator's own wallet, over HTTP: what is asked of it, and what its answers mean.

A call ends in one of four verdicts and never in an exception.  What is no definite answer of the protocol is
*unknown*, and what follows from that is the caller's: a debit is cancelled, a credit repeated.  A wallet that is down
or slow holds few threads, and for a few seconds only.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NoReturn
from uuid import UUID

import structlog

from casino_brag import outbound

ANSWER_SECONDS: Final = 5.0
"""How long a call may take, from looking the name up to the answer's last byte."""

FAILURES_MAX: Final = 3
"""After how many calls in a row without an answer of the protocol a wallet is left alone."""

OPEN_SECONDS: Final = 5.0
"""How long it is left alone at first.  The time doubles with each trial that fails ..."""

OPEN_SECONDS_MAX: Final = 30.0
"""... up to this."""

BALANCE_MINOR_END: Final = 2**53
"""No balance is this large: whole numbers below it survive every JSON reader."""

_REASON: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PROBLEM_LENGTH_MAX: Final = 200


log = structlog.get_logger("casino_brag.wallet")


class Operation(StrEnum):
    """What a wallet is asked to do; the last part of the URL."""

    DEBIT = "debit"
    """Take a stake from the player."""
    CREDIT = "credit"
    """Pay the player, perhaps nothing, and close the round."""
    CANCEL = "cancel"
    """Undo a debit, or refuse it should it still come."""
    BALANCE = "balance"
    """Say what the player has."""


class Verdict(StrEnum):
    """What an answer, or the lack of one, says of the operation."""

    DONE = "done"
    """It took effect, now or when it was asked for first."""
    REFUSED = "refused"
    """A debit had no effect, and `Reply.reason` says why.  Nothing else can be refused for good."""
    NOT_FOUND = "not_found"
    """There was no debit to cancel, and the wallet will refuse it if it comes late."""
    UNKNOWN = "unknown"
    """It may or may not have taken effect, and `Reply.problem` says why that is not known."""


@dataclass(frozen=True, slots=True)
class Wallet:
    """An operator's wallet: `url` has no slash at its end, and `secret` signs what is sent there."""

    operator_id: UUID
    operator: str
    url: str
    key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call.

    `balance_minor` is the player's balance: always there when an operation is done, never when that is unknown.
    `reason` is the wallet's code for a refusal.  `problem` is a sentence of ours on why the verdict is unknown, for
    the log and the records: at most 200 characters, and nothing of the answer but such a code.  `sent` is False when
    the wallet cannot have got the request, so that there is nothing to cancel.
    """

    verdict: Verdict
    balance_minor: int | None = None
    reason: str | None = None
    problem: str | None = None
    sent: bool = True


@dataclass(slots=True)
class _Circuit:
    """How it goes with one wallet: `failures` in a row, and from the moment it is left alone, for how long."""

    calls: int = 0
    failures: int = 0
    open_seconds: float = 0.0
    open_until: float = 0.0
    on_trial: bool = False

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES_MAX

    def hindrance(self, now: float, calls_max: int) -> str | None:
        """Why no call may be made now; None if one may."""
        if self.calls >= calls_max:
            return f"{calls_max} calls to this wallet are under way, and no more are made at once."
        if self.is_open and (self.on_trial or now < self.open_until):
            return f"The wallet did not answer {FAILURES_MAX} times in a row, and is left alone for a while."
        return None

    def succeeded(self) -> None:
        self.failures, self.open_seconds = 0, 0.0

    def failed(self, now: float) -> None:
        self.failures += 1
        if self.is_open:
            self.open_seconds = min(2 * self.open_seconds or OPEN_SECONDS, OPEN_SECONDS_MAX)
            self.open_until = now + self.open_seconds


class Wallets:
    """The calls of one process to all wallets, shared by its threads.

    At most `calls_max` calls to one operator's wallet are under way at once, and `calls_max_in_all` to all wallets, so
    that some threads are left however many wallets hang; one more is *unknown* at once, and not sent.  So are all
    calls while a wallet is left alone; then one at a time tries it, until one is answered.

    `signature` is how requests are signed (`catalogue.signing`); `clock` gives monotonic seconds.
    """

    def __init__(
        self,
        signature: Callable[[str, str, str, str, str, bytes], str],
        *,
        calls_max: int = 4,
        calls_max_in_all: int = 16,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signature = signature
        self._calls_max = calls_max
        self._calls_max_in_all = calls_max_in_all
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._circuits: defaultdict[UUID, _Circuit] = defaultdict(_Circuit)
        self._calls = 0
        self._process = os.getpid()

    def available(self, operator_id: UUID) -> bool:
        """Whether a call to this operator's wallet would be tried now."""
        self._notice_fork()
        with self._lock:
            return self._hindrance(self._circuits[operator_id]) is None

    def _hindrance(self, circuit: _Circuit) -> str | None:
        if self._calls >= self._calls_max_in_all:
            return f"{self._calls_max_in_all} calls to wallets are under way, and no more are made at once."
        return circuit.hindrance(self._clock(), self._calls_max)

    def call(self, wallet: Wallet, operation: Operation, body: Mapping[str, Any]) -> Reply:
        """Asks once, and says what came of it.  `body` is what the protocol puts into the request, ready for JSON."""
        self._notice_fork()
        with self._lock:
            circuit = self._circuits[wallet.operator_id]
            hindrance = self._hindrance(circuit)
            if hindrance is not None:
                return _unknown(hindrance, sent=False)
            circuit.calls += 1
            self._calls += 1
            trial = circuit.is_open
            circuit.on_trial |= trial
        answered = False
        try:
            reply = self._ask(wallet, operation, body)
            # A refusal that settles nothing, as of a credit, is a wallet's that is up.
            answered = reply.verdict is not Verdict.UNKNOWN or reply.reason is not None
            if reply.problem is not None:
                log.warning(
                    "wallet_unanswered",
                    operator=wallet.operator,
                    operation=operation.value,
                    problem=reply.problem,
                )
        finally:
            with self._lock:
                circuit.calls -= 1
                self._calls -= 1
                circuit.on_trial &= not trial
                if answered:
                    circuit.succeeded()
                elif trial or not circuit.is_open:  # calls that began before it opened tell nothing new
                    circuit.failed(self._clock())
        return reply

    def _notice_fork(self) -> None:
        if self._process != os.getpid():
            self._begin()  # a fork may have come while a thread held the lock, which is not there to let it go

    def _ask(self, wallet: Wallet, operation: Operation, body: Mapping[str, Any]) -> Reply:
        url = f"{wallet.url}/{operation}"
        content = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
        headers = {
            "Content-Type": "application/json",
            "X-Operator": wallet.operator,
            "X-Key-Id": wallet.key_id,
            "X-Timestamp": timestamp,
            "X-Nonce": nonce,
            "X-Signature": self._signature(
                wallet.secret, "POST", outbound.target(url), timestamp, nonce, content
            ),
        }
        try:
            status, answer = outbound.post(url, content, headers, seconds=ANSWER_SECONDS)
        except outbound.Unanswered as unanswered:
            return _unknown(str(unanswered), sent=unanswered.sent)
        return judged(operation, status, answer)


def judged(operation: Operation, status: int, answer: bytes) -> Reply:
    """What an HTTP answer says of an operation.

    >>> judged(Operation.DEBIT, 200, b'{"status": "done", "balance_minor": 900}')
    Reply(verdict=<Verdict.DONE: 'done'>, balance_minor=900, reason=None, problem=None, sent=True)
    >>> judged(Operation.CANCEL, 502, b"Bad gateway").problem
    'The answer has HTTP status 502.'
    """
    if status != 200:
        return _unknown(f"The answer has HTTP status {status}.")
    try:
        said = _read(answer)
    except ValueError as wrong:
        return _unknown(str(wrong))
    balance = said.get("balance_minor")
    match said.get("status"):
        case "done" if balance is not None:
            return Reply(Verdict.DONE, balance)
        case "refused":
            return _refused(operation, balance, said.get("reason"))
        case "not_found" if operation is Operation.CANCEL:
            return Reply(Verdict.NOT_FOUND, balance)
    return _unknown(f"The answer's status is none that a {operation} has, or needs a balance_minor.")


def _read(answer: bytes) -> dict[str, Any]:
    """The JSON object of an answer; ValueError, in words that quote nothing, for what is none of the protocol's."""
    try:
        said = json.loads(answer.decode(), object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError("The answer is no JSON, or gives a member twice.") from None
    if not isinstance(said, dict):
        raise ValueError("The answer is no JSON object.")
    if "balance_minor" in said:
        balance = said["balance_minor"]
        if type(balance) is not int or not 0 <= balance < BALANCE_MINOR_END:
            raise ValueError("The answer's balance_minor is no whole number from 0 to 2^53 - 1.")
    return said


def _refused(operation: Operation, balance: int | None, reason: object) -> Reply:
    if not (isinstance(reason, str) and _REASON.fullmatch(reason)):
        return _unknown("The answer is refused without a reason that is a code.")
    if operation is Operation.DEBIT:
        return Reply(Verdict.REFUSED, balance, reason)
    return Reply(Verdict.UNKNOWN, reason=reason, problem=f"The wallet refused a {operation}: {reason}.")


def _unknown(problem: str, *, sent: bool = True) -> Reply:
    return Reply(Verdict.UNKNOWN, problem=problem[:_PROBLEM_LENGTH_MAX], sent=sent)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a member is given twice")
    return read


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")
