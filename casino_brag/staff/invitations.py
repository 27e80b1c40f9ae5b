"""How a person comes to sign in: by a link that is good once, with a password and a second factor of their own."""

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
    recovery_hash,
    seal_secret,
)
from casino_brag.staff.passwords import hash_of_password, hashing, password_problems
from casino_brag.staff.people import Person, Said, did, entry_of, hash_of, working

INVITATION_HOURS: Final = 72
JOIN_PATH: Final = "/console/join/"

GONE: Final = "This link is not good any more: it was used, replaced, or is too old. Ask for another."


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
                " the person was invited in another way since. Propose a reset for another.",
            }[row[0]]
        )
    return made


def invited(conn: psycopg.Connection[Any], token: str) -> Invited | None:
    """Whom this token invites; None where it is none's or not good any more."""
    with conn.cursor(row_factory=class_row(Invited)) as cursor:
        return cursor.execute(
            "SELECT s.staff_id, s.name, i.token_hash FROM staff_invitation AS i JOIN staff AS s USING (staff_id)"
            " WHERE i.token_hash = %s AND i.ended_at IS NULL AND i.expires_at > now()",
            [hash_of(token)],
        ).fetchone()


def offer_to(sealer: Sealer, who: Invited, brought_back: str = "") -> Enrolment:
    """A secret for the authenticator of somebody who is invited; the one that the form brought back, if it did."""
    return offer(sealer, who.name, who.holder, brought_back)


def join(
    connect: Connect, sealer: Sealer, token: str, password: str, sealed_offer: str, code: str, address: str
) -> Joined:
    """Makes a person of an invitation one who can sign in, and is signed in: the code that shows the authenticator to
    work would not be taken again.

    `sealed_offer` is the `Enrolment.sealed` that the form carried, `code` one of the secret in it.  Raises
    `ServiceError`: not_found (the link is not good), invalid (`errors` at `password` and `new_code`), busy.
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
    payload = {"name": who.name, "address": address}
    with connect() as conn:
        entry = Entry(
            type=EntryType.STAFF_JOINED,
            occurred_at=clock(conn),
            actor=f"staff:{who.name}",
            payload=payload,
        )
        session = {"staff_session_id": str(session_id), "by": "authenticator"}
        signed_in = Entry(
            type=EntryType.STAFF_SIGNED_IN,
            occurred_at=entry.occurred_at,
            actor=entry.actor,
            payload=payload | session,
        )
        values = [
            who.token_hash,
            password_hash,
            seal_secret(sealer, enrolment.secret, who.staff_id),
            step,
            list(map(recovery_hash, made.codes)),
            *(session_id, hash_of(made.secret), address),
            *(entry.text(), signed_in.text()),
        ]
        if not did(conn, "SELECT staff_join(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", values):
            raise ServiceError(Code.NOT_FOUND, GONE)
    return made


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
