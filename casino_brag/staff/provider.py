"""Accounts at the operator's identity provider: linked by a person who is signed in, and in place of the password then.

An account is known by its issuer and subject alone, which a provider gives to nobody else.  A name or an address it
may give to another.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Person, did, hash_of

WAY_SECONDS: Final = 600
"""How long a person may take at the provider."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account at a provider."""

    issuer: str
    subject: str


def linked(conn: psycopg.Connection[Any], person: Person) -> Account | None:
    """The account by which a person can sign in; None for nobody's."""
    row = conn.execute(
        "SELECT issuer, subject FROM staff_provider_account WHERE staff_id = %s AND ended_at IS NULL",
        [person.staff_id],
    ).fetchone()
    return None if row is None else Account(*row)


def link(conn: psycopg.Connection[Any], who: SignedIn, account: Account, address: str) -> None:
    """Links an account to the person, who gave a code just before.

    Raises `ServiceError` wrong_state where it cannot be, which is put on record.
    """
    values = [who.session_id, account.issuer, account.subject]
    entry = _entry(conn, EntryType.STAFF_PROVIDER_LINKED, who, account)
    row = conn.execute("SELECT staff_provider_link(%s, %s, %s, %s)", [*values, entry.text()]).fetchone()
    assert row is not None
    if row[0] != "linked":
        record_failure(conn, row[0], who.person.name, address)
        raise ServiceError(
            Code.WRONG_STATE,
            {
                "no_proof": "The code that you gave is too old by now. Begin again.",
                "has_one": "You have linked an account already. Unlink that one first.",
                "taken": "That account is or was another person's. Use one that is yours alone.",
            }[row[0]],
        )


def unlink(conn: psycopg.Connection[Any], who: SignedIn) -> bool:
    """Ends a person's link and other sessions; false where there is no link."""
    account = linked(conn, who.person)
    if account is None:
        return False
    entry = _entry(conn, EntryType.STAFF_PROVIDER_UNLINKED, who, account)
    return did(conn, "SELECT staff_provider_unlink(%s, %s)", [who.session_id, entry.text()])


def sign_in_by(conn: psycopg.Connection[Any], account: Account, address: str) -> str:
    """What the right password leads to, for the person who linked this account: a session in which a code can be given.

    Raises `ServiceError` unauthenticated, which is put on record.
    """
    row = conn.execute(
        "SELECT staff_id, name FROM staff_provider_account JOIN staff USING (staff_id)"
        " WHERE issuer = %s AND subject = %s AND ended_at IS NULL",
        [account.issuer, account.subject],
    ).fetchone()
    staff_id, name = row or (None, None)
    secret = secrets.token_urlsafe(32)
    values = [staff_id, account.issuer, account.subject, uuid7(), hash_of(secret), address]
    if staff_id and did(conn, "SELECT staff_provider_sign_in(%s, %s, %s, %s, %s, %s)", values):
        return secret
    record_failure(conn, "not_linked" if name is None else "not_tried", name, address)
    raise ServiceError(
        Code.UNAUTHENTICATED,
        "That account lets nobody in: it is linked to nobody here, or the person's account is locked. Sign in with"
        " your password, and link it on the page of your account.",
    )


def record_failure(conn: psycopg.Connection[Any], why: str, name: str | None, address: str) -> None:
    """Puts on record that somebody did not get in, or linked nothing, as far as that address may add to the log."""
    entry = Entry(
        type=EntryType.STAFF_SIGN_IN_FAILED,
        occurred_at=clock(conn),
        actor="system:http",
        reason=why,
        payload={"name": name, "address": address, "by": "oidc"},
    )
    conn.execute("SELECT staff_try_failed(NULL, false, %s, %s, NULL)", [address, entry.text()])


def _entry(conn: psycopg.Connection[Any], kind: EntryType, who: SignedIn, account: Account) -> Entry:
    return Entry(
        type=kind,
        occurred_at=clock(conn),
        actor=who.person.actor,
        payload={
            "name": who.person.name,
            "staff_session_id": str(who.session_id),
            "issuer": account.issuer,
            "subject": account.subject,
        },
    )
