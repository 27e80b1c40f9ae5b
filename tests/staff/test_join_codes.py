"""A link that two persons led to is in two halves: neither who proposed nor who approved joins in another's place."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7
from casino_brag.staff.factors import Enrolment
from casino_brag.staff.invitations import (
    ENDED,
    GONE,
    WRONG_CODES_MAX,
    Invitation,
    Joined,
    invite,
    invited,
    join_code_hash,
    new_join_code,
    reset,
)
from casino_brag.staff.passwords import STAND_IN
from casino_brag.staff.people import Person, Role, hash_of
from casino_brag.staff.proposals import Kind, decide, make_link, propose, read_proposal
from tests.colleagues import SAID, colleague
from tests.inprocess import AppHouse
from tests.running import together
from tests.staff.joining import joined, offered, refusal

WRONG = "0000-0000-0000"
Connection = psycopg.Connection[Any]


@pytest.fixture
def olga(app_house: AppHouse) -> Person:
    """Somebody who proposes, and could approve too."""
    return colleague(app_house, Role.APPROVER, Role.OPERATIONS, name="olga." + secrets.token_hex(4)).person


@pytest.fixture
def anna(app_house: AppHouse) -> Person:
    """Somebody who approves."""
    return colleague(app_house, Role.APPROVER, name="anna." + secrets.token_hex(4)).person


@pytest.fixture
def name() -> str:
    """Nobody's name yet."""
    return "new." + secrets.token_hex(4)


@pytest.fixture(autouse=True)
def hashing_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casino_brag.staff.invitations.hash_of_password", lambda _: STAND_IN)


def proposed(conn: Connection, by: Person, name: str, kind: Kind = Kind.STAFF_INVITE) -> UUID:
    payload = {"roles": ["approver"]} if kind in (Kind.STAFF_INVITE, Kind.STAFF_ROLES) else {}
    return propose(conn, by, kind, name, payload, "It was agreed.")


def approved(conn: Connection, by: Person, proposal_id: UUID) -> str | None:
    return decide(conn, by, proposal_id, True, "", lambda *_: None)


def halves(
    conn: Connection, proposer: Person, approver: Person, name: str, kind: Kind = Kind.STAFF_INVITE
) -> tuple[Invitation, str]:
    """What the proposer gets, and what the approver."""
    proposal_id = proposed(conn, proposer, name, kind)
    code = approved(conn, approver, proposal_id)
    assert code is not None
    return make_link(conn, proposer, proposal_id), code


def joined_past_the_page(conn: Connection, link: Invitation, code_hash: bytes | None) -> str:
    """What the function of the database says to somebody who calls it without the program's pages."""
    wrong, ended = (
        Entry(type=kind, occurred_at=clock(conn), actor="system:tests", payload={"name": link.name}).text()
        for kind in (EntryType.STAFF_JOIN_FAILED, EntryType.STAFF_INVITATION_ENDED)
    )
    row = conn.execute(
        "SELECT staff_join(%s, %s, %s, '', 0, '{}', %s, %s, '', '{}', '{}', %s, %s)",
        [hash_of(link.token), code_hash, STAND_IN, uuid7(), secrets.token_bytes(32), wrong, ended],
    ).fetchone()
    assert row is not None
    outcome: str = row[0]
    return outcome


def count(conn: Connection, kind: str, name: str) -> int:
    row = conn.execute(
        "SELECT count(*) FROM audit_entry WHERE type = %s AND payload ->> 'name' = %s", [kind, name]
    ).fetchone()
    assert row is not None
    return int(row[0])


def has_joined(conn: Connection, name: str) -> bool:
    row = conn.execute(
        "SELECT joined_at IS NOT NULL FROM staff_access_now JOIN staff USING (staff_id) WHERE name = %s",
        [name],
    ).fetchone()
    return row == (True,)


@pytest.mark.parametrize(
    "typed",
    [
        lambda code: code,
        lambda code: code.lower().replace("-", ""),
        lambda code: " " + code.replace("-", " ") + " ",
        lambda code: code.replace("0", "o").replace("1", "I"),
        lambda code: code.replace("0", "O").replace("1", "l"),
    ],
)
def test_link_and_code_together_join_however_the_code_is_typed(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str, typed: Callable[[str], str]
) -> None:
    link, code = halves(conn, olga, anna, name)
    whom = invited(conn, link.token)
    assert whom is not None
    assert whom.needs_code
    assert isinstance(joined(app_house, link, offered(app_house, conn, link), join_code=typed(code)), Joined)
    assert has_joined(conn, name)


def test_a_code_is_easy_to_read_aloud_and_hard_to_guess() -> None:
    codes = {new_join_code() for _ in range(500)}
    assert len(codes) == 500
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}", code) for code in codes)
    assert len(set("".join(codes)) - {"-"}) == 32


