"""Games' paytables for staff: what is in force and what comes, versions, what became of each, putting one in force."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import psycopg
from flask import Response, jsonify

from casino_brag.catalogue.activations import activate, retire, unschedule
from casino_brag.catalogue.drafts import Draft, DraftState, list_drafts
from casino_brag.catalogue.versions import (
    VersionRow,
    VersionState,
    games_with_paytables,
    history,
    list_versions,
    par_sheet_of,
    read_version,
    version_row,
    version_text,
)
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.odds import pages
from casino_brag.staff.people import Role
from casino_brag.web.api import paytable_examples as examples
from casino_brag.web.api.docs import PAGE_POLICY
from casino_brag.web.api.etags import ETAG
from casino_brag.web.api.lists import page
from casino_brag.web.api.paytable_schemas import (
    ActivateRequest,
    GamePaytablesPageSchema,
    GamePaytablesSchema,
    HistoryPageSchema,
    ListQuery,
    ParSheetQuery,
    ReasonRequest,
    VersionDetailSchema,
    VersionPageSchema,
    VersionSchema,
)
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.report_schemas import LIMIT_MAX
from casino_brag.web.api.staff import PROBLEMS, for_roles, staff_caller
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "paytables",
    "paytables",
    url_prefix="/v1/paytables",
    description="Versions of paytables, as staff reads them and puts them in force.",
)

EVERYONE: Final = tuple(Role)
OPERATIONS: Final = (Role.OPERATIONS,)

VERSION: Final = "/<game>/versions/<int(min=1,max=2147483647):version>"

READING: Final = (Code.NOT_FOUND, *PROBLEMS)
CHANGING: Final = (
    Code.NOT_FOUND,
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.MALFORMED_REQUEST,
    Code.INVALID,
    *PROBLEMS,
    Code.WRONG_STATE,
)
_SHEETS: Final = {
    200: {
        "description": "The PAR sheet, as `casino-brag par-sheet` has it.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/html": {"schema": {"type": "string"}},
            "text/markdown": {"schema": {"type": "string"}},
        },
    }
}
_FILE: Final = {
    200: {
        "description": "The file, with its comments where one was kept.",
        "content": {"application/toml": {"schema": {"type": "string"}}},
    }
}


@blueprint.route("")
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.response(200, GamePaytablesPageSchema)
@blueprint.problems(*PROBLEMS)
def get_paytables() -> dict[str, Any]:
    """All games: what is in force, what comes, and what is being written."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        return {"items": [_game(conn, game) for game in games_with_paytables(conn)], "next_cursor": None}


@blueprint.route("/<game>/versions")
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.response(200, VersionPageSchema)
@blueprint.problems(*READING)
def get_versions(game: str) -> dict[str, Any]:
    """All versions of a game, newest first."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        known(conn, game)
        return {"items": [told(row) for row in list_versions(conn, game)], "next_cursor": None}


@blueprint.route(VERSION)
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.response(200, VersionDetailSchema, headers=ETAG)
@blueprint.problems(*READING, Code.GAME_UNAVAILABLE)
def get_version(game: str, version: int) -> tuple[dict[str, Any], int, dict[str, str]]:
    """One version, with what it says; its digest is its `ETag`, a weak one: its state may change, its content never."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        row, found = read_version(conn, game, version)
    return told(row) | {"paytable": found.paytable.document()}, 200, {"ETag": f'W/"{row.digest}"'}


@blueprint.route(f"{VERSION}/par-sheet")
@blueprint.doc(security=for_roles(EVERYONE), responses=_SHEETS)
@blueprint.arguments(ParSheetQuery, location="query")
@blueprint.problems(Code.INVALID, *READING, Code.GAME_UNAVAILABLE)
def get_par_sheet(query: dict[str, Any], game: str, version: int) -> Response:
    """The PAR sheet that a version was approved with; JSON, or a page."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        _, found = read_version(conn, game, version)
        sheet = par_sheet_of(conn, game, version)
    match query["format"]:
        case "html":
            page_policy = {"Content-Security-Policy": PAGE_POLICY}
            return Response(pages.html(found.paytable, sheet), mimetype="text/html", headers=page_policy)
        case "markdown":
            return Response(pages.markdown(found.paytable, sheet), mimetype="text/markdown")
        case _:
            return jsonify(sheet)


@blueprint.route(f"{VERSION}/file")
@blueprint.doc(security=for_roles(EVERYONE), responses=_FILE)
@blueprint.problems(*READING)
def get_file(game: str, version: int) -> Response:
    """The file of a version, to be read, kept and begun with."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        text = version_text(conn, game, version)
    disposition = {"Content-Disposition": f'attachment; filename="{game}.toml"'}
    return Response(text, content_type="application/toml", headers=disposition)


