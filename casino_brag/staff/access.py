"""Signing in: a password, then a code, then a session.  Three failures in a row lock the account for a while.

A try counts as failed from its beginning until it is judged, so that guesses made at the same time are no more than
three either.  What counts it is a transaction of its own: these functions are never called within another.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, dict_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7
from casino_brag.sealing import Sealer
from casino_brag.staff.factors import Matched, match, sealed_again
from casino_brag.staff.passwords import hashing, is_right, newer_hash
from casino_brag.staff.people import Person, Role, did, hash_of, is_name, locked_out_seconds

TRIES_MAX: Final = 3
LOCKED_MINUTES: Final = 15
"""So many failures in a row, of passwords and codes together, lock an account for so long."""
CODE_MINUTES: Final = 5
"""For so long a code can be given after the password."""
SESSION_HOURS: Final = 12
IDLE_MINUTES: Final = 30
"""A session ends after so long, and when nothing was done in it for so long."""
SEEN_SECONDS: Final = 60
"""That a session is in use is written down so often at most."""
FRESH_MINUTES: Final = 10
"""What matters is done within so long of a code; later another is asked for."""
SESSIONS_SHOWN: Final = 50

NOT_RIGHT: Final = (
    "That is not right, or the account is locked: after three failures in a row nobody can sign in to it for"
    f" {LOCKED_MINUTES} minutes."
)
"""The one answer to whatever is not right, so that it tells nothing about who exists."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody who is signed in, as read at one instant.

    `csrf` is what every form of the session carries.  `proved_at`: when a code was last given.  `expires_at`: when the
    session ends if nothing more is done.
    """

    session_id: UUID
    person: Person
    csrf: str = field(repr=False)
    proved_at: datetime
    expires_at: datetime
    read_at: datetime

    @property
    def is_fresh(self) -> bool:
        """Whether the last code is recent enough for what matters."""
        return self.read_at - self.proved_at <= timedelta(minutes=FRESH_MINUTES)


@dataclass(frozen=True, slots=True)
class AwaitingCode:
    """Somebody whose password was right and who has a code to give yet."""

    session_id: UUID
    person: Person
    csrf: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as lists show it; `state` is live, expired or ended, and `ended_why` a word of the schema's."""

    session_id: UUID
    name: str
    address: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    ended_why: str | None
    state: str


@dataclass(frozen=True, slots=True)
class Try:
    """A try at a password or a code.  `begun`: it counts, and is to be judged; the hash and the secret are given."""

    staff_id: UUID | None
    name: str | None
    begun: bool = False
    password_hash: str | None = field(default=None, repr=False)
    sealed_secret: bytes = field(default=b"", repr=False)


def signed_in(conn: psycopg.Connection[Any], secret: str, *, active: bool = True) -> SignedIn | None:
    """Who is signed in with the secret of a session; None where it is none's, has ended or awaits a code.

    A call that is not `active`, a page's that polls, does not keep the session from ending.
    """
    row = _session(conn, secret, "live")
    if row is None:
        return None
    if active and row["read_at"] - row["seen_at"] >= timedelta(seconds=SEEN_SECONDS):
        conn.execute("SELECT staff_session_seen(%s)", [row["session_id"]])
    idle_at = (row["read_at"] if active else row["seen_at"]) + timedelta(minutes=IDLE_MINUTES)
    return SignedIn(
        row["session_id"],
        _person(row),
        csrf_of(secret),
        row["proved_at"],
        min(row["expires_at"], idle_at),
        row["read_at"],
    )


def awaiting_code(conn: psycopg.Connection[Any], secret: str) -> AwaitingCode | None:
    """Whose password was right, by the secret that was given for it; None where no code can be given with that."""
    row = _session(conn, secret, "awaiting_code")
    return None if row is None else AwaitingCode(row["session_id"], _person(row), csrf_of(secret))


def give_password(connect: Connect, name: str, password: str, address: str) -> str:
    """The first step: the secret of a session in which a code can be given.

    Raises `ServiceError`: unauthenticated (name or password is not right, or the account is locked; which of them is
    not told), rate_limited (too much failed from the address), busy.
    """
    with hashing():
        with connect() as conn:
            refuse_locked_out(conn, address)
            tried = begin_try(conn, name)
        right = is_right(password, tried.password_hash)
        newer = newer_hash(password, tried.password_hash) if right and tried.password_hash else None
    secret = secrets.token_urlsafe(32)
    with connect() as conn:
        values = [tried.staff_id, tried.password_hash, newer, uuid7(), hash_of(secret), address]
        if right and did(conn, "SELECT staff_password_right(%s, %s, %s, %s, %s, %s)", values):
            return secret
        fail(conn, tried, "password", address)
    raise ServiceError(Code.UNAUTHENTICATED, NOT_RIGHT)


