"""Joining: by a link that is good once, with a password that will do and an authenticator that works."""

from __future__ import annotations

import json
import secrets
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from argon2 import extract_parameters
from psycopg import errors as pg

from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.ids import uuid7
from casino_brag.staff import passwords
from casino_brag.staff.access import give_code, give_password, sessions
from casino_brag.staff.factors import RECOVERY_CODES, Enrolment
from casino_brag.staff.invitations import (
    GONE,
    INVITATION_HOURS,
    Invitation,
    Joined,
    invite,
    invited,
    reset,
    unlock,
)
from casino_brag.staff.passwords import STAND_IN, hash_of_password, hashing, password_problems
from casino_brag.staff.people import (
    Role,
    TokenState,
    add_staff,
    hash_of,
    issue_token,
    presented,
    revoke,
)
from tests.colleagues import PASSWORD, SAID, code_of, colleague
from tests.inprocess import AppHouse
from tests.running import together
from tests.staff.joining import joined, offered, refusal


@pytest.fixture
def name(conn: psycopg.Connection[Any]) -> str:
    """Somebody who has not joined."""
    name = "bob." + secrets.token_hex(4)
    add_staff(conn, name, [Role.EDITOR], SAID)
    return name


def entry_of(conn: psycopg.Connection[Any], kind: str, name: str) -> dict[str, Any]:
    (row,) = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry"
        " WHERE type = %s AND coalesce(payload, before) ->> 'name' = %s",
        [kind, name],
    ).fetchall()
    entry: dict[str, Any] = json.loads(row[0])
    return entry


def test_a_person_joins_and_signs_in(app_house: AppHouse, conn: psycopg.Connection[Any], name: str) -> None:
    invitation = invite(conn, name, SAID)
    assert invitation.path == f"/console/join/{invitation.token}"
    assert invitation.expires_at - clock(conn) <= timedelta(hours=INVITATION_HOURS)
    offer = offered(app_house, conn, invitation)
    made = joined(app_house, invitation, offer)
    assert isinstance(made, Joined)
    codes = made.codes
    assert len(set(codes)) == RECOVERY_CODES
    secret = give_password(app_house.service.database.connection, name, PASSWORD, "::2")
    assert give_code(conn, app_house.sealer, secret, code_of(offer.secret, steps_ahead=1), "::2")
    assert entry_of(conn, "staff.invited", name)["reason"] == SAID.reason
    assert entry_of(conn, "staff.joined", name)["actor"] == f"staff:{name}"


def test_nobody_signs_in_who_has_not_joined(
    app_house: AppHouse, conn: psycopg.Connection[Any], name: str
) -> None:
    invite(conn, name, SAID)
    with pytest.raises(ServiceError):
        give_password(app_house.service.database.connection, name, PASSWORD, "::3")
    with app_house.connect() as owner, pytest.raises(pg.NotNullViolation):
        owner.execute(
            "INSERT INTO staff_access (staff_id, password_hash, sealed_secret, code_step, recovery_codes)"
            " SELECT staff_id, %s, NULL, 0, '{}' FROM staff WHERE name = %s",
            [STAND_IN, name],
        )


def test_secrets_are_in_no_entry_and_kept_hashed_or_sealed(
    app_house: AppHouse, conn: psycopg.Connection[Any], name: str
) -> None:
    invitation = invite(conn, name, SAID)
    offer = offered(app_house, conn, invitation)
    made = joined(app_house, invitation, offer)
    assert isinstance(made, Joined)
    codes = made.codes
    with app_house.connect() as owner:
        kept = "".join(
            str(row)
            for table in ("staff_access", "staff_invitation")
            for row in owner.execute(
                f"SELECT t::text FROM {table} AS t JOIN staff USING (staff_id) WHERE name = %s", [name]
            )
        )
    entries = [entry_of(conn, kind, name) for kind in ("staff.invited", "staff.joined")]
    shown = kept + json.dumps(entries) + repr(invitation) + repr(offer)
    for secret in (PASSWORD, invitation.token, offer.secret.hex(), offer.text.replace(" ", ""), *codes):
        assert secret not in shown


def test_a_link_is_good_once(app_house: AppHouse, conn: psycopg.Connection[Any], name: str) -> None:
    invitation = invite(conn, name, SAID)
    offer = offered(app_house, conn, invitation)
    assert isinstance(joined(app_house, invitation, offer), Joined)
    assert invited(conn, invitation.token) is None
    assert refusal(joined(app_house, invitation, offer)).detail == GONE