@blueprint.route(f"{VERSION}/activate", methods=["POST"])
@blueprint.doc(security=for_roles(OPERATIONS))
@blueprint.arguments(ActivateRequest, example=examples.ACTIVATE)
@blueprint.response(200, VersionSchema, example=examples.VERSION)
@blueprint.problems(*CHANGING, Code.SAME_PERSON)
def post_activate(body: dict[str, Any], game: str, version: int) -> dict[str, Any]:
    """Put a version in force, now or at a time; open rounds are settled on their own version."""
    at = body.get("at")
    with service().database.connection() as conn:
        said = body if at is None else {**body, "at": rfc3339(at)}
        caller = staff_caller(conn, OPERATIONS, said)
        activate(conn, caller.person, game, version, reason=body["reason"], at=at)
        return told(version_row(conn, game, version))


@blueprint.route(f"{VERSION}/retire", methods=["POST"])
@blueprint.doc(security=for_roles(OPERATIONS))
@blueprint.arguments(ReasonRequest, example=examples.RETIRE)
@blueprint.response(200, VersionSchema, example=examples.VERSION)
@blueprint.problems(*CHANGING)
def post_retire(body: dict[str, Any], game: str, version: int) -> dict[str, Any]:
    """Have a version never put in force again."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, OPERATIONS, body)
        retire(conn, caller.person, game, version, reason=body["reason"])
        return told(version_row(conn, game, version))


@blueprint.route("/<game>/unschedule", methods=["POST"])
@blueprint.doc(security=for_roles(OPERATIONS))
@blueprint.arguments(ReasonRequest, example=examples.UNSCHEDULE)
@blueprint.response(200, GamePaytablesSchema)
@blueprint.problems(*CHANGING)
def post_unschedule(body: dict[str, Any], game: str) -> dict[str, Any]:
    """Call off what was to come into force."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, OPERATIONS, body)
        known(conn, game)
        unschedule(conn, caller.person, game, reason=body["reason"])
        return _game(conn, game)


@blueprint.route("/<game>/history")
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.arguments(ListQuery, location="query")
@blueprint.response(200, HistoryPageSchema)
@blueprint.problems(Code.INVALID, *READING)
def get_history(query: dict[str, Any], game: str) -> dict[str, Any]:
    """What happened to a game and its paytables: who did it, when and why; newest first."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        known(conn, game)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        entries = history(conn, game, after=after, limit=limit)
        return [entry | {"occurred_at": rfc3339(entry["occurred_at"])} for entry in entries]

    return page(read, "entry_id", query)


def known(conn: psycopg.Connection[Any], game: str) -> None:
    """Refuses what is no game, or one of which there is not even a draft: `not_found`."""
    if game not in games_with_paytables(conn):
        raise ServiceError(Code.NOT_FOUND, "There is no such game. See GET /v1/paytables.")


def _game(conn: psycopg.Connection[Any], game: str) -> dict[str, Any]:
    now = {row.state: told(row) for row in list_versions(conn, game)}
    drafts = [
        draft
        for state in (DraftState.DRAFT, DraftState.SUBMITTED)
        for draft in list_drafts(conn, game=game, state=state, limit=LIMIT_MAX)
    ]
    newest_first = sorted(drafts, key=lambda draft: draft.number, reverse=True)
    return {
        "game": game,
        "active": now.get(VersionState.ACTIVE),
        "scheduled": now.get(VersionState.SCHEDULED),
        "open_drafts": [told(draft) for draft in newest_first[:LIMIT_MAX]],
    }


def told(thing: Draft | VersionRow) -> dict[str, Any]:
    """A draft or a version as answers have it."""
    return {
        name: rfc3339(value) if isinstance(value, datetime) else value
        for name, value in asdict(thing).items()
    }
