"""Answers that are given once: the first answer to an idempotency key is kept and repeated, byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
import rfc8785
from psycopg import sql

from casino_brag.db.records import as_jsonb
from casino_brag.errors import Code, ServiceError


@dataclass(frozen=True, slots=True)
class Request:
    """A request that may be made again: its key, and a fingerprint of everything it asks for."""

    key: str
    fingerprint: bytes

    def within(self, *circumstances: str) -> Request:
        """The request as it stands in circumstances that its text leaves out; elsewhere it is another request."""
        digest = hashlib.sha256(self.fingerprint + rfc8785.dumps(list(circumstances)))
        return Request(self.key, digest.digest())

    @classmethod
    def of(cls, key: str, method: str, path: str, body: Mapping[str, Any]) -> Request:
        """`body` is the validated request, so that layout and defaults do not matter.

        >>> Request.of("k", "POST", "/v1/rounds", {"ante_minor": 100}).fingerprint.hex()[:8]
        'c657b346'
        """
        return cls(key, hashlib.sha256(rfc8785.dumps([method, path, dict(body)])).digest())


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body; `replayed` when it was first given to an earlier request."""

    status: int
    body: str
    replayed: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What a first round trip found stored under a request's key; all None when there is nothing."""

    fingerprint: bytes | None
    status: int | None
    body: str | None

    def answer_to(self, request: Request) -> Answer | None:
        """The stored answer; None for a new key.  `ServiceError` when the key belongs to another request."""
        if self.fingerprint is None:
            return None
        if bytes(self.fingerprint) != request.fingerprint:
            raise refusal("idempotency_key_reused")
        assert self.status is not None
        assert self.body is not None
        return Answer(self.status, self.body, replayed=True)


def known_answer(
    conn: psycopg.Connection[Any], operator_id: UUID, player_id: UUID, request: Request
) -> Answer | None:
    """The answer that is stored under a request's key; None for a new one.  `ServiceError` idempotency_key_reused."""
    row = conn.execute(
        "SELECT fingerprint, status, body FROM answer"
        " WHERE operator_id = %s AND player_id = %s AND idempotency_key = %s",
        [operator_id, player_id, request.key],
    ).fetchone()
    return None if row is None else Known(*row).answer_to(request)


def body_around_balance(document: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a JSON object up to the value of a last member ``balance_minor``, and the text after it.

    The balance is known only where the money moves, in the database, which puts it between the two.

    >>> body_around_balance({"state": "settled"})
    ('{"state":"settled","balance_minor":', '}')
    """
    text = body_of(document)
    return text[:-1] + ("," if document else "") + '"balance_minor":', "}"


def body_of(document: Mapping[str, Any]) -> str:
    """The text of an answer whose balance is known, as it would be were it put in by the database."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def operation(
    record: Mapping[str, Any],
    request: Request | None,
    *,
    status: int,
    document: Mapping[str, Any],
    audit: str,
) -> dict[str, Any]:
    """What a set-based function is given for one item: the record, the answer to keep, the entry to log.

    `document` is the answer without its balance, `audit` an entry's text.  Without a request no answer is kept.
    """
    head, tail = body_around_balance(document)
    return {
        **record,
        "idempotency_key": None if request is None else request.key,
        "fingerprint": None if request is None else request.fingerprint,
        "status": status,
        "body_head": head,
        "body_tail": tail,
        "audit": audit,
    }


