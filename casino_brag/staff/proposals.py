"""What takes two persons: one proposes it, another approves it, and with that it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.errors import Code, Errors, ServiceError, SetUpError
from casino_brag.ids import uuid7
from casino_brag.staff.acting import carry_out, reason_given, reason_if_any, stated
from casino_brag.staff.invitations import Invitation, invite, join_code_hash, new_join_code, reset
from casino_brag.staff.people import Person, Role, Said, add_staff, is_name, revoke, set_roles

OPEN_DAYS: Final = 7
SHOWN: Final = 100


class Kind(StrEnum):
    """What is proposed."""

    STAFF_INVITE = "staff_invite"
    """That a person comes to staff.  `subject` is the name, `payload` says the `roles`."""
    STAFF_ROLES = "staff_roles"
    """That a person has these `roles` in place of those held before."""
    STAFF_RETIRE = "staff_retire"
    """That a person leaves staff."""
    STAFF_RESET = "staff_reset"
    """That a person who lost password or authenticator joins anew."""
    ROUND_VOID = "round_void"
    """That a round is voided (`casino_brag.rounds.proposed`).  `subject` is its id, `payload` says the `policy`."""


INVITING: Final = (Kind.STAFF_INVITE, Kind.STAFF_RESET)
"""What leads to a link to join, and to the code that goes with it."""


class ProposalState(StrEnum):
    """How it stands with a proposal."""

    OPEN = "open"
    """It waits to be decided."""
    APPROVED = "approved"
    """It was approved and carried out."""
    REJECTED = "rejected"
    """It was not approved."""
    WITHDRAWN = "withdrawn"
    """Who made it took it back."""
    EXPIRED = "expired"
    """Nobody decided it within a week."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal, with the names of persons.

    `proposer` asks for it and gives the `reason`; `decider` is another, or the proposer where it is withdrawn.
    `link_made`: an invitation was made of it.
    """

    proposal_id: UUID
    kind: Kind
    subject: str
    subject_staff: UUID | None
    payload: Mapping[str, Any]
    reason: str
    proposed_by: UUID
    proposer: str
    proposed_at: datetime
    state: ProposalState
    decider: str | None
    decided_at: datetime | None
    decision_reason: str | None
    link_made: bool

    def can_be_decided_by(self, person: Person) -> bool:
        """Whether a person may approve or reject it, as far as can be told from what was read."""
        return (
            self.state is ProposalState.OPEN
            and Role.APPROVER in person.roles
            and person.staff_id not in (self.proposed_by, self.subject_staff)
        )


Perform: TypeAlias = Callable[[psycopg.Connection[Any], Proposal, Said], None]
"""Carries out an approved proposal within the transaction that approves it."""


def propose(
    conn: psycopg.Connection[Any],
    by: Person,
    kind: Kind,
    subject: str,
    payload: Mapping[str, Any],
    reason: str,
) -> UUID:
    """Proposes something; the id of the proposal.  `payload` names what the kind needs beside its subject.

    Raises `ServiceError`: invalid (`errors` at `subject`, `roles`, `reason`), forbidden (who proposes has
    not the role operations now), wrong_state (the same is proposed already).
    """
    errors = Errors() if kind is Kind.ROUND_VOID else _errors_of_staff(conn, kind, subject, payload)
    reason = stated(errors, "reason", reason)
    if errors:
        raise ServiceError(Code.INVALID, "Something is to be put right.", errors=errors)
    proposal_id = uuid7()
    told = {"proposal_id": str(proposal_id), "kind": kind.value, "subject": subject, **payload}
    entry = Entry(
        type=EntryType.PROPOSAL_MADE,
        occurred_at=clock(conn),
        actor=by.actor,
        round_id=UUID(subject) if kind is Kind.ROUND_VOID else None,
        reason=reason,
        payload=told,
    )
    carry_out(
        conn,
        "SELECT proposal_make(%s, %s, %s, %s, %s, %s, %s)",
        [proposal_id, kind, subject, Jsonb(payload), reason, by.staff_id, entry.text()],
        {
            Code.FORBIDDEN: "Proposals are made by somebody of operations.",
            Code.WRONG_STATE: "The same is proposed already and waits to be decided.",
        },
    )
    return proposal_id


def decide(
    conn: psycopg.Connection[Any],
    by: Person,
    proposal_id: UUID,
    approve: bool,
    reason: str,
    perform: Perform,
) -> str | None:
    """Approves a proposal and carries it out, both or neither; or rejects it, with a reason.

    The join code, where the approval leads to a link: it is not kept, cannot be shown again, and is not for who
    proposed.  `perform` carries out what is not about staff.

    Raises `ServiceError`: not_found, wrong_state (it was decided, or has expired, who made it is not of operations now,
    or it cannot be carried out any more), forbidden (who decides is no approver now), same_person (who made it or is
    its subject), invalid (`errors` at `reason`), and what carrying it out raises.
    """
    verdict = ProposalState.APPROVED if approve else ProposalState.REJECTED
    code = new_join_code()
    with conn.transaction():
        proposal = _decided(conn, by, proposal_id, verdict, reason, join_code_hash(code))
        if approve:
            said = Said(actor=f"staff:{proposal.proposer}", authoriser=by.actor, reason=proposal.reason)
            _carry_out(conn, proposal, said, perform)
    return code if approve and proposal.kind in INVITING else None


def withdraw(conn: psycopg.Connection[Any], by: Person, proposal_id: UUID, reason: str) -> None:
    """Takes a proposal of one's own back.

    Raises `ServiceError`: not_found, wrong_state, forbidden (it is somebody else's), invalid.
    """
    _decided(conn, by, proposal_id, ProposalState.WITHDRAWN, reason)


def make_link(conn: psycopg.Connection[Any], by: Person, proposal_id: UUID) -> Invitation:
    """The link of a person whose coming or reset was approved, for who proposed it, once and within a week of that.

    There is none where the person was invited in another way since: it would end that link.

    Who approved does not get it, but has the code that it takes besides: whoever had both could join in the person's
    place.  Raises `ServiceError`: not_found, wrong_state.
    """
    proposal = read_proposal(conn, proposal_id)
    said = Said(actor=by.actor, authoriser=f"staff:{proposal.decider}", reason=proposal.reason)
    try:
        return invite(conn, proposal.subject, said, by=by, proposal_id=proposal_id)
    except SetUpError as refused:
        raise ServiceError(Code.WRONG_STATE, str(refused)) from refused


def read_proposal(conn: psycopg.Connection[Any], proposal_id: UUID) -> Proposal:
    """A proposal; `ServiceError` not_found where there is none of this id."""
    found = _proposals(conn, "proposal_id = %s", [proposal_id])
    if not found:
        raise ServiceError(Code.NOT_FOUND, "There is no such proposal.")
    return found[0]


def open_proposals(conn: psycopg.Connection[Any]) -> list[Proposal]:
    """What waits to be decided, newest first."""
    return _proposals(conn, "state = 'open'", [])


def recent_proposals(conn: psycopg.Connection[Any]) -> list[Proposal]:
    """All proposals, newest first, the last hundred."""
    return _proposals(conn, "true", [])


def _proposals(conn: psycopg.Connection[Any], where: str, values: Sequence[Any]) -> list[Proposal]:
    columns = ", ".join(column.name for column in fields(Proposal))
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            f"SELECT {columns} FROM proposal_now WHERE {where}"  # noqa: S608 - texts of this module
            f" ORDER BY proposed_at DESC, proposal_id DESC LIMIT {SHOWN}",
            values,
        ).fetchall()
    return [
        Proposal(**row | {"kind": Kind(row["kind"]), "state": ProposalState(row["state"])}) for row in rows
    ]


def _errors_of_staff(
    conn: psycopg.Connection[Any], kind: Kind, subject: str, payload: Mapping[str, Any]
) -> Errors:
    """What of a proposal about staff can be seen not to be carried out, at the field it is about."""
    errors = Errors()
    if kind in (Kind.STAFF_INVITE, Kind.STAFF_ROLES):
        roles = payload.get("roles") or []
        if not roles or not set(roles) <= set(Role):
            errors["roles"] = [f"Choose at least one role: {', '.join(Role)}."]
    person = conn.execute(
        "SELECT retired_at IS NULL FROM staff WHERE name = %s", [subject if is_name(subject) else None]
    ).fetchone()
    if kind is Kind.STAFF_INVITE:
        if not is_name(subject):
            errors["subject"] = ["Use 1 to 63 lower-case letters, digits, hyphens and dots."]
        elif person is not None:
            errors["subject"] = ["This is, or was, somebody's name, and stays that person's."]
    elif person != (True,):
        errors["subject"] = ["Nobody of this name is staff."]
    return errors


def _decided(
    conn: psycopg.Connection[Any],
    by: Person,
    proposal_id: UUID,
    verdict: ProposalState,
    reason: str,
    code_hash: bytes | None = None,
) -> Proposal:
    why = reason_if_any(reason) if verdict is ProposalState.APPROVED else reason_given(reason)
    proposal = read_proposal(conn, proposal_id)
    entry = Entry(
        type=EntryType.PROPOSAL_DECIDED,
        occurred_at=clock(conn),
        actor=by.actor,
        round_id=UUID(proposal.subject) if proposal.kind is Kind.ROUND_VOID else None,
        reason=why,
        before={"state": proposal.state.value},
        after={"state": verdict.value},
        payload={
            "proposal_id": str(proposal_id),
            "kind": proposal.kind.value,
            "subject": proposal.subject,
            "proposer": proposal.proposer,
            **proposal.payload,
        },
    )
    carry_out(
        conn,
        "SELECT proposal_decide(%s, %s, %s, %s, %s, %s)",
        [proposal_id, verdict, why, by.staff_id, code_hash, entry.text()],
        {
            Code.WRONG_STATE: "This was decided or withdrawn already, nobody decided it within"
            f" {OPEN_DAYS} days, or who made it is not of operations any more.",
            Code.FORBIDDEN: "This is for an approver; only who made a proposal withdraws it.",
            Code.SAME_PERSON: "You proposed this, or it is about you: another approver decides it.",
        },
    )
    return proposal


def _carry_out(conn: psycopg.Connection[Any], proposal: Proposal, said: Said, perform: Perform) -> None:
    try:
        match proposal.kind:
            case Kind.STAFF_INVITE:
                add_staff(conn, proposal.subject, _roles(proposal), said)
            case Kind.STAFF_ROLES:
                set_roles(conn, proposal.subject, _roles(proposal), said)
            case Kind.STAFF_RETIRE:
                revoke(conn, proposal.subject, said)
            case Kind.STAFF_RESET:
                reset(conn, proposal.subject, said)
            case Kind.ROUND_VOID:
                perform(conn, proposal, said)
    except SetUpError as refused:
        raise ServiceError(Code.WRONG_STATE, f"It cannot be carried out any more: {refused}") from refused


def _roles(proposal: Proposal) -> list[Role]:
    return [Role(role) for role in proposal.payload["roles"]]
