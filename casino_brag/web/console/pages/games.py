"""Games: how each stands, its limits, what is closed; and closing and opening them again."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from flask import Blueprint, Response

from casino_brag.catalogue.closures import (
    ClosureState,
    Scope,
    close,
    closures,
    game_states,
    open_again,
    scope_named,
)
from casino_brag.catalogue.games import game_names, published_games
from casino_brag.catalogue.jurisdictions import jurisdiction, names
from casino_brag.catalogue.operators import operator_names
from casino_brag.catalogue.versions import VersionState, list_versions
from casino_brag.errors import Code, Errors, ServiceError, SetUpError
from casino_brag.staff.access import SignedIn
from casino_brag.staff.acting import REASON_LENGTH_MAX
from casino_brag.staff.people import Role
from casino_brag.web.console.forms import Form, asked, posted
from casino_brag.web.console.shell import back_to, page, render, require_proof
from casino_brag.web.service import service

blueprint = Blueprint("games", __name__)

VIEWERS: Final = (Role.AUDITOR, Role.OPERATIONS)

ENABLE: Final = "enable"

ACTIONS: Final = (
    ("drain", "Drain: no new rounds; open ones are decided as ever"),
    ("disable", "Disable: nothing moves; open rounds wait, their stakes held"),
    (ENABLE, "Enable: take back what was closed for exactly these"),
)

_STATES: Final = {"drain": ClosureState.DRAINING, "disable": ClosureState.DISABLED}

SUSPENSIONS: Final = {
    "none": "nothing is closed by itself: an alert is raised",
    "drain": "the version is drained by itself, and an alert raised",
    "disable": "the version is disabled by itself, and an alert raised",
}


@page(blueprint, "/games", roles=VIEWERS, nav="games")
def games(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Every game: how it stands, what comes, its limits; what is closed; what is asked where."""
    published = {game["game"]: game for game in published_games(conn, service().house.shelf)}
    listed = []
    for state in game_states(conn):
        versions = list_versions(conn, state.game)
        listed.append(
            {
                "state": state,
                "offered": published.get(state.game),
                "scheduled": next((row for row in versions if row.state is VersionState.SCHEDULED), None),
            }
        )
    return render(
        "games.html.j2",
        games=listed,
        closures=closures(conn),
        jurisdictions=[jurisdiction(name) for name in names()],
        suspension=SUSPENSIONS[service().config.rtp_suspension],
        may_change=Role.OPERATIONS in who.person.roles,
    )


@page(blueprint, "/games/change", roles=(Role.OPERATIONS,), methods=("GET", "POST"), nav="games")
def change(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Drains, disables or enables everything, a game or one of its versions, for all operators or for one."""
    form = posted()
    with form.attempt():
        if form.sent:
            return back_to("/console/games", _changed(conn, who, form))
    return render(
        "games_change.html.j2",
        form=form,
        preset=asked(),
        actions=ACTIONS,
        games=[("", "Everything"), *((game, game) for game in game_names(conn))],
        operators=[("", "All operators"), *((name, name) for name in operator_names(conn))],
        status=form.status,
    )


def _changed(conn: psycopg.Connection[Any], who: SignedIn, form: Form) -> str:
    """Carries out what a form asks for; a sentence about it."""
    action, reason = form.value("action"), form.value("reason").strip()
    scope, errors = _scope(conn, form)
    if action not in dict(ACTIONS):
        errors["action"] = ["Choose what is to be done."]
    if not (reason and reason.isprintable() and len(reason) <= REASON_LENGTH_MAX):
        errors["reason"] = [f"Say why, on one line of at most {REASON_LENGTH_MAX} characters."]
    if errors:
        raise ServiceError(Code.INVALID, "Nothing was changed.", errors=errors)
    require_proof(conn, who, form)
    actor = who.person.actor
    if action == ENABLE:
        if not open_again(conn, scope, reason, actor=actor):
            raise ServiceError(
                Code.WRONG_STATE,
                "Nothing was closed for exactly these. What is closed for more, or for less, is in the list of games.",
            )
        return "It is open again, unless something wider is closed."
    if not close(conn, scope, _STATES[action], reason, actor=actor):
        raise ServiceError(Code.WRONG_STATE, f"It is {_STATES[action].value} already.")
    return f"It is {_STATES[action].value}."


def _scope(conn: psycopg.Connection[Any], form: Form) -> tuple[Scope, Errors]:
    """What is to be changed, and what is wrong with how that is said, by field."""
    said: dict[str, Any] = {"operator": None, "game": None, "version": None}
    typed = {name: form.value(name).strip() for name in said}
    for name, text in typed.items():
        if not text:
            continue
        said[name] = form.number(name) or 0 if name == "version" else text
        try:
            scope_named(conn, **said)
        except (SetUpError, psycopg.DataError):
            game = f"of {said['game']}" if said["game"] else "of a game, and choose the game"
            told = (
                f"Give the number of a version {game}." if name == "version" else f"There is no such {name}."
            )
            return Scope(), {name: [told]}
    return scope_named(conn, **said), {}
