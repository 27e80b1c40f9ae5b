"""Drafts of paytables: written, looked at and submitted by one person, approved or rejected by another."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import psycopg

from casino_brag.catalogue.drafts import (
    Draft,
    DraftState,
    approve_draft,
    create_draft,
    list_drafts,
    read_draft,
    reject_draft,
    save_draft,
    submit_draft,
)
from casino_brag.catalogue.guards import check_text
from casino_brag.catalogue.versions import version_row
from casino_brag.errors import Code
from casino_brag.staff.people import Role
from casino_brag.web.api import paytable_examples as examples
from casino_brag.web.api.etags import ETAG, IF_MATCH, LOCATION, etag, revision_matched
from casino_brag.web.api.lists import page
from casino_brag.web.api.paytable_preview import PreviewSchema, preview
from casino_brag.web.api.paytable_schemas import (
    ApproveRequest,
    DraftDetailSchema,
    DraftPageSchema,
    DraftQuery,
    DraftRequest,
    PreviewRequest,
    ReasonRequest,
    SaveRequest,
    SubmitRequest,
    VersionSchema,
)
from casino_brag.web.api.paytables import CHANGING, EVERYONE, READING, known, told
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.staff import for_roles, staff_caller
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "paytable drafts",
    "paytable_drafts",
    url_prefix="/v1/paytables",
    description="Paytables that are being written, and their approval by somebody else.",
)

EDITORS: Final = (Role.EDITOR,)
APPROVERS: Final = (Role.APPROVER,)
REJECTING: Final = (Role.EDITOR, Role.APPROVER)
"""An approver rejects what was submitted; an editor discards a draft, or takes back what that person submitted."""

DRAFT: Final = "/<game>/drafts/<int:number>"

_MATCHING: Final = (Code.PRECONDITION_REQUIRED, Code.PRECONDITION_FAILED)

Answer = tuple[dict[str, Any], int, dict[str, str]]


@blueprint.route("", methods=["POST"])
@blueprint.doc(security=for_roles(EDITORS))
@blueprint.arguments(DraftRequest, example=examples.BEGIN)
@blueprint.response(201, DraftDetailSchema, example=examples.DRAFT, headers=ETAG | LOCATION)
@blueprint.problems(*CHANGING)
def post_draft(body: dict[str, Any]) -> Answer:
    """Begin a draft: with a text, with that of a version or of another draft, or else of the active version."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, EDITORS, _on_record(body))
        begun = {name: value for name, value in body.items() if name != "game"}
        draft = create_draft(conn, caller.person, body["game"], **begun)
    location = {"Location": f"/v1/paytables/{draft.game}/drafts/{draft.number}"}
    return _in_detail(draft), 201, _tag(draft) | location


@blueprint.route("/<game>/drafts")
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.arguments(DraftQuery, location="query")
@blueprint.response(200, DraftPageSchema)
@blueprint.problems(Code.INVALID, *READING)
def get_drafts(query: dict[str, Any], game: str) -> dict[str, Any]:
    """The drafts of a game, newest first."""
    state = DraftState(query["state"]) if "state" in query else None
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        known(conn, game)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return [told(draft) for draft in list_drafts(conn, game=game, state=state, after=after, limit=limit)]

    return page(read, "draft_id", query)


@blueprint.route(DRAFT)
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.response(200, DraftDetailSchema, example=examples.DRAFT, headers=ETAG)
@blueprint.problems(*READING)
def get_draft(game: str, number: int) -> Answer:
    """One draft with its text, and what is wrong with it."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        draft = read_draft(conn, game, number)
    return _in_detail(draft), 200, _tag(draft)


@blueprint.route(DRAFT, methods=["PUT"])
@blueprint.doc(security=for_roles(EDITORS), parameters=[IF_MATCH])
@blueprint.arguments(SaveRequest, example=examples.SAVE)
@blueprint.response(200, DraftDetailSchema, example=examples.DRAFT, headers=ETAG)
@blueprint.problems(*CHANGING, *_MATCHING)
def put_draft(body: dict[str, Any], game: str, number: int) -> Answer:
    """Give a draft another text, finished or not; the answer says what is wrong with it."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, EDITORS, _on_record(body))
        revision = revision_matched(read_draft(conn, game, number).revision)
        draft = save_draft(conn, caller.person, game, number, body["text"], revision=revision)
    return _in_detail(draft), 200, _tag(draft)


