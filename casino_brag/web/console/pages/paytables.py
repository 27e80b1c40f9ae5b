"""Games and their paytables: what is in force, what is written, what was done; two of them side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import psycopg
from flask import Blueprint, Response, request

from casino_brag.catalogue.activations import unschedule
from casino_brag.catalogue.drafts import (
    Draft,
    DraftState,
    create_draft,
    list_drafts,
    read_draft,
)
from casino_brag.catalogue.guards import check_text
from casino_brag.catalogue.versions import (
    VersionRow,
    VersionState,
    games_with_paytables,
    history,
    list_versions,
    read_version,
)
from casino_brag.errors import Code, ServiceError, invalid
from casino_brag.game.paytable import Paytable
from casino_brag.odds.differences import differences
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.console.figures import Telling
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.pages.drafts import path_of
from casino_brag.web.console.pages.preview import (
    consequences,
    consequences_of_text,
)
from casino_brag.web.console.pictures import strategy_map
from casino_brag.web.console.shell import back_to, may, page, render
from casino_brag.web.service import service

blueprint = Blueprint("paytables", __name__)

EDITORS: Final = (Role.EDITOR,)
OPERATIONS: Final = (Role.OPERATIONS,)

HISTORY_ROWS: Final = 30
DRAFTS_SHOWN: Final = 50

_OPEN: Final = (DraftState.DRAFT, DraftState.SUBMITTED)
_SIDE: Final = re.compile(r"(v|d)([0-9]{1,9})")


@page(blueprint, "/paytables", nav="paytables")
def games(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Every game: what is in force, what comes, what is being written, the figures that matter most."""
    drafts = [draft for draft in list_drafts(conn, limit=200) if draft.state in _OPEN]
    listed = []
    for game in games_with_paytables(conn):
        version = service().house.shelf.active(conn, game)
        rows = list_versions(conn, game)
        listed.append(
            {
                "game": game,
                "title": game if version is None else version.paytable.title,
                "active": next((row for row in rows if row.state is VersionState.ACTIVE), None),
                "scheduled": next((row for row in rows if row.state is VersionState.SCHEDULED), None),
                "versions": rows,
                "drafts": [draft for draft in drafts if draft.game == game],
                "told": None if version is None else Telling.of(version.paytable),
            }
        )
    return render("paytables.html.j2", games=listed, may_edit=may(who, EDITORS))


