"""Webhooks: an operator's server is told what happened, as the Standard Webhooks specification has it.

The database makes the messages (migrations/0010_webhooks.sql); here they are signed and sent.  A message arrives at
least once, under the same `webhook-id` and with the same bytes each time; not always in the order of the effects.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag import outbound
from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.operators import operator_id_of
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.pool import Connect
from casino_brag.errors import SetUpError
from casino_brag.sealing import SealBroken, Sealer

SECRET_BYTES: Final = 32
ANSWER_SECONDS: Final = 10.0
"""How long an endpoint may take to answer."""
AT_ONCE_PER_OPERATOR: Final = 5
LEASE_SECONDS: Final = 60
"""A message whose sender was not heard of for so long is sent again; sending and recording take far less."""

DELAYS_SECONDS: Final = (
    5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600,
)  # fmt: skip
"""From each failed attempt to the next, as the specification suggests."""
LIFE: Final = timedelta(seconds=sum(DELAYS_SECONDS))
"""An attempt that fails when a message is older than this was its last: three days and some hours."""

OVERLOADED: Final = frozenset({429, 502, 503, 504})
REST_SECONDS: Final = 30
"""How long an endpoint is left alone that is overloaded or does not answer."""

_PREFIX: Final = "whsec_"
_ACTOR: Final = "system:webhooks"


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """One signature of ``webhook-signature``; `timestamp` is the attempt's, in Unix seconds.

    HMAC-SHA256 under the decoded secret over identifier, timestamp and body, joined by full stops, in base64.

    >>> sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
    ...      b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def set_endpoint(
    conn: psycopg.Connection[Any], sealer: Sealer, operator_name: str, url: str, *, actor: str
) -> str:
    """Tells an operator at `url` from now on; the secret it is signed with, which is shown this once.

    An endpoint it had before is replaced, and so are its secrets.  `SetUpError` for an unknown operator and for a
    URL that is neither https nor, on this machine, http.
    """
    if (problem := outbound.problem_of(url)) is not None:
        raise SetUpError(
            f"{url!r} {problem}: write it as https://casino.example.com/hooks, or http://127.0.0.1:8080/hooks"
            " for a server on this machine."
        )
    operator_id, before = _endpoint(conn, operator_name)
    secret = _new_secret()
    entry = Entry(
        type=EntryType.WEBHOOK_SET,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        before=None if before is None else {"url": before},
        after={"url": url},
    )
    sealed = sealer.seal(secret.encode(), context=_context(operator_id))
    conn.execute("SELECT webhook_endpoint_set(%s, %s, %s, %s)", [operator_id, url, sealed, entry.text()])
    return secret


def rotate_secret(conn: psycopg.Connection[Any], sealer: Sealer, operator_name: str, *, actor: str) -> str:
    """A new secret, shown this once; messages are signed with it and with the newest one before it.

    `SetUpError` for an operator that is unknown or has no endpoint.
    """
    operator_id, url = _endpoint(conn, operator_name)
    secret = _new_secret()
    entry = Entry(
        type=EntryType.WEBHOOK_SECRET_ROTATED,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        payload={"url": url},
    )
    sealed = sealer.seal(secret.encode(), context=_context(operator_id))
    row = conn.execute(
        "SELECT webhook_secret_rotate(%s, %s, %s)", [operator_id, sealed, entry.text()]
    ).fetchone()
    if row != (True,):
        raise _no_endpoint(operator_name)
    return secret


def remove_endpoint(conn: psycopg.Connection[Any], operator_name: str, *, actor: str) -> None:
    """Tells an operator nothing any more; what it has not been told yet is given up.

    `SetUpError` for an operator that is unknown or has no endpoint.
    """
    operator_id, url = _endpoint(conn, operator_name)
    if not _remove(conn, operator_id, url, actor=actor, reason=None):
        raise _no_endpoint(operator_name)


