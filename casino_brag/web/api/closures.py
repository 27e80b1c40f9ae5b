"""How the games stand for an operator's own rounds, and closing and opening them for those."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import marshmallow as ma
import psycopg
from marshmallow import fields

from casino_brag.catalogue.closures import ClosureState, GameState, Scope, close, game_states, open_again
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.staff.acting import REASON_LENGTH_MAX
from casino_brag.web.api.fields import one_of, written
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.signed import HEADERS, PROBLEMS, SIGNED, signing_caller
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "closures",
    "closures",
    url_prefix="/v1/operator/games",
    description="Games, as an operator opens and closes them.",
)

_CHANGING: Final = (
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.MALFORMED_REQUEST,
    Code.INVALID,
    Code.NOT_FOUND,
    *PROBLEMS,
)


class ClosureRequest(ma.Schema):
    """Why a game is closed or opened."""

    reason = written(
        REASON_LENGTH_MAX, required=True, metadata={"description": "On one line; kept on record for good."}
    )


class GameStateSchema(ma.Schema):
    """How a game stands for an operator's rounds.  One that drains is drained when no round is open any more."""

    game = fields.String(required=True)
    state = one_of("enabled", *ClosureState, required=True)
    reason = fields.String(required=True, allow_none=True)
    open_rounds = fields.Integer(required=True, metadata={"description": "Of this operator, in both modes."})


class ListedGameStateSchema(GameStateSchema):
    """The same with the version on offer, and since when it has been so."""

    version = fields.Integer(required=True, allow_none=True)
    since = fields.String(required=True, metadata={"format": "date-time"})


class GameStatePageSchema(ma.Schema):
    """All games."""

    items = fields.List(fields.Nested(ListedGameStateSchema), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class ClosureSchema(GameStateSchema):
    """How the game stands now, and whether this request changed something.

    What was closed for all operators stays so, whatever one of them wants.
    """

    changed = fields.Boolean(required=True)


@blueprint.route("", parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.response(200, GameStatePageSchema)
@blueprint.problems(*PROBLEMS)
def get_games() -> dict[str, Any]:
    """How the games stand for your rounds."""
    with service().database.connection() as conn:
        states = game_states(conn, signing_caller(conn).operator_id)
    items = [asdict(found) | {"since": rfc3339(found.since)} for found in states]
    return {"items": items, "next_cursor": None}


@blueprint.route("/<game>/disable", methods=["POST"], parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.arguments(ClosureRequest)
@blueprint.response(200, ClosureSchema)
@blueprint.problems(*_CHANGING)
def post_disable(body: dict[str, Any], game: str) -> dict[str, Any]:
    """Stop a game at once for your rounds: no new ones, and the open ones wait."""
    return _set(game, ClosureState.DISABLED, body["reason"])


@blueprint.route("/<game>/drain", methods=["POST"], parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.arguments(ClosureRequest)
@blueprint.response(200, ClosureSchema)
@blueprint.problems(*_CHANGING)
def post_drain(body: dict[str, Any], game: str) -> dict[str, Any]:
    """Take no new rounds of a game, and let your open ones be decided."""
    return _set(game, ClosureState.DRAINING, body["reason"])


@blueprint.route("/<game>/enable", methods=["POST"], parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.arguments(ClosureRequest)
@blueprint.response(200, ClosureSchema)
@blueprint.problems(*_CHANGING)
def post_enable(body: dict[str, Any], game: str) -> dict[str, Any]:
    """Open a game again that you have closed."""
    return _set(game, None, body["reason"])


def _set(game: str, state: ClosureState | None, reason: str) -> dict[str, Any]:
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        scope, actor = Scope(operator.operator_id, game), f"operator:{operator.name}"
        _found(conn, scope)
        if state is None:
            changed = open_again(conn, scope, reason, actor=actor)
        else:
            changed = close(conn, scope, state, reason, actor=actor)
        return asdict(_found(conn, scope)) | {"changed": changed}


def _found(conn: psycopg.Connection[Any], scope: Scope) -> GameState:
    for state in game_states(conn, scope.operator_id):
        if state.game == scope.game:
            return state
    raise ServiceError(Code.NOT_FOUND, "There is no game of this name. See GET /v1/operator/games.")