@page(blueprint, "/paytables/new", roles=EDITORS, methods=("GET", "POST"), nav="paytables")
def new_game(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """A draft of a game that is new, or a file brought in."""
    form = posted()
    with form.attempt():
        if form.sent:
            draft = create_draft(
                conn, who.person, form.value("game").strip(), text=form.value("text") or None
            )
            return back_to(path_of(draft), f"Draft {draft.number} was begun.")
    return render("paytable_new.html.j2", form=form, status=form.status)


@page(blueprint, "/paytables/<game>", nav="paytables")
def game_page(conn: psycopg.Connection[Any], who: SignedIn, game: str) -> Response:
    """A game: its versions, its drafts, its history."""
    return _game(conn, who, game, Form({}, sent=False))


@page(blueprint, "/paytables/<game>/history", nav="paytables")
def history_page(conn: psycopg.Connection[Any], who: SignedIn, game: str) -> Response:
    """Who did what with a game and its paytables, when and why."""
    entries = history(conn, game, after=_cursor(), limit=HISTORY_ROWS + 1)
    return render(
        "paytable_history.html.j2",
        game=game,
        entries=entries[:HISTORY_ROWS],
        cursor=str(entries[HISTORY_ROWS - 1]["entry_id"]) if len(entries) > HISTORY_ROWS else None,
    )


@page(blueprint, "/paytables/<game>/drafts", roles=EDITORS, methods=("POST",), nav="paytables")
def new_draft(conn: psycopg.Connection[Any], who: SignedIn, game: str) -> Response:
    """Begins a draft from a version, from another draft, or from what is in force."""
    form = posted()
    with form.attempt():
        draft = create_draft(
            conn,
            who.person,
            game,
            from_version=form.number("from_version"),
            from_draft=form.number("from_draft"),
        )
        return back_to(path_of(draft), f"Draft {draft.number} was begun.")
    return _game(conn, who, game, form)


@page(blueprint, "/paytables/<game>/unschedule", roles=OPERATIONS, methods=("POST",), nav="paytables")
def unschedule_version(conn: psycopg.Connection[Any], who: SignedIn, game: str) -> Response:
    """Calls off what was to come into force."""
    form = posted()
    with form.attempt():
        unschedule(conn, who.person, game, reason=form.value("reason"))
        return back_to(f"/console/paytables/{game}", "What was scheduled is called off.")
    return _game(conn, who, game, form)


@page(blueprint, "/paytables/<game>/compare", nav="paytables")
def compare(conn: psycopg.Connection[Any], who: SignedIn, game: str) -> Response:
    """Two versions or drafts side by side."""
    form = asked()
    versions, drafts = list_versions(conn, game), list_drafts(conn, game=game, limit=DRAFTS_SHOWN)
    sides = [(f"v{row.version}", f"Version {row.version}, {row.state}") for row in versions]
    sides += [(f"d{draft.number}", f"Draft {draft.number}, {draft.state}") for draft in drafts]
    if not sides:
        raise ServiceError(Code.NOT_FOUND, f"There is no game {game!a}.")
    if not form.sent:
        active = service().house.shelf.active(conn, game)
        first = sides[0][0] if active is None else f"v{active.version}"
        form.put("old", first)
        form.put("new", (active and _newest_other(active.paytable, versions, drafts)) or first)
    told: dict[str, Any] = {"found": None, "shown": None, "pictures_of": (), "names": ()}
    with form.attempt():
        if form.value("old") and form.value("new"):
            old, new = (_side(conn, game, form, name) for name in ("old", "new"))
            called = [dict(sides).get(form.value(name), "") for name in ("old", "new")]
            told = {
                "found": differences(old, new),
                "shown": consequences(new, old, called[0]),
                "pictures_of": (strategy_map(old), strategy_map(new, old)),
                "names": called,
            }
    return render("paytable_compare.html.j2", game=game, form=form, sides=sides, status=form.status, **told)


def _game(conn: psycopg.Connection[Any], who: SignedIn, game: str, form: Form) -> Response:
    versions = list_versions(conn, game)
    drafts = list_drafts(conn, game=game, limit=DRAFTS_SHOWN)
    if not (versions or drafts):
        raise ServiceError(Code.NOT_FOUND, f"There is no game {game!a}.")
    active = service().house.shelf.active(conn, game)
    return render(
        "paytable_game.html.j2",
        game=game,
        title=game if active is None else active.paytable.title,
        versions=versions,
        drafts=drafts,
        active=next((row for row in versions if row.state is VersionState.ACTIVE), None),
        scheduled=next((row for row in versions if row.state is VersionState.SCHEDULED), None),
        told=None if active is None else Telling.of(active.paytable),
        entries=history(conn, game, limit=8),
        form=form,
        may_edit=may(who, EDITORS),
        may_operate=may(who, OPERATIONS),
        status=form.status,
    )


def _newest_other(than: Paytable, versions: Sequence[VersionRow], drafts: Sequence[Draft]) -> str | None:
    """The side that was made last of those with another content, which is what is meant most often; None of none."""
    made = [(row.published_at, f"v{row.version}", row.digest) for row in versions]
    for draft in drafts:
        paytable = check_text(draft.game, draft.text).paytable
        if paytable is not None:
            made.append((draft.changed_at, f"d{draft.number}", paytable.digest))
    others = [(at, side) for at, side, digest in made if digest != than.digest]
    return max(others)[1] if others else None


def _side(conn: psycopg.Connection[Any], game: str, form: Form, name: str) -> Paytable:
    """The paytable of one side: ``v3`` is a version, ``d5`` a draft.  `invalid` for what is neither, or no paytable."""
    match = _SIDE.fullmatch(form.value(name))
    if match is None:
        raise invalid(name, "choose one of the list")
    number = int(match[2])
    if match[1] == "v":
        return read_version(conn, game, number)[1].paytable
    shown = consequences_of_text(game, read_draft(conn, game, number).text, None)
    if shown.paytable is None:
        raise invalid(name, f"draft {number} is not finished: it cannot be compared yet")
    return shown.paytable


def _cursor() -> UUID | None:
    text = request.args.get("cursor", "")
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise ServiceError(Code.NOT_FOUND, "There is no such part of this list.") from error
