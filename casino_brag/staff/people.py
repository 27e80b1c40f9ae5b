"""Staff: who checks, approves and runs, what each may do, and the tokens their programs call with."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.errors import UniqueViolation
from psycopg.rows import class_row, dict_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock, rfc3339
from casino_brag.errors import SetUpError
from casino_brag.ids import uuid7

TOKEN_DAYS: Final = 90
TOKEN_DAYS_MAX: Final = 366
LABEL_LENGTH_MAX: Final = 100
TOKEN_PREFIX: Final = "cbs_"  # noqa: S105 - what a token begins with, so that one that leaked is known for what it is

FAILURES_MAX: Final = 3
LOCKED_OUT_SECONDS: Final = 60
"""So many wrong tokens from one address within so many seconds shut it out for as long again."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_TOKEN_ID: Final = re.compile(r"t_[0-9a-f]{12}")


class Role(StrEnum):
    """What a person may do.  One can have several roles."""

    EDITOR = "editor"
    """Drafts paytables and submits them."""
    APPROVER = "approver"
    """Approves what somebody else has submitted."""
    AUDITOR = "auditor"
    """Reads and verifies the audit log, the return to player, the random numbers and the program."""
    OPERATIONS = "operations"
    """Watches the service and its return to player, and verifies the program."""


class TokenState(StrEnum):
    """Whether a token is good."""

    LIVE = "live"
    """It is."""
    EXPIRED = "expired"
    """Its days are over."""
    REVOKED = "revoked"
    """It was ended."""
    RETIRED = "retired"
    """So was its person's work here, and with it every token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Who changes something about staff, who has allowed it, and why: what goes on record beside the change."""

    actor: str
    authoriser: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token just made.  It is not kept and cannot be shown again."""

    name: str
    token_id: str
    token: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody of staff who acts: by a token, or signed in.  What was read of the roles may have changed since."""

    staff_id: UUID
    name: str
    roles: frozenset[Role]

    @property
    def actor(self) -> str:
        """The person, as audit entries name it."""
        return f"staff:{self.name}"


@dataclass(frozen=True, slots=True)
class Presented:
    """Whose a token is that a call came with, and whether it is good, read at one instant."""

    token_id: str
    staff_id: UUID
    name: str
    roles: list[str]
    state: str
    read_at: datetime

    @property
    def person(self) -> Person:
        """Who calls."""
        return Person(self.staff_id, self.name, frozenset(map(Role, self.roles)))

    @property
    def actor(self) -> str:
        """The person, as audit entries name it."""
        return self.person.actor


def is_name(text: str) -> bool:
    """Whether a person of staff can have this name.

    >>> is_name("ada.lovelace"), is_name("Ada")
    (True, False)
    """
    return _NAME.fullmatch(text) is not None


def add_staff(conn: psycopg.Connection[Any], name: str, roles: Iterable[Role], said: Said) -> None:
    """Adds a person.  `SetUpError` for a name that will not do or is somebody's, and for no role at all."""
    if not is_name(name):
        raise SetUpError(
            f"{name!r} is no name of staff: use 1 to 63 lower-case letters, digits, hyphens and dots."
        )
    staff_id, held = uuid7(), _in_order(roles)
    entry = entry_of(conn, EntryType.STAFF_ADDED, said, after={"name": name, "roles": held})
    try:
        conn.execute("SELECT staff_add(%s, %s, %s, %s)", [staff_id, name, held, entry.text()])
    except UniqueViolation as taken:
        if taken.diag.constraint_name != "staff_name_is_taken":
            raise
        raise SetUpError(
            f"{name} is, or was, somebody's name, and stays that person's. To change roles: staff roles."
        ) from taken


def set_roles(conn: psycopg.Connection[Any], name: str, roles: Iterable[Role], said: Said) -> bool:
    """Gives a person these roles in place of those held before; whether that changed something.

    `SetUpError` for nobody's name, for somebody who has retired, and for no role at all.
    """
    staff_id, before = working(conn, name)
    held = _in_order(roles)
    entry = entry_of(
        conn,
        EntryType.STAFF_ROLES_CHANGED,
        said,
        before={"name": name, "roles": before},
        after={"name": name, "roles": held},
    )
    return did(conn, "SELECT staff_roles_set(%s, %s, %s)", [staff_id, held, entry.text()])


