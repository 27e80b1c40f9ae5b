"""Who is staff, with roles, tokens and sessions; and what is proposed about them."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from flask import Blueprint, Response

from casino_brag.errors import Code, ServiceError
from casino_brag.staff.access import SignedIn, access_of_all, sessions
from casino_brag.staff.people import Role, users_and_rights
from casino_brag.staff.proposals import Kind, propose, recent_proposals
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.shell import back_to, page, render, require_proof

blueprint = Blueprint("people", __name__)

VIEWERS: Final = (Role.AUDITOR, Role.OPERATIONS, Role.APPROVER)

WORDS: Final = {
    Kind.STAFF_INVITE: "Invite a colleague",
    Kind.STAFF_ROLES: "Change roles",
    Kind.STAFF_RETIRE: "Retire a colleague",
    Kind.STAFF_RESET: "Reset password and authenticator",
    Kind.ROUND_VOID: "Void a round",
}
"""What each kind of proposal is called."""

WITH_ROLES: Final = (Kind.STAFF_INVITE, Kind.STAFF_ROLES)

ROLES: Final = (
    (Role.EDITOR, "editor: drafts paytables and submits them"),
    (Role.APPROVER, "approver: approves what others submit and propose"),
    (Role.AUDITOR, "auditor: reads and verifies"),
    (Role.OPERATIONS, "operations: puts in force, watches, proposes"),
)


@page(blueprint, "/staff", roles=VIEWERS, nav="people")
def people(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Everybody who is or was staff."""
    access = access_of_all(conn)
    known = [person | access[person["name"]] | {"state": ""} for person in users_and_rights(conn)]
    for person in known:
        person["state"] = _state(person)
    return render(
        "people.html.j2",
        people=sorted(known, key=lambda person: (person["retired_at"] is not None, person["name"])),
        sessions=sessions(conn),
        proposals=[proposal for proposal in recent_proposals(conn) if proposal.kind is not Kind.ROUND_VOID],
        words=WORDS,
        proposes=Role.OPERATIONS in who.person.roles,
    )


@page(blueprint, "/staff/propose/<kind>", roles=(Role.OPERATIONS,), methods=("GET", "POST"), nav="people")
def propose_change(conn: psycopg.Connection[Any], who: SignedIn, kind: str) -> Response:
    """Proposes a change of people, which an approver decides."""
    wanted = _kind(kind)
    form = posted()
    with form.attempt():
        if form.sent:
            require_proof(conn, who, form)
            payload = {"roles": form.values("roles")} if wanted in WITH_ROLES else {}
            proposal_id = propose(
                conn, who.person, wanted, form.value("subject").strip(), payload, form.value("reason")
            )
            return back_to(f"/console/proposals/{proposal_id}", "Proposed. An approver decides it.")
    subject = form.value("subject") or asked().value("subject")
    return render(
        "people_propose.html.j2",
        form=form,
        kind=wanted,
        title=WORDS[wanted],
        subject=subject,
        roles=ROLES if wanted in WITH_ROLES else (),
        held=_roles_of(conn, subject, form),
        status=form.status,
    )


def _kind(text: str) -> Kind:
    if text not in (Kind.STAFF_INVITE, Kind.STAFF_ROLES, Kind.STAFF_RETIRE, Kind.STAFF_RESET):
        raise ServiceError(Code.NOT_FOUND, "Nothing of this kind is proposed here.")
    return Kind(text)


def _roles_of(conn: psycopg.Connection[Any], subject: str, form: Form) -> list[str]:
    known = () if form.sent else users_and_rights(conn)
    return next((person["roles"] for person in known if person["name"] == subject), [])


def _state(person: dict[str, Any]) -> str:
    if person["retired_at"] is not None:
        return "retired"
    if person["locked_until"] is not None:
        return "locked"
    if person["joined_at"] is not None:
        return "joined"
    return "invited" if person["invited_until"] is not None else "not_joined"