def refuse_locked_out(conn: psycopg.Connection[Any], address: str) -> None:
    """`ServiceError` rate_limited where too much failed from the address."""
    if seconds := locked_out_seconds(conn, address):
        raise ServiceError(
            Code.RATE_LIMITED,
            "Too much was tried from your address. Wait a minute.",
            retry_after_seconds=seconds,
        )


def give_code(conn: psycopg.Connection[Any], sealer: Sealer, secret: str, code: str, address: str) -> str:
    """The second step: the secret of a session in which the person is signed in.  The secret before is good no more.

    `code` is the authenticator's or a recovery code; each is good once.  Raises `ServiceError` unauthenticated.
    """
    awaiting = awaiting_code(conn, secret)
    if awaiting is None:
        raise ServiceError(Code.UNAUTHENTICATED, "The time to give a code is over. Start again.")
    tried, matched = _try_code(conn, sealer, awaiting.person, code)
    if matched is not None:
        new_secret, session_id = secrets.token_urlsafe(32), uuid7()
        entry = _proof_entry(conn, EntryType.STAFF_SIGNED_IN, awaiting.person, matched, session_id, address)
        values = [
            awaiting.session_id,
            *_taken(sealer, tried, matched),
            session_id,
            hash_of(new_secret),
            address,
            entry.text(),
        ]
        if did(conn, "SELECT staff_sign_in(%s, %s, %s, %s, %s, %s, %s, %s)", values):
            return new_secret
    fail(conn, tried, "code", address)
    raise ServiceError(Code.UNAUTHENTICATED, NOT_RIGHT)


def prove(conn: psycopg.Connection[Any], sealer: Sealer, who: SignedIn, code: str, address: str) -> None:
    """Takes another code of somebody who is signed in; `ServiceError` invalid, at `code`, where it is not right."""
    tried, matched = _try_code(conn, sealer, who.person, code)
    if matched is not None:
        entry = _proof_entry(conn, EntryType.STAFF_PROVED, who.person, matched, who.session_id, address)
        values = [who.session_id, *_taken(sealer, tried, matched), entry.text()]
        if did(conn, "SELECT staff_prove(%s, %s, %s, %s, %s)", values):
            return
    fail(conn, tried, "code", address)
    raise ServiceError(Code.INVALID, NOT_RIGHT, errors={"code": [NOT_RIGHT]})


def require_fresh(
    conn: psycopg.Connection[Any],
    sealer: Sealer,
    who: SignedIn,
    code: str | None,
    address: str,
    *,
    always: bool = False,
) -> None:
    """What comes before everything that matters: where the last code is not recent, or `always`, this one is taken.

    Raises `ServiceError` invalid, told at `code`.
    """
    if who.is_fresh and not always:
        return
    if not code:
        asked = "Give a new code of your authenticator: this matters."
        raise ServiceError(Code.INVALID, asked, errors={"code": [asked]})
    prove(conn, sealer, who, code, address)


def sign_out(conn: psycopg.Connection[Any], who: SignedIn) -> None:
    """Ends the person's session."""
    end_session(conn, who.person, who.session_id, own=True)


def end_session(conn: psycopg.Connection[Any], by: Person, session_id: UUID, *, own: bool = False) -> bool:
    """Ends one of the person's own sessions; false where it is none of them or has ended before."""
    row = conn.execute(
        "SELECT FROM staff_session_now WHERE session_id = %s AND staff_id = %s", [session_id, by.staff_id]
    ).fetchone()
    entry = Entry(
        type=EntryType.STAFF_SIGNED_OUT,
        occurred_at=clock(conn),
        actor=by.actor,
        payload={"name": by.name, "staff_session_id": str(session_id)},
    )
    values = [session_id, "signed_out" if own else "ended", entry.text()]
    return row is not None and did(conn, "SELECT staff_session_end(%s, %s, %s)", values)


def sessions(
    conn: psycopg.Connection[Any], *, staff_id: UUID | None = None, limit: int = SESSIONS_SHOWN
) -> list[SessionRow]:
    """A person's sessions, or those of everybody that are live, newest first; none that never got its code."""
    columns = ", ".join(column.name for column in fields(SessionRow))
    with conn.cursor(row_factory=class_row(SessionRow)) as cursor:
        return cursor.execute(
            f"SELECT {columns} FROM staff_session_now"  # noqa: S608 - the names of a dataclass's fields
            " WHERE proved_at IS NOT NULL"
            " AND (staff_id = %(whose)s OR (%(whose)s::uuid IS NULL AND state = 'live'))"
            " ORDER BY created_at DESC, session_id DESC LIMIT %(limit)s",
            {"whose": staff_id, "limit": limit},
        ).fetchall()


