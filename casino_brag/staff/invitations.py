"""How a person comes to sign in: by a link that is good once, with a password and a second factor of their own.

A link that two persons led to is in two halves: who proposed it hands the link over, who approved it a join code.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.pool import Connect
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.ids import uuid7
from casino_brag.sealing import Sealer
from casino_brag.staff.factors import (
    Enrolment,
    matching_step,
    new_recovery_codes,
    offer,
    offered,
    plain_code,
    recovery_hash,
    seal_secret,
)
from casino_brag.staff.passwords import hash_of_password, hashing, password_problems
from casino_brag.staff.people import Person, Said, did, entry_of, hash_of, working

INVITATION_HOURS: Final = 72
JOIN_PATH: Final = "/console/join/"
WRONG_CODES_MAX: Final = 5
"""So many wrong join codes end a link."""

GONE: Final = "This link is not good any more: it was used, replaced, or is too old. Ask for another."
WRONG_CODE: Final = "This is not the code that goes with this link. A fifth wrong one ends the link."
ENDED: Final = "That was the fifth wrong join code: this link is not good any more. Ask for a reset."

_CODE_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_READ_ALIKE: Final = str.maketrans("ilo", "110")


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link just made.  Its token is not kept and cannot be shown again."""

    name: str
    token: str = field(repr=False)
    expires_at: datetime

    @property
    def path(self) -> str:
        """The link, from the address of the service on."""
        return JOIN_PATH + self.token


@dataclass(frozen=True, slots=True)
class Invited:
    """Whom a link invites."""

    staff_id: UUID
    name: str
    token_hash: bytes
    needs_code: bool

    @property
    def holder(self) -> str:
        """Which form a secret for this person's authenticator is offered in."""
        return f"invitation {self.token_hash.hex()}"


@dataclass(frozen=True, slots=True)
class Joined:
    """What a person gets who has joined: the recovery codes, shown this once, and the secret of a session."""

    codes: list[str] = field(repr=False)
    secret: str = field(repr=False)


def invite(
    conn: psycopg.Connection[Any],
    name: str,
    said: Said,
    *,
    by: Person | None = None,
    proposal_id: UUID | None = None,
) -> Invitation:
    """Invites a person who has not joined, which ends a link before.

    Where a proposal led to it, it is made once and by the person who proposed it.  `SetUpError` for nobody's name, for
    somebody who has retired or joined, and for a proposal that is somebody else's.
    """
    staff_id, _ = working(conn, name)
    made = Invitation(name, secrets.token_urlsafe(32), clock(conn) + timedelta(hours=INVITATION_HOURS))
    entry = entry_of(
        conn,
        EntryType.STAFF_INVITED,
        said,
        payload={
            "name": name,
            "expires_at": rfc3339(made.expires_at),
            "proposal_id": None if proposal_id is None else str(proposal_id),
        },
    )
    row = conn.execute(
        "SELECT staff_invite(%s, %s, %s, %s, %s, %s)",
        [
            staff_id,
            hash_of(made.token),
            made.expires_at,
            proposal_id,
            None if by is None else by.staff_id,
            entry.text(),
        ],
    ).fetchone()
    assert row is not None
    if row[0] != "invited":
        raise SetUpError(
            {
                "joined": f"{name} has joined already. To begin anew: staff reset {name}.",
                "retired": f"{name} has retired.",
                "not_yours": "Who made the proposal, and is of operations, gets its link once within a week, unless"
                " the person was invited or reset in another way since. Propose a reset for another.",
            }[row[0]]
        )
    return made


def invited(conn: psycopg.Connection[Any], token: str) -> Invited | None:
    """Whom this token invites; None where it is none's or not good any more."""
    with conn.cursor(row_factory=class_row(Invited)) as cursor:
        return cursor.execute(
            "SELECT s.staff_id, s.name, i.token_hash, i.proposal_id IS NOT NULL AS needs_code"
            " FROM staff_invitation AS i JOIN staff AS s USING (staff_id)"
            " WHERE i.token_hash = %s AND i.ended_at IS NULL AND i.expires_at > now()",
            [hash_of(token)],
        ).fetchone()


def offer_to(sealer: Sealer, who: Invited, brought_back: str = "") -> Enrolment:
    """A secret for the authenticator of somebody who is invited; the one that the form brought back, if it did."""
    return offer(sealer, who.name, who.holder, brought_back)