_REFUSALS: Final[Mapping[str, tuple[Code, str]]] = {
    "idempotency_key_reused": (
        Code.IDEMPOTENCY_KEY_REUSED,
        "This key belongs to a different request. Send a new request with a new key.",
    ),
    "request_in_progress": (
        Code.REQUEST_IN_PROGRESS,
        "Another request of this player is being worked on. Send the same request again.",
    ),
    "session_expired": (
        Code.SESSION_EXPIRED,
        "The session has ended. A round that is open can still be decided; for a new one, open a session.",
    ),
    "game_unavailable": (Code.GAME_UNAVAILABLE, "The game takes no new rounds at present."),
    "game_disabled": (
        Code.GAME_UNAVAILABLE,
        "The game is disabled. The round waits as it is, with its stakes, until the game is enabled or it is voided.",
    ),
    "too_soon": (Code.TOO_SOON, "Too little time has passed since the player's last round began."),
    "payout_pending": (
        Code.PAYOUT_PENDING,
        "The operator's wallet has not confirmed the last round's payout. Send the same request again a little later.",
    ),
    "round_voided": (
        Code.ROUND_VOIDED,
        "The round was voided and its stakes returned. Read the round to see it.",
    ),
    "limit_reached": (
        Code.LIMIT_REACHED,
        "A limit set for the player does not allow this stake. Nothing was taken.",
    ),
    "player_blocked": (
        Code.PLAYER_BLOCKED,
        "The operator does not let this player stake. Nothing was taken.",
    ),
    "wallet_refused": (Code.WALLET_REFUSED, "The operator's wallet refused the stake. Nothing was taken."),
    "wallet_unavailable": (
        Code.WALLET_UNAVAILABLE,
        "The operator's wallet did not answer. What it may have taken is being returned. Send the same request again.",
    ),
    "round_open": (Code.ROUND_OPEN, "A round of this game waits for a decision. Decide it first."),
    "commitment_stale": (
        Code.COMMITMENT_STALE,
        "The round would be dealt from another commitment than the one named. Read GET /v1/session for it.",
    ),
    "already_decided": (
        Code.ALREADY_DECIDED,
        "The other decision was taken first. Read the round to see it.",
    ),
    "insufficient_funds": (
        Code.INSUFFICIENT_FUNDS,
        "The balance does not cover this. Nothing was taken; the request may be sent again after a deposit.",
    ),
    "balance_limit_exceeded": (
        Code.BALANCE_LIMIT_EXCEEDED,
        "The balance could become larger than an account holds. Withdraw first.",
    ),
}


def refusal(outcome: str, *, retry_after_seconds: int | None = None) -> ServiceError:
    """The error that an outcome of the database's functions stands for; KeyError for one that is none."""
    code, detail = _REFUSALS[outcome]
    return ServiceError(code, detail, retry_after_seconds=retry_after_seconds)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a set-based function did with one operation, and the answer that is stored for it, if any."""

    name: str
    answer: Answer | None

    def answer_or_refusal(self) -> Answer:
        """The stored answer; raises the `ServiceError` of a refusal."""
        if self.answer is None:
            raise refusal(self.name)
        return self.answer


def carry_out(
    conn: psycopg.Connection[Any], function: LiteralString, ops: Sequence[Mapping[str, Any]]
) -> list[Outcome]:
    """Calls a set-based function of the database: operations in, an outcome for each out, one transaction.

    An operation is a mapping by the names of the function's record; UUIDs, times and bytes are given as such.
    """
    query = sql.SQL("SELECT outcome, status, body FROM {}(%s)").format(sql.Identifier(function))
    rows = conn.execute(query, [as_jsonb(ops)]).fetchall()
    assert len(rows) == len(ops), f"{function} answered {len(rows)} of {len(ops)} operations"
    return [
        Outcome(name, None if body is None else Answer(status, body, replayed=name == "replayed"))
        for name, status, body in rows
    ]


def keep(
    conn: psycopg.Connection[Any],
    kind: str,
    cause_id: UUID,
    operator_id: UUID,
    player_id: UUID,
    request: Request,
    document: Mapping[str, Any],
) -> Answer:
    """Keeps the answer to something that was carried out before its answer was known; the first one kept counts."""
    row = conn.execute(
        "SELECT status, body FROM answer_keep(%s, %s, %s, %s, %s, %s, 200::smallint, %s)",
        [
            operator_id,
            player_id,
            request.key,
            request.fingerprint,
            kind,
            cause_id,
            body_of(document),
        ],
    ).fetchone()
    if row is None:
        raise refusal("idempotency_key_reused")
    status, kept = row
    return Answer(status, kept, replayed=False)