def access_of_all(conn: psycopg.Connection[Any]) -> dict[str, dict[str, Any]]:
    """How everybody who is or was staff gets in, by name: when joined, until when locked, until when invited.

    The times are `joined_at`, `locked_until` and `invited_until`; None for what is not so, or is over.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(
            "SELECT s.name, a.joined_at, a.locked_until, a.invited_until"
            " FROM staff_access_now AS a JOIN staff AS s USING (staff_id)"
        ).fetchall()
    return {row["name"]: row for row in found}


def recovery_codes_left(conn: psycopg.Connection[Any], person: Person) -> int:
    """How many of somebody's recovery codes were not used yet."""
    row = conn.execute(
        "SELECT recovery_codes_left FROM staff_access_now WHERE staff_id = %s", [person.staff_id]
    ).fetchone()
    assert row is not None
    left: int = row[0]
    return left


def csrf_of(secret: str) -> str:
    """What the forms of a session carry: only who has its secret can make it."""
    return hmac.digest(secret.encode(), b"csrf", "sha256").hex()


def begin_try(conn: psycopg.Connection[Any], name: str) -> Try:
    """Begins a try for a person of this name, who need not exist."""
    _assert_alone(conn)
    row = conn.execute(
        "SELECT s.staff_id, s.name, t.* FROM staff AS s LEFT JOIN LATERAL staff_try(s.staff_id) AS t ON true"
        " WHERE s.name = %s",
        [name if is_name(name) else None],
    ).fetchone()
    if row is None:
        return Try(None, None)
    staff_id, known_as, password_hash, sealed_secret = row
    if password_hash is None:
        return Try(staff_id, known_as)
    return Try(staff_id, known_as, True, password_hash, sealed_secret)


def fail(conn: psycopg.Connection[Any], tried: Try, what: str, address: str) -> None:
    """Puts a try that failed on record; the third in a row locks the account."""
    _assert_alone(conn)
    payload = {"name": tried.name, "address": address}
    failed = Entry(
        type=EntryType.STAFF_SIGN_IN_FAILED,
        occurred_at=clock(conn),
        actor="system:http",
        reason=what if tried.begun else "not_tried",
        payload=payload,
    )
    locked = Entry(
        type=EntryType.STAFF_LOCKED_OUT,
        occurred_at=failed.occurred_at,
        actor="system:http",
        payload={**payload, "minutes": LOCKED_MINUTES},
    )
    conn.execute(
        "SELECT staff_try_failed(%s, %s, %s, %s, %s)",
        [tried.staff_id, tried.begun, address, failed.text(), locked.text()],
    )


def _try_code(
    conn: psycopg.Connection[Any], sealer: Sealer, person: Person, code: str
) -> tuple[Try, Matched | None]:
    tried = begin_try(conn, person.name)
    if not tried.begun:
        return tried, None
    return tried, match(sealer, code, tried.sealed_secret, person.staff_id, clock(conn))


def _taken(sealer: Sealer, tried: Try, matched: Matched) -> list[Any]:
    assert tried.staff_id is not None
    return [matched.step, matched.recovery_hash, sealed_again(sealer, tried.sealed_secret, tried.staff_id)]


def _proof_entry(
    conn: psycopg.Connection[Any],
    kind: EntryType,
    person: Person,
    matched: Matched,
    session_id: UUID,
    address: str,
) -> Entry:
    return Entry(
        type=kind,
        occurred_at=clock(conn),
        actor=person.actor,
        payload={
            "name": person.name,
            "staff_session_id": str(session_id),
            "address": address,
            "by": "authenticator" if matched.recovery_hash is None else "recovery_code",
        },
    )


def _session(conn: psycopg.Connection[Any], secret: str, state: str) -> dict[str, Any] | None:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "SELECT *, now() AS read_at FROM staff_session_now WHERE secret_hash = %s AND state = %s",
            [hash_of(secret), state],
        ).fetchone()


def _person(row: Mapping[str, Any]) -> Person:
    return Person(row["staff_id"], row["name"], frozenset(map(Role, row["roles"])))


def _assert_alone(conn: psycopg.Connection[Any]) -> None:
    # What a request that fails takes back, a count of failures must not be.
    assert conn.autocommit
    assert conn.info.transaction_status is TransactionStatus.IDLE
