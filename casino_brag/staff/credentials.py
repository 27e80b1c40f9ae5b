"""What a person who is signed in changes alone: password, second factor, recovery codes."""

from __future__ import annotations

from typing import Any

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.errors import Code, ServiceError
from casino_brag.sealing import Sealer
from casino_brag.staff.access import NOT_RIGHT, SignedIn, begin_try, fail
from casino_brag.staff.factors import (
    Enrolment,
    matching_step,
    new_recovery_codes,
    offer,
    offered,
    recovery_hash,
    seal_secret,
)
from casino_brag.staff.passwords import hash_of_password, hashing, is_right, password_problems
from casino_brag.staff.people import did


def change_password(connect: Connect, who: SignedIn, current: str, new: str, address: str) -> None:
    """Gives a person another password, and ends the person's other sessions.

    Raises `ServiceError`: invalid (`errors` at `current` and `password`; a wrong `current` counts as a failure to sign
    in does), busy.
    """
    if problems := password_problems(new, who.person.name):
        raise ServiceError(Code.INVALID, "The new password will not do.", errors={"password": list(problems)})
    with hashing():
        with connect() as conn:
            tried = begin_try(conn, who.person.name)
        right = is_right(current, tried.password_hash)
        new_hash = hash_of_password(new) if right else None
    with connect() as conn:
        entry = _entry(conn, EntryType.STAFF_PASSWORD_CHANGED, who)
        values = [tried.staff_id, tried.password_hash, new_hash, who.session_id, entry.text()]
        if right and did(conn, "SELECT staff_password_change(%s, %s, %s, %s, %s)", values):
            return
        fail(conn, tried, "password", address)
    raise ServiceError(Code.INVALID, NOT_RIGHT, errors={"current": [NOT_RIGHT]})


def offer_anew(sealer: Sealer, who: SignedIn, brought_back: str = "") -> Enrolment:
    """A secret for another authenticator of somebody who is signed in; the one that the form brought back, if any."""
    return offer(sealer, who.person.name, _holder(who), brought_back)


def change_factor(
    conn: psycopg.Connection[Any], sealer: Sealer, who: SignedIn, sealed_offer: str, code: str
) -> list[str]:
    """Gives a person another second factor and ends the person's other sessions; the new recovery codes, shown once.

    `sealed_offer` is the `Enrolment.sealed` that the form carried, `code` one of the secret in it.  A fresh proof by
    the factor before is asked for first.  Raises `ServiceError` invalid, told at `new_code`.
    """
    secret = offered(sealer, sealed_offer, who.person.name, _holder(who)).secret
    step = matching_step(secret, code, clock(conn))
    if step is None:
        wrong = "This is not the code that your authenticator shows now for the new secret."
        raise ServiceError(Code.INVALID, wrong, errors={"new_code": [wrong]})
    return _change(conn, who, seal_secret(sealer, secret, who.person.staff_id), step)


def renew_recovery_codes(conn: psycopg.Connection[Any], who: SignedIn) -> list[str]:
    """Gives a person other recovery codes in place of those before, to be shown once."""
    return _change(conn, who, None, None)


def _change(
    conn: psycopg.Connection[Any], who: SignedIn, sealed_secret: bytes | None, step: int | None
) -> list[str]:
    codes = new_recovery_codes()
    entry = _entry(
        conn,
        EntryType.STAFF_FACTOR_CHANGED,
        who,
        changed="recovery_codes" if step is None else "authenticator",
    )
    values = [
        who.person.staff_id,
        sealed_secret,
        step,
        list(map(recovery_hash, codes)),
        who.session_id,
        entry.text(),
    ]
    if not did(conn, "SELECT staff_factor_change(%s, %s, %s, %s, %s, %s)", values):
        raise ServiceError(
            Code.WRONG_STATE, "Your account was reset. Join anew by the link that you are given."
        )
    return codes


def _holder(who: SignedIn) -> str:
    return f"session {who.session_id}"


def _entry(conn: psycopg.Connection[Any], kind: EntryType, who: SignedIn, **told: str) -> Entry:
    return Entry(
        type=kind,
        occurred_at=clock(conn),
        actor=who.person.actor,
        payload={"name": who.person.name, "staff_session_id": str(who.session_id), **told},
    )
