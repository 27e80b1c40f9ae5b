"""What takes two persons: who may propose and decide, and that an approval is carried out, once and whole."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors as pg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.errors import Code, ServiceError
from casino_brag.rounds.proposed import propose_void, void_proposed
from casino_brag.staff.access import sessions
from casino_brag.staff.invitations import invite, invited
from casino_brag.staff.people import Role, revoke, set_roles
from casino_brag.staff.proposals import (
    OPEN_DAYS,
    Kind,
    ProposalState,
    decide,
    make_link,
    open_proposals,
    propose,
    read_proposal,
    recent_proposals,
    withdraw,
)
from tests.colleagues import SAID, Colleague, colleague
from tests.inprocess import AppHouse
from tests.running import together

WHY = "It was agreed on Monday."


@pytest.fixture
def olga(app_house: AppHouse) -> Colleague:
    """Somebody who proposes, and could approve too."""
    return colleague(app_house, Role.APPROVER, Role.OPERATIONS, name="olga." + secrets.token_hex(4))


@pytest.fixture
def anna(app_house: AppHouse) -> Colleague:
    """Somebody who approves."""
    return colleague(app_house, Role.APPROVER, name="anna." + secrets.token_hex(4))


def new_name() -> str:
    return "new." + secrets.token_hex(4)


def approve(conn: psycopg.Connection[Any], who: Colleague, proposal_id: UUID) -> None:
    decide(conn, who.person, proposal_id, True, "", partial(void_proposed, who.house.service.house))


def reject(
    conn: psycopg.Connection[Any], who: Colleague, proposal_id: UUID, reason: str = "No need."
) -> None:
    decide(conn, who.person, proposal_id, False, reason, partial(void_proposed, who.house.service.house))


def refused(code: Code, call: Callable[[], Any]) -> ServiceError:
    with pytest.raises(ServiceError) as raised:
        call()
    assert raised.value.code is code
    return raised.value


def state(conn: psycopg.Connection[Any], proposal_id: UUID) -> ProposalState:
    return read_proposal(conn, proposal_id).state


def entries(conn: psycopg.Connection[Any], kind: str, **payload: str) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry WHERE type = %s AND coalesce(payload, after, before) @> %s"
        " ORDER BY entry_id",
        [kind, json.dumps(payload)],
    )
    return [json.loads(text) for (text,) in rows]


def age(house: AppHouse, proposal_id: UUID, **ago: float) -> None:
    with house.connect() as owner, owner.transaction():
        owner.execute("ALTER TABLE proposal DISABLE TRIGGER proposal_decided_is_final")
        owner.execute(
            "UPDATE proposal SET proposed_at = proposed_at - %s WHERE proposal_id = %s",
            [timedelta(**ago), proposal_id],
        )
        owner.execute("ALTER TABLE proposal ENABLE ALWAYS TRIGGER proposal_decided_is_final")


def test_a_new_colleague_takes_two_persons(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    assert made in {proposal.proposal_id for proposal in open_proposals(conn)}
    approve(conn, anna, made)
    assert made not in {proposal.proposal_id for proposal in open_proposals(conn)}
    assert made in {proposal.proposal_id for proposal in recent_proposals(conn)}
    (added,) = entries(conn, "staff.added", name=name)
    assert (added["actor"], added["authoriser"], added["reason"]) == (
        f"staff:{olga.name}",
        f"staff:{anna.name}",
        WHY,
    )
    (proposed,) = entries(conn, "proposal.made", proposal_id=str(made))
    (decided,) = entries(conn, "proposal.decided", proposal_id=str(made))
    assert (proposed["actor"], decided["actor"]) == (f"staff:{olga.name}", f"staff:{anna.name}")
    assert decided["after"] == {"state": "approved"}


def test_the_link_is_for_who_proposed_and_once(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    refused(Code.WRONG_STATE, lambda: make_link(conn, olga.person, made))
    approve(conn, anna, made)
    refused(Code.WRONG_STATE, lambda: make_link(conn, anna.person, made))
    link = make_link(conn, olga.person, made)
    whom = invited(conn, link.token)
    assert whom is not None
    assert whom.name == name
    assert read_proposal(conn, made).link_made
    refused(Code.WRONG_STATE, lambda: make_link(conn, olga.person, made))
    (entry,) = entries(conn, "staff.invited", name=name)
    assert (entry["actor"], entry["authoriser"]) == (f"staff:{olga.name}", f"staff:{anna.name}")


def test_a_link_that_was_never_made_takes_nobodys_place(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    """Whoever was invited in another way since the decision keeps that link, also after a reset."""
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["approver"]}, WHY)
    approve(conn, anna, made)
    theirs = invite(conn, name, SAID)
    refused(Code.WRONG_STATE, lambda: make_link(conn, olga.person, made))
    whom = invited(conn, theirs.token)
    assert whom is not None
    assert whom.name == name
    again = invite(conn, name, SAID)
    refused(Code.WRONG_STATE, lambda: make_link(conn, olga.person, made))
    assert invited(conn, again.token) is not None
    assert not read_proposal(conn, made).link_made


@pytest.mark.parametrize(
    ("ago", "is_made"), [(timedelta(days=6, hours=23), True), (timedelta(days=7), False)]
)
def test_a_link_is_made_within_a_week_of_the_decision(
    conn: psycopg.Connection[Any],
    app_house: AppHouse,
    olga: Colleague,
    anna: Colleague,
    ago: timedelta,
    is_made: bool,
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    approve(conn, anna, made)
    with app_house.connect() as owner, owner.transaction():
        owner.execute("ALTER TABLE proposal DISABLE TRIGGER proposal_decided_is_final")
        owner.execute("UPDATE proposal SET decided_at = decided_at - %s WHERE proposal_id = %s", [ago, made])
        owner.execute("ALTER TABLE proposal ENABLE ALWAYS TRIGGER proposal_decided_is_final")
    if is_made:
        assert make_link(conn, olga.person, made).name == name
    else:
        refused(Code.WRONG_STATE, lambda: make_link(conn, olga.person, made))


@pytest.mark.parametrize(
    "leave",
    [
        lambda conn, who: revoke(conn, who.name, SAID),
        lambda conn, who: set_roles(conn, who.name, [Role.APPROVER], SAID),
    ],
    ids=["retired", "of another role"],
)
def test_what_somebody_proposed_who_is_not_of_operations_any_more_is_not_done(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague, leave: Callable[..., Any]
) -> None:
    names = [new_name(), new_name()]
    decided, waiting = (
        propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["approver"]}, WHY) for name in names
    )
    approve(conn, anna, decided)
    leave(conn, olga)
    refused(Code.WRONG_STATE, lambda: approve(conn, anna, waiting))
    assert entries(conn, "staff.added", name=names[1]) == []
    refused(Code.WRONG_STATE, lambda: make_link(conn, olga.person, decided))
    reject(conn, anna, waiting)
    assert state(conn, waiting) is ProposalState.REJECTED


def test_of_two_approvers_who_would_retire_each_other_one_is_left(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague
) -> None:
    """So a proposal never takes the last approver away: who decides it is one, and is not its subject."""
    bert = colleague(app_house, Role.APPROVER, name="bert." + secrets.token_hex(4))
    first, second = (propose(conn, olga.person, Kind.STAFF_RETIRE, who.name, {}, WHY) for who in (anna, bert))

    def decided(who: Colleague, proposal_id: UUID) -> Code | None:
        with app_house.connect(DatabaseRole.APP) as own:
            try:
                approve(own, who, proposal_id)
            except ServiceError as error:
                return error.code
        return None

    outcomes = together([partial(decided, bert, first), partial(decided, anna, second)])
    assert sorted(map(str, outcomes)) == sorted(map(str, [None, Code.FORBIDDEN]))


def test_the_database_itself_takes_no_entry_that_names_somebody_else(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    made = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)

    def entry(kind: EntryType) -> str:
        return Entry(type=kind, occurred_at=clock(conn), actor="staff:somebody-else").text()

    with pytest.raises(pg.CheckViolation, match="names somebody else"):
        conn.execute(
            "SELECT proposal_decide(%s, 'approved', NULL, %s, sha256(''), %s)",
            [made, anna.staff_id, entry(EntryType.PROPOSAL_DECIDED)],
        )
    with pytest.raises(pg.CheckViolation, match="names somebody else"):
        conn.execute(
            "SELECT proposal_make(%s, 'staff_retire', %s, '{}', 'Why.', %s, %s)",
            [uuid4(), anna.name, olga.staff_id, entry(EntryType.PROPOSAL_MADE)],
        )
    assert state(conn, made) is ProposalState.OPEN


def test_roles_retirement_and_reset_are_carried_out_and_end_sessions(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague
) -> None:
    for kind, payload, why in (
        (Kind.STAFF_ROLES, {"roles": ["auditor", "editor"]}, "roles_changed"),
        (Kind.STAFF_RESET, {}, "reset"),
        (Kind.STAFF_RETIRE, {}, "retired"),
    ):
        subject = colleague(app_house, Role.EDITOR).signed_in()
        made = propose(conn, olga.person, kind, subject.name, payload, WHY)
        assert [row.ended_why for row in sessions(conn, staff_id=subject.staff_id)] == [None]
        approve(conn, anna, made)
        assert [row.ended_why for row in sessions(conn, staff_id=subject.staff_id)] == [why]


def test_only_somebody_of_operations_proposes(conn: psycopg.Connection[Any], anna: Colleague) -> None:
    refused(
        Code.FORBIDDEN,
        lambda: propose(conn, anna.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY),
    )


def test_a_proposal_is_on_record_under_the_name_of_who_makes_and_decides_it(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    propose_as = replace(olga.person, name=anna.name)
    with pytest.raises(pg.CheckViolation, match="names somebody else"):
        propose(conn, propose_as, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)
    made = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)
    with pytest.raises(pg.CheckViolation, match="names somebody else"):
        decide(conn, replace(anna.person, name=olga.name), made, True, "", lambda *_: None)
    assert state(conn, made) is ProposalState.OPEN


def test_who_proposed_cannot_approve_or_reject(conn: psycopg.Connection[Any], olga: Colleague) -> None:
    made = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["approver"]}, WHY)
    assert not read_proposal(conn, made).can_be_decided_by(olga.person)
    refused(Code.SAME_PERSON, lambda: approve(conn, olga, made))
    refused(Code.SAME_PERSON, lambda: reject(conn, olga, made))
    assert state(conn, made) is ProposalState.OPEN


def test_whom_it_is_about_cannot_approve(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    made = propose(conn, olga.person, Kind.STAFF_ROLES, anna.name, {"roles": ["approver", "operations"]}, WHY)
    assert not read_proposal(conn, made).can_be_decided_by(anna.person)
    refused(Code.SAME_PERSON, lambda: approve(conn, anna, made))
    assert state(conn, made) is ProposalState.OPEN


@pytest.mark.parametrize("role", [Role.EDITOR, Role.AUDITOR, Role.OPERATIONS])
def test_only_an_approver_decides(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, role: Role
) -> None:
    made = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)
    other = colleague(app_house, role)
    refused(Code.FORBIDDEN, lambda: approve(conn, other, made))
    refused(Code.FORBIDDEN, lambda: reject(conn, other, made))
    refused(Code.FORBIDDEN, lambda: withdraw(conn, other.person, made, "Mine."))


@pytest.mark.parametrize(
    "take_away",
    [
        lambda conn, who: set_roles(conn, who.name, [Role.AUDITOR], SAID),
        lambda conn, who: revoke(conn, who.name, SAID),
    ],
)
def test_a_role_that_was_taken_away_meanwhile_does_not_count(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague, take_away: Any
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    known_before, proposer_before = anna.person, olga.person
    take_away(conn, anna)
    refused(Code.FORBIDDEN, lambda: decide(conn, known_before, made, True, "", lambda *_: None))
    assert state(conn, made) is ProposalState.OPEN
    assert entries(conn, "staff.added", name=name) == []
    take_away(conn, olga)
    refused(
        Code.FORBIDDEN,
        lambda: propose(conn, proposer_before, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY),
    )


def test_a_rejection_says_why_and_is_final(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    for unsaid in ("", "  ", "x" * 501, "\x00"):
        refusal = refused(Code.INVALID, lambda unsaid=unsaid: reject(conn, anna, made, unsaid))
        assert list(refusal.errors or {}) == ["reason"]
    reject(conn, anna, made, "Not now.")
    assert read_proposal(conn, made).decision_reason == "Not now."
    refused(Code.WRONG_STATE, lambda: approve(conn, anna, made))
    assert entries(conn, "staff.added", name=name) == []


def test_who_proposed_withdraws_and_may_propose_anew(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    same = partial(propose, conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["auditor"]}, WHY)
    refused(Code.WRONG_STATE, same)
    withdraw(conn, olga.person, made, "A slip.")
    assert state(conn, made) is ProposalState.WITHDRAWN
    refused(Code.WRONG_STATE, lambda: approve(conn, anna, made))
    approve(conn, anna, same())
    assert len(entries(conn, "staff.added", name=name)) == 1


def test_what_nobody_decides_within_a_week_is_not_carried_out(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague
) -> None:
    name = new_name()
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)
    age(app_house, made, days=OPEN_DAYS, seconds=-5)
    assert state(conn, made) is ProposalState.OPEN
    age(app_house, made, seconds=5)
    assert state(conn, made) is ProposalState.EXPIRED
    refused(Code.WRONG_STATE, lambda: approve(conn, anna, made))
    assert entries(conn, "staff.added", name=name) == []
    propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)


def test_two_approvals_at_the_same_time_carry_out_once(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague
) -> None:
    name, other = new_name(), colleague(app_house, Role.APPROVER)
    made = propose(conn, olga.person, Kind.STAFF_INVITE, name, {"roles": ["editor"]}, WHY)

    def attempt(who: Colleague) -> str:
        with app_house.service.database.connection() as own:
            try:
                approve(own, who, made)
            except ServiceError as refusal:
                return refusal.code
        return "done"

    outcomes = together([partial(attempt, who) for who in (anna, other, anna, other)])
    assert sorted(outcomes) == ["done", *[Code.WRONG_STATE] * 3]
    assert len(entries(conn, "staff.added", name=name)) == 1
    assert len(entries(conn, "proposal.decided", proposal_id=str(made))) == 1


def test_what_cannot_be_carried_out_is_not_approved(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague
) -> None:
    subject = colleague(app_house, Role.EDITOR)
    made = propose(conn, olga.person, Kind.STAFF_ROLES, subject.name, {"roles": ["auditor"]}, WHY)
    revoke(conn, subject.name, SAID)
    refused(Code.WRONG_STATE, lambda: approve(conn, anna, made))
    assert state(conn, made) is ProposalState.OPEN
    assert entries(conn, "proposal.decided", proposal_id=str(made)) == []


@pytest.mark.parametrize(
    ("kind", "subject", "payload", "field"),
    [
        (Kind.STAFF_INVITE, "Nobody Else", {"roles": ["editor"]}, "subject"),
        (Kind.STAFF_INVITE, "\x00", {"roles": ["editor"]}, "subject"),
        (Kind.STAFF_INVITE, "new", {"roles": []}, "roles"),
        (Kind.STAFF_INVITE, "new", {}, "roles"),
        (Kind.STAFF_INVITE, "new", {"roles": ["root"]}, "roles"),
        (Kind.STAFF_ROLES, "nobody", {"roles": ["editor"]}, "subject"),
        (Kind.STAFF_RETIRE, "\x00", {}, "subject"),
        (Kind.STAFF_RESET, "", {}, "subject"),
    ],
)
def test_what_is_wrong_with_a_proposal_is_told_where_it_is(
    conn: psycopg.Connection[Any], olga: Colleague, kind: Kind, subject: str, payload: Any, field: str
) -> None:
    refusal = refused(Code.INVALID, lambda: propose(conn, olga.person, kind, subject, payload, WHY))
    assert field in (refusal.errors or {})
    refusal = refused(Code.INVALID, lambda: propose(conn, olga.person, kind, subject, payload, " "))
    assert set(refusal.errors or {}) >= {field, "reason"}


def test_what_is_wrong_with_a_void_is_told_where_it_is(
    conn: psycopg.Connection[Any], olga: Colleague
) -> None:
    refusal = refused(Code.INVALID, lambda: propose_void(conn, olga.person, uuid4(), "all of it", " "))
    assert set(refusal.errors or {}) == {"subject", "policy", "reason"}


def test_a_name_that_was_somebodys_is_not_proposed_again(
    conn: psycopg.Connection[Any], olga: Colleague, anna: Colleague
) -> None:
    refusal = refused(
        Code.INVALID,
        lambda: propose(conn, olga.person, Kind.STAFF_INVITE, anna.name, {"roles": ["editor"]}, WHY),
    )
    assert list(refusal.errors or {}) == ["subject"]


@pytest.mark.parametrize("policy", ["refund", "better"])
def test_a_void_that_was_approved_is_done_with_both_persons_on_record(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague, policy: str
) -> None:
    player = app_house.player()
    opened = player.open(100).json()
    before = player.balance_minor()
    made = propose_void(conn, olga.person, UUID(opened["round_id"]), policy, "A broken table.")
    assert player.get(f"/v1/rounds/{opened['round_id']}").json()["state"] == "awaiting_decision"
    approve(conn, anna, made)
    assert player.get(f"/v1/rounds/{opened['round_id']}").json()["state"] == "voided"
    assert player.balance_minor() >= before + 100
    (row,) = conn.execute(
        "SELECT convert_from(bytes, 'UTF8') FROM audit_entry WHERE type = 'round.voided' AND round_id = %s",
        [opened["round_id"]],
    ).fetchall()
    entry = json.loads(row[0])
    assert (entry["actor"], entry["authoriser"], entry["reason"]) == (
        f"staff:{olga.name}",
        f"staff:{anna.name}",
        "A broken table.",
    )


def test_a_round_that_was_voided_meanwhile_is_left_as_it_is(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague, anna: Colleague
) -> None:
    round_id = app_house.player().played()["round_id"]
    made = propose_void(conn, olga.person, UUID(round_id), "refund", WHY)
    done = app_house.operator.send(
        "POST",
        f"/v1/operator/rounds/{round_id}/void",
        {"reason": "Ours.", "approver": "a. supervisor"},
        headers={"Idempotency-Key": secrets.token_hex(8)},
    )
    assert done.status_code == 200, done.text
    refused(Code.WRONG_STATE, lambda: approve(conn, anna, made))
    assert state(conn, made) is ProposalState.OPEN
    refusal = refused(
        Code.INVALID,
        lambda: propose_void(conn, olga.person, UUID(round_id), "refund", WHY),
    )
    assert list(refusal.errors or {}) == ["subject"]


def test_there_is_no_proposal_of_another_id(conn: psycopg.Connection[Any], anna: Colleague) -> None:
    for call in (approve, reject):
        refused(Code.NOT_FOUND, lambda call=call: call(conn, anna, uuid4()))
    refused(Code.NOT_FOUND, lambda: make_link(conn, anna.person, uuid4()))
    refused(Code.NOT_FOUND, lambda: withdraw(conn, anna.person, uuid4(), "x"))


@pytest.mark.parametrize("role", [DatabaseRole.OWNER, DatabaseRole.SUPERUSER])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM proposal WHERE proposal_id = '{proposal_id}'",
        "TRUNCATE proposal CASCADE",
        "UPDATE proposal SET state = 'open', decided_by = NULL, decided_at = NULL WHERE proposal_id = '{proposal_id}'",
        "UPDATE proposal SET payload = '{{}}' WHERE proposal_id = '{open_id}'",
        "UPDATE proposal SET proposed_by = '{staff_id}' WHERE proposal_id = '{open_id}'",
        "UPDATE staff_invitation SET ended_at = NULL WHERE staff_id = '{subject_id}'",
        "UPDATE staff_invitation SET expires_at = now() + interval '9 days' WHERE staff_id = '{subject_id}'",
    ],
)
def test_nobody_changes_what_was_proposed_or_invited(
    conn: psycopg.Connection[Any],
    app_house: AppHouse,
    olga: Colleague,
    anna: Colleague,
    role: DatabaseRole,
    change: str,
) -> None:
    made = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)
    approve(conn, anna, made)
    make_link(conn, olga.person, made)
    waiting = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)
    row = conn.execute(
        "SELECT staff_id FROM staff WHERE name = %s", [read_proposal(conn, made).subject]
    ).fetchone()
    assert row is not None
    revoke(conn, read_proposal(conn, made).subject, SAID)
    with app_house.connect(role) as powerful, pytest.raises(pg.RestrictViolation, match="is refused"):
        powerful.execute(
            change.format(proposal_id=made, open_id=waiting, staff_id=anna.staff_id, subject_id=row[0])
        )


def test_an_approval_by_who_proposed_is_refused_by_the_table_itself(
    conn: psycopg.Connection[Any], app_house: AppHouse, olga: Colleague
) -> None:
    made = propose(conn, olga.person, Kind.STAFF_INVITE, new_name(), {"roles": ["editor"]}, WHY)
    with app_house.connect() as owner, pytest.raises(pg.CheckViolation, match="proposal_takes_two"):
        owner.execute(
            "UPDATE proposal SET state = 'approved', decided_by = proposed_by, decided_at = now()"
            " WHERE proposal_id = %s",
            [made],
        )
