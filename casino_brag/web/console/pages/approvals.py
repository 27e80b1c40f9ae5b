"""What waits for a second person: submitted paytables and proposals, in one queue; and each proposal by itself."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from uuid import UUID

import psycopg
from flask import Blueprint, Response

from casino_brag.catalogue.drafts import DraftState, list_drafts
from casino_brag.catalogue.versions import games_with_paytables, list_versions
from casino_brag.rounds.proposed import void_proposed
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.staff.proposals import (
    INVITING,
    Kind,
    ProposalState,
    decide,
    make_link,
    open_proposals,
    read_proposal,
    recent_proposals,
    withdraw,
)
from casino_brag.web.console.cookies import origin
from casino_brag.web.console.forms import Form, posted
from casino_brag.web.console.pages.people import WORDS
from casino_brag.web.console.shell import back_to, page, render, require_proof
from casino_brag.web.service import service

blueprint = Blueprint("approvals", __name__)

QUEUE: Final = "/console/approvals"
DECIDED_SHOWN: Final = 20


@page(blueprint, "/approvals", nav="approvals")
def queue(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """What waits, oldest first, and what was decided lately."""
    waiting = [*list_drafts(conn, state=DraftState.SUBMITTED, limit=200)]
    return render(
        "approvals.html.j2",
        drafts=sorted(waiting, key=lambda draft: draft.submitted_at or draft.changed_at),
        versions=[row for game in games_with_paytables(conn) for row in list_versions(conn, game)],
        proposals=open_proposals(conn)[::-1],
        decided=[p for p in recent_proposals(conn) if p.state is not ProposalState.OPEN][:DECIDED_SHOWN],
        words=WORDS,
    )


@page(blueprint, "/proposals/<uuid:proposal_id>", nav="approvals")
def proposal(conn: psycopg.Connection[Any], who: SignedIn, proposal_id: UUID) -> Response:
    """One proposal: what, why, by whom, and what the person who looks may do about it."""
    return _proposal(conn, who, proposal_id, Form({}, sent=False))


@page(
    blueprint,
    "/proposals/<uuid:proposal_id>/<any(approve, reject):verdict>",
    roles=(Role.APPROVER,),
    methods=("POST",),
    nav="approvals",
)
def decide_proposal(
    conn: psycopg.Connection[Any], who: SignedIn, proposal_id: UUID, verdict: str
) -> Response:
    """Approves a proposal, which carries it out, or rejects it.  A join code that comes of it is shown this once."""
    form, approve = posted(), verdict == "approve"
    with form.attempt():
        require_proof(conn, who, form)
        perform = partial(void_proposed, service().house)
        join_code = decide(conn, who.person, proposal_id, approve, form.value("reason"), perform)
        if join_code is not None:
            found = read_proposal(conn, proposal_id)
            return render("proposal_code.html.j2", proposal=found, join_code=join_code)
        return back_to(QUEUE, "Approved and done." if approve else "Rejected.")
    return _proposal(conn, who, proposal_id, form)


@page(
    blueprint,
    "/proposals/<uuid:proposal_id>/withdraw",
    roles=(Role.OPERATIONS,),
    methods=("POST",),
    nav="approvals",
)
def take_back(conn: psycopg.Connection[Any], who: SignedIn, proposal_id: UUID) -> Response:
    """Withdraws a proposal of one's own."""
    form = posted()
    with form.attempt():
        withdraw(conn, who.person, proposal_id, form.value("reason"))
        return back_to(f"/console/proposals/{proposal_id}", "Withdrawn.")
    return _proposal(conn, who, proposal_id, form)


@page(
    blueprint,
    "/proposals/<uuid:proposal_id>/link",
    roles=(Role.OPERATIONS,),
    methods=("POST",),
    nav="approvals",
)
def link(conn: psycopg.Connection[Any], who: SignedIn, proposal_id: UUID) -> Response:
    """The link by which a person joins, for who proposed it, shown this once."""
    form = posted()
    with form.attempt():
        require_proof(conn, who, form)
        made = make_link(conn, who.person, proposal_id)
        return render("proposal_link.html.j2", invitation=made, origin=origin())
    return _proposal(conn, who, proposal_id, form)


def _proposal(conn: psycopg.Connection[Any], who: SignedIn, proposal_id: UUID, form: Form) -> Response:
    found = read_proposal(conn, proposal_id)
    mine = found.proposed_by == who.person.staff_id
    invites = found.kind in INVITING and found.state is ProposalState.APPROVED
    return render(
        "proposal.html.j2",
        form=form,
        proposal=found,
        title=WORDS[found.kind],
        round_id=found.subject if found.kind is Kind.ROUND_VOID else "",
        may_decide=found.can_be_decided_by(who.person),
        may_withdraw=mine and found.state is ProposalState.OPEN and Role.OPERATIONS in who.person.roles,
        invites=invites,
        may_make_link=mine and invites and not found.link_made and Role.OPERATIONS in who.person.roles,
        status=form.status,
    )
