"""The bench a wallet is put on: signed calls, fresh transactions, and what must be true of the answers."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

from casino_brag.catalogue.signing import signature
from casino_brag.outbound import Unanswered, target
from casino_brag.wallet.seamless import Operation, Verdict, judged
from casino_brag.wallet.seamless import Reply as Said

T = TypeVar("T")
Body = Mapping[str, Any]

AMOUNT_MAX_MINOR: Final = 2**53 - 1
"""The largest amount that every JSON reader keeps exactly."""

STAKE_MINOR: Final = 10

AT_ONCE: Final = 10
"""How many times a call is made at the same moment."""

_START_SECONDS: Final = 30
_SHOWN_CHARACTERS: Final = 300


class Failed(Exception):
    """A check did not hold: what was expected, and what was seen instead."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}, saw {seen}")
        self.expected = expected
        self.seen = seen


class NotTried(Exception):
    """A check does not apply to this wallet or this player; the text says why."""


class Send(Protocol):
    """POSTs a body and returns the HTTP status and the answer's bytes, as `outbound.post` does."""

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float
    ) -> tuple[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Key:
    """A key that the wallet knows, by its id."""

    key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """The wallet that is checked, and who calls it.

    `url` ends without a slash.  The first of `currencies` is the one that most checks use.  `seconds` is how long
    any call may take.
    """

    url: str
    operator: str
    key: Key
    second_key: Key | None
    player: str
    currencies: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call was answered: the HTTP status, the raw body, and what the service makes of them."""

    call: Operation
    http_status: int
    body: bytes

    @property
    def said(self) -> Said:
        """The answer as the service judges it."""
        return judged(self.call, self.http_status, self.body)

    @property
    def verdict(self) -> Verdict:
        """What the answer says of the operation; unknown unless it is definite."""
        return self.said.verdict

    @property
    def reason(self) -> str | None:
        """Why the wallet refused; None where it did not.  A refused credit or cancel has one too."""
        return self.said.reason

    def __str__(self) -> str:
        text = self.body[:_SHOWN_CHARACTERS].decode(errors="replace").strip()
        shown = "".join(character if character.isprintable() else "?" for character in text)
        unclear = self.http_status == 200 and self.reason is None and self.said.problem
        return f"{self.call}: HTTP {self.http_status} {shown}" + (f" ({unclear})" if unclear else "")


class Bench:
    """One wallet, called as the service would call it.  Safe for several threads."""

    def __init__(self, subject: Subject, send: Send) -> None:
        self.subject = subject
        self.currency = subject.currencies[0]
        self.seconds: list[float] = []
        self._send = send

    def stake(self, amount_minor: int = STAKE_MINOR, **otherwise: Any) -> dict[str, Any]:
        """The body of a debit with an id and a round of its own; `otherwise` replaces or adds members."""
        return {
            "transaction_id": str(uuid4()),
            "round_id": str(uuid4()),
            "game": "three-card-brag",
            "wager": "ante",
            "amount_minor": amount_minor,
            "currency": self.currency,
            "player": self.subject.player,
            "round_closed": False,
        } | otherwise

    def payout(self, stake: Body, amount_minor: int) -> dict[str, Any]:
        """The body of the credit that closes the round of a stake."""
        payout = {"wager": "payout", "amount_minor": amount_minor, "round_closed": True}
        return {**stake, "transaction_id": str(uuid4()), **payout}

    def debit(self, body: Body) -> Reply:
        """Calls ``/debit``."""
        return self.call(Operation.DEBIT, body)

    def credit(self, body: Body) -> Reply:
        """Calls ``/credit``."""
        return self.call(Operation.CREDIT, body)

    def cancel(self, body: Body) -> Reply:
        """Calls ``/cancel`` with the body of the debit."""
        return self.call(Operation.CANCEL, body)

    def ask_balance(self, currency: str | None = None, player: str | None = None) -> Reply:
        """Calls ``/balance``."""
        asked = {"player": player or self.subject.player, "currency": currency or self.currency}
        return self.call(Operation.BALANCE, asked)

    def call(self, operation: Operation, body: Body) -> Reply:
        """A call signed as it should be."""
        encoded = json.dumps(body).encode()
        return self.post(operation, encoded, self.signed(operation, encoded))

    def signed(
        self,
        operation: Operation,
        body: bytes,
        *,
        key: Key | None = None,
        operator: str | None = None,
        late_seconds: int = 0,
        nonce: str | None = None,
    ) -> dict[str, str]:
        """The headers of a signed call; what is given differs from what the service would send."""
        key = key or self.subject.key
        timestamp, nonce = str(int(time.time()) - late_seconds), nonce or secrets.token_hex(16)
        path = target(f"{self.subject.url}/{operation}")
        return {
            "Content-Type": "application/json",
            "X-Operator": operator or self.subject.operator,
            "X-Key-Id": key.key_id,
            "X-Timestamp": timestamp,
            "X-Nonce": nonce,
            "X-Signature": signature(key.secret, "POST", path, timestamp, nonce, body),
        }

    def post(self, operation: Operation, body: bytes, headers: Mapping[str, str]) -> Reply:
        """A call with these very headers; `Failed` when no answer came in time."""
        began = time.monotonic()
        try:
            status, answer = self._send(
                f"{self.subject.url}/{operation}", body, headers, seconds=self.subject.seconds
            )
        except Unanswered as silence:
            raise Failed(
                f"an answer to {operation} within {self.subject.seconds:g} s", str(silence) or "none"
            ) from silence
        finally:
            self.seconds.append(time.monotonic() - began)
        return Reply(operation, status, answer)

    def balance(self) -> int:
        """What the player holds, in minor units of the first currency."""
        return must_be_done(self.ask_balance())

    def must_hold(self, expected_minor: int) -> None:
        """`Failed` unless the player holds exactly this."""
        held = self.balance()
        if held != expected_minor:
            raise Failed(f"a balance of {expected_minor} afterwards", f"a balance of {held}")


def must_be_done(reply: Reply) -> int:
    """The balance in an answer ``done``; `Failed` for any other answer."""
    balance = reply.said.balance_minor
    if reply.verdict is not Verdict.DONE or balance is None:
        raise Failed(f"{reply.call} to be done", str(reply))
    return balance


def must_be_refused(reply: Reply, *reasons: str) -> None:
    """`Failed` unless the wallet refused for one of the reasons."""
    if reply.reason not in reasons:
        raise Failed(f"{reply.call} to be refused with reason {' or '.join(reasons)}", str(reply))


def must_not_be_done(reply: Reply) -> None:
    """`Failed` unless the wallet refused, or said with HTTP 400 or 422 that it cannot read this."""
    if reply.reason is None and reply.http_status not in (400, 422):
        raise Failed(f"{reply.call} to be refused, or HTTP 400 or 422", str(reply))


def must_be_cancelled(reply: Reply) -> None:
    """`Failed` unless a cancel is definite: done, or not found."""
    if reply.verdict not in (Verdict.DONE, Verdict.NOT_FOUND):
        raise Failed("cancel to be done or not_found", str(reply))


def unless_limited(reply: Reply) -> Reply:
    """The reply; `NotTried` when limits of the player's own stand in the way of a large stake."""
    if reply.reason == "limit_reached":
        raise NotTried("the player's limits do not let it stake its whole balance")
    return reply


def nobody() -> str:
    """A player whom no wallet knows."""
    return f"conformance-{uuid4().hex}"


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Makes all calls at the same moment, each in a thread of its own; the results in their order."""
    start = threading.Barrier(len(calls))

    def begin(call: Callable[[], T]) -> T:
        start.wait(_START_SECONDS)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(begin, calls))
