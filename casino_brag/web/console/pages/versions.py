"""Versions of paytables: what was approved, its PAR sheet and file, putting it in force, retiring it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from flask import Blueprint, Response

from casino_brag.catalogue.activations import activate, retire
from casino_brag.catalogue.versions import par_sheet_of, read_version, version_text
from casino_brag.errors import Code, ServiceError
from casino_brag.odds.pages.sheet import page as sheet_page
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.console.forms import Form, posted
from casino_brag.web.console.pages.preview import (
    TOML,
    VERSION,
    consequences,
)
from casino_brag.web.console.shell import back_to, download, may, page, render, require_proof
from casino_brag.web.service import service

blueprint = Blueprint("versions", __name__)

EDITORS: Final = (Role.EDITOR,)
OPERATIONS: Final = (Role.OPERATIONS,)


@page(blueprint, f"/paytables/<game>/versions/{VERSION}", nav="paytables")
def version_page(conn: psycopg.Connection[Any], who: SignedIn, game: str, version: int) -> Response:
    """A version, against the one in force."""
    return _version(conn, who, game, version, Form({}, sent=False))


@page(blueprint, f"/paytables/<game>/versions/{VERSION}/file", nav="paytables")
def version_file(conn: psycopg.Connection[Any], who: SignedIn, game: str, version: int) -> Response:
    """The file of a version, with its comments."""
    return download(f"{game}.toml", version_text(conn, game, version), TOML)


@page(blueprint, f"/paytables/<game>/versions/{VERSION}/par-sheet", nav="paytables")
def par_sheet_page(conn: psycopg.Connection[Any], who: SignedIn, game: str, version: int) -> Response:
    """The PAR sheet that is kept with a version."""
    row, found = read_version(conn, game, version)
    shown = sheet_page(found.paytable, par_sheet_of(conn, game, version))
    return render("paytable_par_sheet.html.j2", row=row, sheet=shown)


@page(
    blueprint,
    f"/paytables/<game>/versions/{VERSION}/activate",
    roles=OPERATIONS,
    methods=("POST",),
    nav="paytables",
)
def activate_version(conn: psycopg.Connection[Any], who: SignedIn, game: str, version: int) -> Response:
    """Puts a version in force, now or at a time."""
    form = posted()
    with form.attempt():
        at = _time(form.value("at")) if form.value("when") == "at" else None
        require_proof(conn, who, form)
        activate(conn, who.person, game, version, reason=form.value("reason"), at=at)
        said = "is in force" if at is None else f"comes into force at {at:%Y-%m-%d %H:%M} UTC"
        return back_to(f"/console/paytables/{game}", f"Version {version} {said}.")
    return _version(conn, who, game, version, form)


@page(
    blueprint,
    f"/paytables/<game>/versions/{VERSION}/retire",
    roles=OPERATIONS,
    methods=("POST",),
    nav="paytables",
)
def retire_version(conn: psycopg.Connection[Any], who: SignedIn, game: str, version: int) -> Response:
    """Has a version never put in force again."""
    form = posted()
    with form.attempt():
        retire(conn, who.person, game, version, reason=form.value("reason"))
        return back_to(f"/console/paytables/{game}/versions/{version}", f"Version {version} is retired.")
    return _version(conn, who, game, version, form)


def _version(conn: psycopg.Connection[Any], who: SignedIn, game: str, version: int, form: Form) -> Response:
    row, found = read_version(conn, game, version)
    active = service().house.shelf.active(conn, game)
    other = None if active is None or active.version == version else active
    return render(
        "paytable_version.html.j2",
        row=row,
        form=form,
        title=found.paytable.title,
        text=version_text(conn, game, version),
        shown=consequences(
            found.paytable,
            None if other is None else other.paytable,
            "" if other is None else f"version {other.version}, in force",
        ),
        active=active,
        lost=() if other is None else other.lost_with(row.jurisdictions),
        may_edit=may(who, EDITORS),
        may_operate=may(who, OPERATIONS),
        status=form.status,
    )


def _time(text: str) -> datetime:
    """A time as a browser's field gives it, which is meant in UTC; `invalid`."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as error:
        raise ServiceError(
            Code.INVALID,
            "Nothing can be scheduled for that.",
            errors={"at": ["give a day and a time, in UTC"]},
        ) from error