def deliver(connect: Connect, sealer: Sealer, *, limit: int = 20) -> int:
    """Sends messages that are due, at most `limit` and a few of each operator; how many it tried to send.

    They are sent side by side, so that this takes little longer than `ANSWER_SECONDS` whoever does not answer.  No
    connection is held meanwhile.  Whatever stops this before it has recorded an answer, the message is sent again.
    """
    with connect() as conn, conn.cursor(row_factory=class_row(_Message)) as cursor:
        claimed = cursor.execute(
            "SELECT * FROM webhook_claim(%s, %s, %s)", [limit, AT_ONCE_PER_OPERATOR, LEASE_SECONDS]
        ).fetchall()
    if not claimed:
        return 0
    with ThreadPoolExecutor(len(claimed), thread_name_prefix="webhook") as pool:
        sent = {pool.submit(_send, sealer, message): message for message in claimed}
        for answer in as_completed(sent):
            with connect() as conn:
                _record(conn, sent[answer], answer.result())
    return len(claimed)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message that is to be sent, and where to; `attempts` counts this one."""

    message_id: UUID
    operator_id: UUID
    url: str
    sealed_secret: bytes = field(repr=False)
    sealed_previous_secret: bytes | None = field(repr=False)
    body: str
    attempts: int
    made_at: datetime
    claimed_at: datetime

    def headers(self, sealer: Sealer) -> dict[str, str]:
        """What goes with the body: the identifier, the time of this attempt, a signature for each live secret."""
        context, timestamp = _context(self.operator_id), int(self.claimed_at.timestamp())
        live = [sealed for sealed in (self.sealed_secret, self.sealed_previous_secret) if sealed is not None]
        return {
            "Content-Type": "application/json",
            "webhook-id": str(self.message_id),
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(
                sign(
                    sealer.open(sealed, context=context).decode(),
                    str(self.message_id),
                    timestamp,
                    self.body.encode(),
                )
                for sealed in live
            ),
        }


def _send(sealer: Sealer, message: _Message) -> int | str:
    """The status that was answered, or why there was none."""
    try:
        status, _ = outbound.post(
            message.url, message.body.encode(), message.headers(sealer), seconds=ANSWER_SECONDS
        )
    except (outbound.Unanswered, SealBroken) as failure:
        return str(failure)
    return status


def _record(conn: psycopg.Connection[Any], message: _Message, answer: int | str) -> None:
    """Puts on record what came of an attempt.  410 says that the endpoint is gone."""
    key = [message.operator_id, message.message_id]
    if isinstance(answer, int) and 200 <= answer < 300:
        conn.execute("SELECT webhook_delivered(%s, %s)", key)
        return
    problem = (answer if isinstance(answer, str) else f"the answer was {answer}")[:500]
    if answer == 410 and _remove(conn, message.operator_id, message.url, actor=_ACTOR, reason=problem):
        return
    delay = DELAYS_SECONDS[min(message.attempts, len(DELAYS_SECONDS)) - 1]
    rest = REST_SECONDS if isinstance(answer, str) or answer in OVERLOADED else 0
    conn.execute("SELECT webhook_postpone(%s, %s, %s, %s, %s)", [*key, problem, delay, rest])
    if message.claimed_at - message.made_at >= LIFE:
        entry = _given_up(message, clock(conn), problem)
        conn.execute("SELECT webhook_give_up(%s, %s, %s)", [*key, entry.text()])


def _given_up(message: _Message, now: datetime, problem: str) -> Entry:
    return Entry(
        type=EntryType.WEBHOOK_GIVEN_UP,
        occurred_at=now,
        actor=_ACTOR,
        operator_id=message.operator_id,
        reason=problem,
        payload={
            "url": message.url,
            "message_id": message.message_id,
            "attempts": message.attempts,
            "made_until": rfc3339(message.made_at),
        },
    )


def _remove(
    conn: psycopg.Connection[Any], operator_id: UUID, url: str | None, *, actor: str, reason: str | None
) -> bool:
    entry = Entry(
        type=EntryType.WEBHOOK_REMOVED,
        occurred_at=clock(conn),
        actor=actor,
        operator_id=operator_id,
        reason=reason,
        before={"url": url},
    )
    row = conn.execute(
        "SELECT webhook_endpoint_remove(%s, %s, %s)", [operator_id, url, entry.text()]
    ).fetchone()
    return row == (True,)


def _endpoint(conn: psycopg.Connection[Any], operator_name: str) -> tuple[UUID, str | None]:
    """The operator, and where it is told now."""
    operator_id = operator_id_of(conn, operator_name)
    row = conn.execute("SELECT url FROM webhook_endpoint WHERE operator_id = %s", [operator_id]).fetchone()
    return operator_id, None if row is None else row[0]


def _no_endpoint(operator_name: str) -> SetUpError:
    return SetUpError(
        f"Operator {operator_name!r} has no webhook. To set one: operator webhook {operator_name} URL."
    )


def _new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def _context(operator_id: UUID) -> str:
    return f"webhook secret {operator_id}"
