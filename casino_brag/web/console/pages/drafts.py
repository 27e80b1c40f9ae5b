"""Drafts of paytables: the editor, submitting, approving, rejecting."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any, Final

import psycopg
from flask import Blueprint, Response

from casino_brag.catalogue.drafts import (
    Draft,
    DraftState,
    approve_draft,
    create_draft,
    read_draft,
    reject_draft,
    save_draft,
    submit_draft,
)
from casino_brag.catalogue.jurisdictions import jurisdiction, names
from casino_brag.errors import Code, ServiceError
from casino_brag.game.cards import RANKS
from casino_brag.game.hands import Category
from casino_brag.game.rules_text import CATEGORY_NAMES
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.console import drafting
from casino_brag.web.console.drafting import done_to, spread, typed
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.pages.preview import (
    NUMBER,
    TOML,
    consequences_of_text,
)
from casino_brag.web.console.shell import back_to, download, may, page, render, require_proof
from casino_brag.web.service import service

blueprint = Blueprint("drafts", __name__)

EDITORS: Final = (Role.EDITOR,)
APPROVERS: Final = (Role.APPROVER,)

_WRITING: Final = ("save", "submit", "fork")
"""The editor's buttons that write; all others change what is shown."""

_STALE: Final = 412


@page(blueprint, f"/paytables/<game>/drafts/{NUMBER}", nav="paytables")
def draft_page(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """A draft: to its editors the editor, to all others what it would bring."""
    draft = read_draft(conn, game, number)
    if draft.state is not DraftState.DRAFT or not may(who, EDITORS):
        return _read_only(conn, who, draft, Form({}, sent=False))
    form = Form({"tab": [asked().value("tab", "fields")]}, sent=False)
    return _editor(conn, draft, form, draft.text, draft.revision)


@page(blueprint, f"/paytables/<game>/drafts/{NUMBER}", roles=EDITORS, methods=("POST",), nav="paytables")
def edit(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """What a button of the editor does.  Only saving writes; whatever is refused, what was typed stays."""
    form = posted()
    draft = read_draft(conn, game, number)
    revision = form.number("revision") or draft.revision
    button = form.value("do", "save")
    now = typed(form)
    if button.startswith("tab:"):
        form.put("tab", button.removeprefix("tab:"))
    elif button not in _WRITING and not now.errors:
        now = done_to(now.text, button, form)
    if now.errors:
        form.refuse(ServiceError(Code.INVALID, "That cannot be done.", errors=now.errors))
    elif button in _WRITING:
        with form.attempt():
            return _written(conn, who, draft, form, now.text, revision)
    if form.status == _STALE:
        return _stale(conn, game, number, form, now.text)
    return _editor(conn, draft, form, now.text, revision)


@page(
    blueprint,
    f"/paytables/<game>/drafts/{NUMBER}/submit",
    roles=EDITORS,
    methods=("GET", "POST"),
    nav="paytables",
)
def submit(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """Asks for what a submission needs, over what would be submitted."""
    form = posted()
    draft, active = read_draft(conn, game, number), service().house.shelf.active(conn, game)
    with form.attempt():
        if draft.state is not DraftState.DRAFT:
            raise ServiceError(Code.WRONG_STATE, f"Draft {number} is {draft.state} already.")
        if form.sent:
            submit_draft(
                conn,
                who.person,
                game,
                number,
                revision=form.number("revision") or 0,
                jurisdictions=form.values("jurisdictions"),
                certificate=form.value("certificate") or None,
                note=form.value("note"),
                ceiling=service().config.rtp_ceiling,
            )
            return back_to(
                path_of(draft), f"Draft {number} was submitted. Somebody else approves or rejects it."
            )
    jurisdictions = _jurisdictions()
    named = form.values("jurisdictions")
    if "jurisdictions" in form.errors and not named:
        titles = ", ".join(jurisdiction(name).title for name in names())
        form.errors["jurisdictions"] = [f"tick one or more of {titles}"]
    return render(
        "paytable_submit.html.j2",
        draft=draft,
        form=form,
        shown=consequences_of_text(game, draft.text, active),
        active=active,
        offered=() if active is None else active.lost_with(()),
        lost=() if active is None or not form.sent else active.lost_with(named),
        jurisdictions=jurisdictions,
        status=form.status,
    )


@page(
    blueprint,
    f"/paytables/<game>/drafts/{NUMBER}/approve",
    roles=APPROVERS,
    methods=("POST",),
    nav="paytables",
)
def approve(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """Makes a version of exactly the digest that the page showed."""
    form = posted()
    with form.attempt():
        require_proof(conn, who, form)
        version = approve_draft(
            conn,
            who.person,
            game,
            number,
            digest=form.value("digest"),
            ceiling=service().config.rtp_ceiling,
        )
        return back_to(
            f"/console/paytables/{game}/versions/{version}",
            f"Draft {number} is version {version}. Somebody of operations, who is not you, puts it in force.",
        )
    return _read_only(conn, who, read_draft(conn, game, number), form)


@page(
    blueprint,
    f"/paytables/<game>/drafts/{NUMBER}/reject",
    roles=(Role.APPROVER, Role.EDITOR),
    methods=("POST",),
    nav="paytables",
)
def reject(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """Rejects what was submitted, or takes it back; discards what was not."""
    form = posted()
    draft = read_draft(conn, game, number)
    fresh = draft.state is DraftState.DRAFT
    with form.attempt():
        reject_draft(conn, who.person, game, number, reason=form.value("reason"))
        return back_to(path_of(draft), f"Draft {number} was {'discarded' if fresh else 'rejected'}.")
    return _read_only(conn, who, read_draft(conn, game, number), form)


@page(blueprint, f"/paytables/<game>/drafts/{NUMBER}/file", nav="paytables")
def draft_file(conn: psycopg.Connection[Any], who: SignedIn, game: str, number: int) -> Response:
    """A draft's text as a file."""
    return download(f"{game}.toml", read_draft(conn, game, number).text, TOML)


def path_of(draft: Draft) -> str:
    """The address of a draft's page."""
    return f"/console/paytables/{draft.game}/drafts/{draft.number}"


def _written(
    conn: psycopg.Connection[Any], who: SignedIn, draft: Draft, form: Form, text: str, revision: int
) -> Response:
    """Saves what was typed, perhaps on the way to submitting it; or begins another draft with it."""
    button = form.value("do", "save")
    if button == "fork":
        copy = create_draft(conn, who.person, draft.game, text=text, from_draft=draft.number)
        return back_to(path_of(copy), f"Draft {copy.number} was begun with what you had typed.")
    if text != draft.text or revision != draft.revision or draft.state is not DraftState.DRAFT:
        draft = save_draft(conn, who.person, draft.game, draft.number, text, revision=revision)
    if button == "submit":
        return back_to(f"{path_of(draft)}/submit")
    return back_to(f"{path_of(draft)}?tab={form.value('tab')}", f"Saved as revision {draft.revision}.")


def _editor(conn: psycopg.Connection[Any], draft: Draft, form: Form, text: str, revision: int) -> Response:
    tab = form.value("tab") if form.value("tab") in drafting.TABS else "fields"
    shown = consequences_of_text(draft.game, text, service().house.shelf.active(conn, draft.game))
    form.put("revision", str(revision))
    if not spread(form, text):
        tab = "text"
    form.put("tab", tab)
    for key, messages in shown.complaints.items():
        form.errors.setdefault(f"{drafting.PREFIX}{key}" if key else "text", messages)
    return render(
        "paytable_editor.html.j2",
        draft=draft,
        form=form,
        tab=tab,
        text=text,
        unsaved=text != draft.text,
        shown=shown,
        ranking=drafting.ranking(form),
        currencies=drafting.currencies(form),
        claims=drafting.claims(form),
        categories={str(category): CATEGORY_NAMES[category] for category in Category},
        choices=drafting.CHOICES,
        ranks=RANKS,
        status=form.status,
    )


def _stale(conn: psycopg.Connection[Any], game: str, number: int, form: Form, mine: str) -> Response:
    """Somebody else saved first: both texts, what parts them, and the choice."""
    theirs = read_draft(conn, game, number)
    changes = unified_diff(theirs.text.splitlines(), mine.splitlines(), lineterm="", n=2)
    return render(
        "paytable_stale.html.j2",
        draft=theirs,
        form=form,
        mine=mine,
        changes=list(changes)[2:],
        status=form.status,
    )


def _read_only(conn: psycopg.Connection[Any], who: SignedIn, draft: Draft, form: Form) -> Response:
    active = service().house.shelf.active(conn, draft.game)
    undecided = draft.state is DraftState.SUBMITTED
    # What is offered goes by names, which are nobody else's ever; what is done goes by who the person is.
    own = who.person.name in {draft.created_by, draft.submitted_by, *draft.editors}
    return render(
        "paytable_draft.html.j2",
        draft=draft,
        form=form,
        shown=consequences_of_text(draft.game, draft.text, active),
        active=active,
        lost=active.lost_with(draft.jurisdictions) if undecided and active is not None else (),
        own=own,
        may_edit=may(who, EDITORS),
        may_approve=undecided and may(who, APPROVERS),
        may_reject=undecided and (may(who, APPROVERS) or draft.submitted_by == who.person.name),
        may_discard=draft.state is DraftState.DRAFT and may(who, EDITORS),
        demanding=_jurisdictions(),
        status=form.status,
    )


def _jurisdictions() -> list[tuple[str, str]]:
    found = map(jurisdiction, names())
    return [
        (each.name, f"{each.title}{', asks for a certificate' if each.certificate else ''}") for each in found
    ]
