"""What anyone may ask: the games, their rules, pays, limits and exact figures."""

from __future__ import annotations

from typing import Any

from casino_brag.catalogue.games import published_game, published_games
from casino_brag.errors import Code
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.schemas import GamePageSchema, GameSchema
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "games", "games", url_prefix="/v1/games", description="Published games, for anyone."
)

_ENGLISH = {"Content-Language": "en"}


@blueprint.route("")
@blueprint.response(200, GamePageSchema)
@blueprint.problems(Code.GAME_UNAVAILABLE, Code.BUSY, Code.DATABASE_UNAVAILABLE)
def get_games() -> tuple[dict[str, Any], dict[str, str]]:
    """All published games."""
    with service().database.connection() as conn:
        return {"items": published_games(conn, service().house.shelf), "next_cursor": None}, _ENGLISH


@blueprint.route("/<game>")
@blueprint.response(200, GameSchema)
@blueprint.problems(Code.NOT_FOUND, Code.GAME_UNAVAILABLE, Code.BUSY, Code.DATABASE_UNAVAILABLE)
def get_game(game: str) -> tuple[dict[str, Any], dict[str, str]]:
    """One published game."""
    with service().database.connection() as conn:
        return published_game(conn, service().house.shelf, game), _ENGLISH