def new_join_code() -> str:
    """The other half of a link: 60 random bits, as twelve characters that nobody mistakes for others."""
    drawn = "".join(secrets.choice(_CODE_ALPHABET) for _ in range(12))
    return f"{drawn[:4]}-{drawn[4:8]}-{drawn[8:]}"


def join_code_hash(code: str) -> bytes:
    """SHA-256 of a join code, however it was typed: all that is kept of it.

    >>> join_code_hash("0J1K-2M3N-4P5Q") == join_code_hash("oj ik 2m3n4p5q")
    True
    """
    return hash_of(plain_code(code).translate(_READ_ALIKE))


def join(
    connect: Connect,
    sealer: Sealer,
    token: str,
    password: str,
    sealed_offer: str,
    code: str,
    address: str,
    *,
    join_code: str = "",
) -> Joined:
    """Makes a person of an invitation one who can sign in, and is signed in: the code that shows the authenticator to
    work would not be taken again.

    `sealed_offer` is the `Enrolment.sealed` that the form carried, `code` one of the secret in it; `join_code` is
    looked at where a proposal led to the link.  Raises `ServiceError`: not_found (the link is not good), invalid
    (`errors` at `password` and `new_code`, or at `join_code` when the rest will do), busy.
    """
    with connect() as conn:
        who, now = invited(conn, token), clock(conn)
    if who is None:
        raise ServiceError(Code.NOT_FOUND, GONE)
    enrolment = offered(sealer, sealed_offer, who.name, who.holder)
    step = matching_step(enrolment.secret, code, now)
    problems = {
        "password": password_problems(password, who.name),
        "new_code": [] if step is not None else ["This is not the code that your authenticator shows now."],
    }
    if any(problems.values()):
        told = {where: what for where, what in problems.items() if what}
        raise ServiceError(Code.INVALID, "Something is to be put right.", errors=told)
    with hashing():
        password_hash = hash_of_password(password)
    made, session_id = Joined(new_recovery_codes(), secrets.token_urlsafe(32)), uuid7()
    with connect() as conn:
        values = [
            who.token_hash,
            join_code_hash(join_code),
            password_hash,
            seal_secret(sealer, enrolment.secret, who.staff_id),
            step,
            list(map(recovery_hash, made.codes)),
            session_id,
            hash_of(made.secret),
            address,
            *_entries_of_joining(conn, who.name, session_id, address),
        ]
        row = conn.execute(
            "SELECT staff_join(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", values
        ).fetchone()
    assert row is not None
    if row[0] == "wrong_code":
        raise ServiceError(Code.INVALID, "Something is to be put right.", errors={"join_code": [WRONG_CODE]})
    if row[0] != "joined":
        raise ServiceError(Code.NOT_FOUND, ENDED if row[0] == "ended" else GONE)
    return made


def _entries_of_joining(
    conn: psycopg.Connection[Any], name: str, session_id: UUID, address: str
) -> list[str]:
    """What can come of it, as texts: joined, signed in, a wrong code, and the fifth of them."""
    payload, person, now = {"name": name, "address": address}, f"staff:{name}", clock(conn)
    session = {"staff_session_id": str(session_id), "by": "authenticator"}
    return [
        Entry(type=kind, occurred_at=now, actor=actor, payload=payload | further).text()
        for kind, actor, further in (
            (EntryType.STAFF_JOINED, person, {}),
            (EntryType.STAFF_SIGNED_IN, person, session),
            (EntryType.STAFF_JOIN_FAILED, "system:http", {}),
            (EntryType.STAFF_INVITATION_ENDED, "system:http", {}),
        )
    ]


def reset(conn: psycopg.Connection[Any], name: str, said: Said) -> bool:
    """Ends a person's password, second factor, recovery codes, sessions and tokens; false for one who has not joined.

    The person is invited anew after that.  `SetUpError` for nobody's name and for somebody who has retired.
    """
    staff_id, _ = working(conn, name)
    entry = entry_of(conn, EntryType.STAFF_RESET, said, before={"name": name})
    return did(conn, "SELECT staff_reset(%s, %s)", [staff_id, entry.text()])


def unlock(conn: psycopg.Connection[Any], name: str, said: Said) -> bool:
    """Lets a person sign in before the account's lock ends; false for an account that is not locked.

    `SetUpError` for nobody's name and for somebody who has retired.
    """
    staff_id, _ = working(conn, name)
    entry = entry_of(
        conn,
        EntryType.STAFF_UNLOCKED,
        said,
        before={"name": name, "locked": True},
        after={"name": name, "locked": False},
    )
    return did(conn, "SELECT staff_unlock(%s, %s)", [staff_id, entry.text()])