def has_approver(conn: psycopg.Connection[Any]) -> bool:
    """Whether somebody on the staff approves paytables, so that files alone change nothing."""
    return did(conn, "SELECT paytable_needs_approval()", [])


def issue_token(
    conn: psycopg.Connection[Any], name: str, label: str, said: Said, *, days: int = TOKEN_DAYS
) -> IssuedToken:
    """Gives a person a token that is good for so many days.

    `SetUpError` for nobody's name, for somebody who has retired, and for a label or a time that will not do.
    """
    if not (label.strip() and label.isprintable() and len(label) <= LABEL_LENGTH_MAX):
        raise SetUpError(f"Say what the token is for, on one line of at most {LABEL_LENGTH_MAX} characters.")
    if not 1 <= days <= TOKEN_DAYS_MAX:
        raise SetUpError(f"A token is good for 1 to {TOKEN_DAYS_MAX} days.")
    staff_id, _ = working(conn, name)
    issued = IssuedToken(
        name,
        "t_" + secrets.token_hex(6),
        TOKEN_PREFIX + secrets.token_urlsafe(32),
        clock(conn) + timedelta(days=days),
    )
    entry = entry_of(
        conn,
        EntryType.STAFF_TOKEN_ISSUED,
        said,
        payload={
            "name": name,
            "token_id": issued.token_id,
            "label": label,
            "expires_at": rfc3339(issued.expires_at),
        },
    )
    values = [issued.token_id, staff_id, hash_of(issued.token), label, issued.expires_at, entry.text()]
    if not did(conn, "SELECT staff_token_issue(%s, %s, %s, %s, %s, %s)", values):
        raise SetUpError(f"{name} has retired, and gets no token.")
    return issued


def revoke(conn: psycopg.Connection[Any], name_or_token: str, said: Said) -> bool:
    """Ends the token of that id, or retires the person of that name with all tokens; false where that was done before.

    `SetUpError` for what is neither.
    """
    if _TOKEN_ID.fullmatch(name_or_token):
        return _revoke_token(conn, name_or_token, said)
    row = conn.execute("SELECT staff_id, roles FROM staff WHERE name = %s", [name_or_token]).fetchone()
    if row is None:
        raise SetUpError(f"{name_or_token!r} is nobody's name and no token's id: see staff list.")
    entry = entry_of(conn, EntryType.STAFF_RETIRED, said, before={"name": name_or_token, "roles": row[1]})
    return did(conn, "SELECT staff_retire(%s, %s)", [row[0], entry.text()])


def _revoke_token(conn: psycopg.Connection[Any], token_id: str, said: Said) -> bool:
    row = conn.execute("SELECT name, label FROM staff_token_now WHERE token_id = %s", [token_id]).fetchone()
    if row is None:
        raise SetUpError(f"There is no token {token_id}: see staff list.")
    payload = {"name": row[0], "token_id": token_id, "label": row[1]}
    entry = entry_of(conn, EntryType.STAFF_TOKEN_REVOKED, said, payload=payload)
    return did(conn, "SELECT staff_token_revoke(%s, %s)", [token_id, entry.text()])