def test_a_link_is_good_once_when_it_is_used_many_times_at_once(
    app_house: AppHouse, conn: psycopg.Connection[Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_PLACES", passwords._Places(20, 0))
    invitation = invite(conn, name, SAID)
    offer = offered(app_house, conn, invitation)
    outcomes = together([partial(joined, app_house, invitation, offer)] * 4)
    assert sum(isinstance(outcome, Joined) for outcome in outcomes) == 1
    assert {refusal(o).code for o in outcomes if not isinstance(o, Joined)} == {Code.NOT_FOUND}


def test_a_new_link_ends_the_one_before(
    app_house: AppHouse, conn: psycopg.Connection[Any], name: str
) -> None:
    before = invite(conn, name, SAID)
    offer = offered(app_house, conn, before)
    after = invite(conn, name, SAID)
    assert refusal(joined(app_house, before, offer)).code is Code.NOT_FOUND
    assert refusal(joined(app_house, after, offer)).code is Code.INVALID
    assert isinstance(joined(app_house, after, offered(app_house, conn, after)), Joined)


@pytest.mark.parametrize("token", ["", "x", "\x00", "a" * 500])
def test_what_is_no_link_is_told_so(app_house: AppHouse, conn: psycopg.Connection[Any], token: str) -> None:
    assert invited(conn, token) is None
    made = Invitation("nobody", token, clock(conn))
    assert refusal(joined(app_house, made, Enrolment(b"", "", ""), code="1")).code is Code.NOT_FOUND


def test_a_link_expires(app_house: AppHouse, conn: psycopg.Connection[Any], name: str) -> None:
    token = secrets.token_urlsafe(32)
    with app_house.connect() as owner:
        owner.execute(
            "INSERT INTO staff_invitation (token_hash, staff_id, made_at, expires_at)"
            " SELECT %s, staff_id, now() - interval '72 hours', now() FROM staff WHERE name = %s",
            [hash_of(token), name],
        )
    assert invited(conn, token) is None
    row = conn.execute(
        "SELECT staff_join(%s, '', %s, '', 0, '{}', %s, '', '', '{}', '{}', '{}', '{}')",
        [hash_of(token), STAND_IN, uuid7()],
    ).fetchone()
    assert row == ("gone",)


def test_who_retired_is_not_joined_and_not_invited(
    app_house: AppHouse, conn: psycopg.Connection[Any], name: str
) -> None:
    invitation = invite(conn, name, SAID)
    offer = offered(app_house, conn, invitation)
    revoke(conn, name, SAID)
    assert refusal(joined(app_house, invitation, offer)).code is Code.NOT_FOUND
    with pytest.raises(SetUpError, match="has retired"):
        invite(conn, name, SAID)


def test_who_has_joined_is_reset_before_another_link_is_made(
    app_house: AppHouse, conn: psycopg.Connection[Any]
) -> None:
    who = colleague(app_house, Role.EDITOR).signed_in()
    token = issue_token(conn, who.name, "A program.", SAID).token
    with pytest.raises(SetUpError, match="staff reset"):
        invite(conn, who.name, SAID)
    assert reset(conn, who.name, SAID)
    assert not reset(conn, who.name, SAID)
    assert entry_of(conn, "staff.reset", who.name)["actor"] == SAID.actor
    assert [row.ended_why for row in sessions(conn, staff_id=who.staff_id)] == ["reset"]
    called_with = presented(conn, token)
    assert called_with is not None
    assert called_with.state == TokenState.REVOKED
    with pytest.raises(ServiceError):
        give_password(app_house.service.database.connection, who.name, PASSWORD, "::4")
    again = invite(conn, who.name, SAID)
    assert isinstance(joined(app_house, again, offered(app_house, conn, again)), Joined)


@pytest.mark.parametrize("change", [invite, reset, unlock])
def test_nobody_is_invited_reset_or_unlocked_who_is_not_there(
    conn: psycopg.Connection[Any], change: Any
) -> None:
    with pytest.raises(SetUpError, match="There is nobody"):
        change(conn, "nobody", SAID)


def test_everything_that_is_wrong_with_a_form_is_told_at_once_and_the_link_stays_good(
    app_house: AppHouse, conn: psycopg.Connection[Any], name: str
) -> None:
    invitation = invite(conn, name, SAID)
    offer = offered(app_house, conn, invitation)
    refused = refusal(joined(app_house, invitation, offer, name, "000000x"))
    assert set(refused.errors or {}) == {"password", "new_code"}
    assert isinstance(joined(app_house, invitation, offer), Joined)


@pytest.mark.parametrize(
    ("password", "problem"),
    [
        ("eleven char", "12 to 200"),
        ("", "12 to 200"),
        ("a b c d e f" * 19, "12 to 200"),
        ("BOB is not it at all", "your name"),
        ("Password1234", "easily guessed"),
        ("aaaaaaaaaaaaaaaa", "easily guessed"),
        ("ababababababab", "easily guessed"),
    ],
)
def test_a_poor_password_will_not_do(password: str, problem: str) -> None:
    problems = password_problems(password, "bob")
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    "password", ["twelve chars", "a brag of three", "å" * 3 + "räksmörgås", "x y z w v " * 20]
)
def test_a_long_password_of_any_characters_will_do(password: str) -> None:
    assert password_problems(password, "bob") == []


def test_a_stand_in_costs_what_a_kept_password_costs() -> None:
    with hashing():
        kept = hash_of_password(PASSWORD)
    assert extract_parameters(kept) == extract_parameters(STAND_IN)
    assert len(kept) == len(STAND_IN)


def test_who_finds_no_place_to_hash_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(passwords, "_PLACES", passwords._Places(1, 1))
    for _ in range(2):
        with hashing(), pytest.raises(ServiceError) as refused, hashing():
            pass
        assert refused.value.code is Code.BUSY
    with hashing():
        pass