@pytest.mark.parametrize("guess", ["", WRONG, "\x00", "🂡", "a" * 5000])
def test_who_proposed_does_not_join_by_the_link_alone(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str, guess: str
) -> None:
    link, code = halves(conn, olga, anna, name)
    offer = offered(app_house, conn, link)
    refused = refusal(joined(app_house, link, offer, join_code=guess))
    assert (refused.code, list(refused.errors or {})) == (Code.INVALID, ["join_code"])
    assert not has_joined(conn, name)
    assert isinstance(joined(app_house, link, offer, join_code=code), Joined)


@pytest.mark.parametrize("code_hash", [None, b"", bytes(32), join_code_hash("")])
def test_the_database_itself_lets_nobody_join_by_the_link_alone(
    conn: Connection, olga: Person, anna: Person, name: str, code_hash: bytes | None
) -> None:
    link, _ = halves(conn, olga, anna, name)
    assert joined_past_the_page(conn, link, code_hash) == "wrong_code"
    assert not has_joined(conn, name)


def test_who_approved_does_not_join_by_the_code_alone(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    proposal_id = proposed(conn, olga, name)
    code = approved(conn, anna, proposal_id)
    assert code is not None
    with pytest.raises(ServiceError) as refused:
        make_link(conn, anna, proposal_id)
    assert refused.value.code is Code.WRONG_STATE
    for token in ("", code):
        link = Invitation(name, token, read_proposal(conn, proposal_id).proposed_at)
        assert invited(conn, token) is None
        outcome = joined(app_house, link, Enrolment(b"", "", ""), code="1", join_code=code)
        assert refusal(outcome).detail == GONE
        assert joined_past_the_page(conn, link, join_code_hash(code)) == "gone"
    assert not has_joined(conn, name)


def test_the_code_of_another_invitation_is_wrong(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, code = halves(conn, olga, anna, name)
    other_link, other_code = halves(conn, olga, anna, name + ".b")
    for invitation, theirs in ((link, other_code), (other_link, code)):
        offer = offered(app_house, conn, invitation)
        refused = refusal(joined(app_house, invitation, offer, join_code=theirs))
        assert list(refused.errors or {}) == ["join_code"]


def test_the_fifth_wrong_code_ends_the_link_on_record(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, code = halves(conn, olga, anna, name)
    offer = offered(app_house, conn, link)
    outcomes = [refusal(joined(app_house, link, offer, join_code=WRONG)) for _ in range(WRONG_CODES_MAX)]
    assert [outcome.code for outcome in outcomes] == [*[Code.INVALID] * 4, Code.NOT_FOUND]
    assert outcomes[-1].detail == ENDED
    assert refusal(joined(app_house, link, offer, join_code=code)).detail == GONE
    assert (count(conn, "staff.join_failed", name), count(conn, "staff.invitation_ended", name)) == (5, 1)
    again, code = halves(conn, olga, anna, name, Kind.STAFF_RESET)
    assert isinstance(joined(app_house, again, offered(app_house, conn, again), join_code=code), Joined)


def test_four_wrong_codes_leave_the_right_one_good_and_what_else_is_wrong_costs_none(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, code = halves(conn, olga, anna, name)
    offer = offered(app_house, conn, link)
    for _ in range(WRONG_CODES_MAX - 1):
        assert refusal(joined(app_house, link, offer, join_code=WRONG)).code is Code.INVALID
        refused = refusal(joined(app_house, link, offer, "short", join_code=WRONG))
        assert list(refused.errors or {}) == ["password"]
    assert isinstance(joined(app_house, link, offer, join_code=code), Joined)


def test_codes_guessed_at_the_same_time_are_no_more_than_five(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, _ = halves(conn, olga, anna, name)

    def guess() -> str:
        with app_house.connect(DatabaseRole.APP) as own:
            return joined_past_the_page(own, link, bytes(32))

    outcomes = together([guess] * 8)
    assert sorted(outcomes) == ["ended", *["gone"] * 3, *["wrong_code"] * 4]
    assert (count(conn, "staff.join_failed", name), count(conn, "staff.invitation_ended", name)) == (5, 1)


def test_a_reset_ends_the_link_and_the_code_from_before(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    before, old_code = halves(conn, olga, anna, name)
    proposal_id = proposed(conn, olga, name, Kind.STAFF_RESET)
    new_code = approved(conn, anna, proposal_id)
    assert new_code is not None
    for code in (old_code, new_code):
        assert joined_past_the_page(conn, before, join_code_hash(code)) == "gone"
    after = make_link(conn, olga, proposal_id)
    offer = offered(app_house, conn, after)
    assert refusal(joined(app_house, after, offer, join_code=old_code)).code is Code.INVALID
    assert isinstance(joined(app_house, after, offer, join_code=new_code), Joined)


def test_a_link_that_was_not_made_before_a_reset_is_not_made_after_it(
    conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    """Else the code that goes with it, which may be known to others by now, would be good still."""
    before = proposed(conn, olga, name)
    approved(conn, anna, before)
    after = proposed(conn, olga, name, Kind.STAFF_RESET)
    approved(conn, anna, after)
    with pytest.raises(ServiceError) as refused:
        make_link(conn, olga, before)
    assert refused.value.code is Code.WRONG_STATE
    assert make_link(conn, olga, after).name == name


def test_a_link_made_while_a_newer_proposal_is_being_approved_keeps_nobody_from_the_newer_link(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    before = proposed(conn, olga, name)
    approved(conn, anna, before)
    after = proposed(conn, olga, name, Kind.STAFF_RESET)
    with app_house.service.database.connection() as other, other.transaction():
        clock(other)  # what is decided in this transaction is of this moment
        link = make_link(conn, olga, before)
        approved(other, anna, after)
    assert invited(conn, link.token) is None
    assert make_link(conn, olga, after).name == name


def test_two_approvals_at_the_same_time_give_one_code(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    proposal_id = proposed(conn, olga, name)
    bert = colleague(app_house, Role.APPROVER, name="bert." + secrets.token_hex(4)).person

    def attempt(who: Person) -> str | None:
        with app_house.service.database.connection() as own:
            try:
                return approved(own, who, proposal_id)
            except ServiceError:
                return None

    (code,) = [code for code in together([partial(attempt, who) for who in (anna, bert, anna, bert)]) if code]
    link = make_link(conn, olga, proposal_id)
    assert isinstance(joined(app_house, link, offered(app_house, conn, link), join_code=code), Joined)


def test_what_leads_to_no_link_gives_no_code(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    assert decide(conn, anna, proposed(conn, olga, name), False, "No.", lambda *_: None) is None
    subject = colleague(app_house, Role.EDITOR).name
    for kind in (Kind.STAFF_ROLES, Kind.STAFF_RETIRE):
        assert approved(conn, anna, proposed(conn, olga, subject, kind)) is None


def test_who_has_the_command_line_invites_without_a_code(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, code = halves(conn, olga, anna, name)
    assert isinstance(joined(app_house, link, offered(app_house, conn, link), join_code=code), Joined)
    assert reset(conn, name, SAID)
    by_command = invite(conn, name, SAID)
    whom = invited(conn, by_command.token)
    assert whom is not None
    assert not whom.needs_code
    assert isinstance(joined(app_house, by_command, offered(app_house, conn, by_command)), Joined)


def test_a_code_is_in_no_entry_and_its_hash_is_not_the_applications_to_read(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, code = halves(conn, olga, anna, name)
    refusal(joined(app_house, link, offered(app_house, conn, link), join_code=code[:-1]))
    assert isinstance(joined(app_house, link, offered(app_house, conn, link), join_code=code), Joined)
    with app_house.connect() as owner:
        kept = "".join(
            str(row)
            for query in (
                "SELECT convert_from(bytes, 'UTF8') FROM audit_entry",
                "SELECT p::text FROM proposal AS p",
                "SELECT i::text FROM staff_invitation AS i",
                "SELECT c::text FROM staff_join_code AS c",
            )
            for row in owner.execute(query)
        ).lower()
    assert join_code_hash(code).hex() in kept
    for part in (code, code[:-1], code.replace("-", ""), code.replace("-", "")[:-1], link.token):
        assert part.lower() not in kept
    for query in ("SELECT code_hash FROM staff_join_code", "SELECT * FROM staff_join_code"):
        with pytest.raises(pg.InsufficientPrivilege):
            conn.execute(query)


def test_the_database_itself_approves_no_link_without_another_half(
    conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    proposal_id = proposed(conn, olga, name)
    for code_hash, broken in ((None, pg.NotNullViolation), (b"short", pg.CheckViolation)):
        with pytest.raises(broken):
            conn.execute(
                "SELECT proposal_decide(%s, 'approved', NULL, %s, %s, '{}')",
                [proposal_id, anna.staff_id, code_hash],
            )


def test_a_sixth_wrong_code_is_refused_by_the_table_itself(
    app_house: AppHouse, conn: Connection, olga: Person, anna: Person, name: str
) -> None:
    link, _ = halves(conn, olga, anna, name)
    with app_house.connect() as owner, pytest.raises(pg.CheckViolation, match="five_at_most"):
        owner.execute(
            "UPDATE staff_invitation SET wrong_codes = 6 WHERE token_hash = %s", [hash_of(link.token)]
        )