@blueprint.route(f"{DRAFT}/preview", methods=["POST"])
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.arguments(PreviewRequest, example=examples.PREVIEW)
@blueprint.response(200, PreviewSchema)
@blueprint.problems(*CHANGING, Code.GAME_UNAVAILABLE)
def post_preview(body: dict[str, Any], game: str, number: int) -> dict[str, Any]:
    """What a draft, or a text that is not saved, would bring beside the version in force; nothing is put on record."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE, recorded=False)
        draft = read_draft(conn, game, number)
        active = service().house.shelf.active(conn, game)
    return preview(
        game,
        body.get("text", draft.text),
        active,
        body.get("jurisdictions", draft.jurisdictions or ()),
        body.get("certificate", draft.certificate),
        service().config.rtp_ceiling,
    )


@blueprint.route(f"{DRAFT}/submit", methods=["POST"])
@blueprint.doc(security=for_roles(EDITORS), parameters=[IF_MATCH])
@blueprint.arguments(SubmitRequest, example=examples.SUBMIT)
@blueprint.response(200, DraftDetailSchema, example=examples.DRAFT, headers=ETAG)
@blueprint.problems(*CHANGING, *_MATCHING)
def post_submit(body: dict[str, Any], game: str, number: int) -> Answer:
    """Submit a draft for approval by somebody else; it changes no more."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, EDITORS, body)
        draft = submit_draft(
            conn,
            caller.person,
            game,
            number,
            revision=revision_matched(read_draft(conn, game, number).revision),
            jurisdictions=body["jurisdictions"],
            certificate=body.get("certificate"),
            note=body["note"],
            ceiling=service().config.rtp_ceiling,
        )
    return _in_detail(draft), 200, _tag(draft)


@blueprint.route(f"{DRAFT}/approve", methods=["POST"])
@blueprint.doc(security=for_roles(APPROVERS))
@blueprint.arguments(ApproveRequest, example=examples.APPROVE)
@blueprint.response(201, VersionSchema, example=examples.VERSION, headers=LOCATION)
@blueprint.problems(*CHANGING, Code.SAME_PERSON, Code.PRECONDITION_FAILED)
def post_approve(body: dict[str, Any], game: str, number: int) -> Answer:
    """Make what somebody else submitted under this digest a version; it comes into force when it is activated."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, APPROVERS, body)
        version = approve_draft(
            conn,
            caller.person,
            game,
            number,
            digest=body["digest"],
            ceiling=service().config.rtp_ceiling,
        )
        row = version_row(conn, game, version)
    return told(row), 201, {"Location": f"/v1/paytables/{game}/versions/{version}"}


@blueprint.route(f"{DRAFT}/reject", methods=["POST"])
@blueprint.doc(security=for_roles(REJECTING))
@blueprint.arguments(ReasonRequest, example=examples.REJECT)
@blueprint.response(200, DraftDetailSchema, example=examples.DRAFT, headers=ETAG)
@blueprint.problems(*CHANGING)
def post_reject(body: dict[str, Any], game: str, number: int) -> Answer:
    """Reject what was submitted, take back what you submitted yourself, or discard a draft; it stays so, for good."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, REJECTING, body)
        reject_draft(conn, caller.person, game, number, reason=body["reason"])
        draft = read_draft(conn, game, number)
    return _in_detail(draft), 200, _tag(draft)


def _tag(draft: Draft) -> dict[str, str]:
    return {"ETag": etag(draft.revision)}


def _in_detail(draft: Draft) -> dict[str, Any]:
    return told(draft) | {"problems": check_text(draft.game, draft.text).problems}


def _on_record(body: Mapping[str, Any]) -> dict[str, Any]:
    """What of a body goes on record: of a text its digest and length, for the draft keeps the text."""
    said = {name: value for name, value in body.items() if name != "text"}
    if "text" in body:
        sent = body["text"].encode("utf-8", "surrogatepass")
        said |= {"text_sha256": sha256(sent).hexdigest(), "text_bytes": len(sent)}
    return said