def users_and_rights(conn: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """Everybody who is or was staff, by name: roles, when added and retired, and every token with its `TokenState`.

    Tokens are told by their ids and labels, oldest first; times are texts of RFC 3339.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        people = cursor.execute(
            "SELECT staff_id, name, roles, added_at, retired_at FROM staff ORDER BY name"
        ).fetchall()
        tokens = cursor.execute(
            "SELECT staff_id, token_id, label, issued_at, expires_at, revoked_at, state"
            " FROM staff_token_now ORDER BY issued_at, token_id"
        ).fetchall()
    held: dict[UUID, list[dict[str, Any]]] = {}
    for token in tokens:
        held.setdefault(token["staff_id"], []).append(_told(token))
    return [_told(person) | {"tokens": held.get(person["staff_id"], [])} for person in people]


def presented(conn: psycopg.Connection[Any], token: str) -> Presented | None:
    """Whose this token is; None where it is nobody's."""
    with conn.cursor(row_factory=class_row(Presented)) as cursor:
        return cursor.execute(
            "SELECT token_id, staff_id, name, roles, state, now() AS read_at FROM staff_token_now"
            " WHERE token_hash = %s",
            [hash_of(token)],
        ).fetchone()


def record_call(conn: psycopg.Connection[Any], actor: str, at: datetime, call: Mapping[str, Any]) -> None:
    """Puts on record that a person made a call.

    `call` says by which token or session, what was asked, from where, and whether it was the person's to ask.
    """
    entry = Entry(type=EntryType.STAFF_CALLED, occurred_at=at, actor=actor, payload=call)
    conn.execute("SELECT staff_called(%s)", [entry.text()])


def record_refusal(
    conn: psycopg.Connection[Any], address: str, whose: Presented | None, call: Mapping[str, Any]
) -> None:
    """Puts on record that a token was refused, and counts that against the address it came from.

    Of an address that is shut out, and beyond sixty a minute from wherever, nothing is put on record.

    `whose`: the person it was good for once; None where it never was anybody's.
    """
    entry = Entry(
        type=EntryType.STAFF_REFUSED,
        occurred_at=clock(conn) if whose is None else whose.read_at,
        actor="system:http",
        reason="unknown" if whose is None else whose.state,
        payload={
            "name": None if whose is None else whose.name,
            "token_id": None if whose is None else whose.token_id,
            **call,
        },
    )
    conn.execute("SELECT staff_refused(%s, %s)", [address, entry.text()])


def locked_out_seconds(conn: psycopg.Connection[Any], address: str) -> int:
    """For how long no wrong token from this address is looked into, as too many came from it; mostly 0."""
    row = conn.execute(
        "SELECT ceil(extract(epoch FROM failed_at[%(most)s] - now()) + %(seconds)s)::integer FROM staff_failure"
        " WHERE address = %(address)s AND cardinality(failed_at) = %(most)s",
        {"address": address, "most": FAILURES_MAX, "seconds": LOCKED_OUT_SECONDS},
    ).fetchone()
    return 0 if row is None else max(0, int(row[0]))


def hash_of(token: str) -> bytes:
    """SHA-256 of a token: all that is kept of it, and what it is found by."""
    return sha256(token.encode()).digest()


def working(conn: psycopg.Connection[Any], name: str) -> tuple[UUID, list[str]]:
    """The id and roles of a person; `SetUpError` for nobody's name and for somebody who has retired."""
    row = conn.execute("SELECT staff_id, roles, retired_at FROM staff WHERE name = %s", [name]).fetchone()
    if row is None:
        raise SetUpError(f"There is nobody called {name!r}. To add somebody: staff add {name} --role ROLE.")
    if row[2] is not None:
        raise SetUpError(f"{name} has retired. Add the person under another name.")
    return row[0], row[1]


def _in_order(roles: Iterable[Role]) -> list[str]:
    wanted = set(roles)
    if not wanted:
        raise SetUpError(f"Give at least one role: {', '.join(Role)}.")
    return [role.value for role in Role if role in wanted]


def entry_of(conn: psycopg.Connection[Any], kind: EntryType, said: Said, **told: Any) -> Entry:
    """The entry of a change about staff."""
    return Entry(
        type=kind,
        occurred_at=clock(conn),
        actor=said.actor,
        authoriser=said.authoriser,
        reason=said.reason,
        **told,
    )


def did(conn: psycopg.Connection[Any], query: str, values: list[Any]) -> bool:
    """What a function of the database answers that tells whether it did what it is for."""
    row = conn.execute(query, values).fetchone()
    assert row is not None
    return bool(row[0])


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: rfc3339(value) if isinstance(value, datetime) else value
        for name, value in row.items()
        if name != "staff_id"
    }
