"""Published games, as a player may know them before staking."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.catalogue.paytables import PaytableVersion, Shelf
from casino_brag.catalogue.versions import printable
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.game.paytable import PAYOUT_MAX_MINOR, Paytable
from casino_brag.game.rules import Limits, StakeRange, pays_document
from casino_brag.game.rules_text import rules_in_words
from casino_brag.game.settlement import Stakes, maximum_payout_minor

INTERRUPTION_POLICY: Final = (
    "A round that is interrupted waits for its player: it is offered again with the same cards on every later session, "
    "its stakes stay held, and no new round of the game begins before it is over. How long it waits, and whether it is "
    "then folded or voided with its stakes returned, the operator discloses with the session."
)

_OFFERED: Final = """
    SELECT g.game, g.state, g.active_version_id, g.changed_at, next.version, s.activates_at FROM game AS g
    LEFT JOIN paytable_schedule AS s USING (game)
    LEFT JOIN paytable_version AS next ON next.version_id = s.version_id
    WHERE g.active_version_id IS NOT NULL AND (%s::text IS NULL OR g.game = %s)
    ORDER BY g.game
"""


def game_names(conn: psycopg.Connection[Any]) -> list[str]:
    """All games that there are or were, by name."""
    return [name for (name,) in conn.execute("SELECT game FROM game ORDER BY game")]


def published_games(conn: psycopg.Connection[Any], shelf: Shelf) -> list[dict[str, Any]]:
    """All games that have a version, those that are disabled at present too.

    A game whose version was altered is left out, so that it takes no other with it; by itself it says why.
    """
    listed = []
    for row in conn.execute(_OFFERED, [None, None]).fetchall():
        with suppress(ServiceError):
            listed.append(_described(conn, shelf, *row))
    return listed


def published_game(conn: psycopg.Connection[Any], shelf: Shelf, game: str) -> dict[str, Any]:
    """One game; `not_found` for one that was never published."""
    row = conn.execute(_OFFERED, [printable(game), printable(game)]).fetchone()
    if row is None:
        raise ServiceError(Code.NOT_FOUND, "No game of this name is published. See GET /v1/games.")
    return _described(conn, shelf, *row)


def limits_in(
    conn: psycopg.Connection[Any], shelf: Shelf, currency: str, game: str | None, jurisdiction: str
) -> dict[str, dict[str, Any]]:
    """The limits in a currency of each game that is enabled and offers it there; of one when it is named."""
    offered = {}
    for name, state, version_id, *_ in conn.execute(_OFFERED, [game, game]).fetchall():
        with suppress(ServiceError):
            version = shelf.version(conn, version_id)
            paytable = version.paytable
            if state == "enabled" and version.offered_in(jurisdiction) and currency in paytable.limits:
                offered[name] = _limits(paytable, paytable.limits[currency])
    return offered


def _described(
    conn: psycopg.Connection[Any],
    shelf: Shelf,
    game: str,
    state: str,
    version_id: UUID,
    changed_at: datetime,
    next_version: int | None,
    next_at: datetime | None,
) -> dict[str, Any]:
    version = shelf.version(conn, version_id)
    paytable = version.paytable
    return {
        "game": game,
        "title": paytable.title,
        "state": state,
        "paytable": {"version": version.version, "digest": version.digest},
        "ranking": list(reversed(paytable.ranking.categories)),
        "rules": [
            {"title": section.title, "paragraphs": section.paragraphs} for section in rules_in_words(paytable)
        ],
        "pays": _pays(paytable),
        "limits": {currency: _limits(paytable, limits) for currency, limits in paytable.limits.items()},
        "rtp": version.figures,
        "interruption_policy": INTERRUPTION_POLICY,
        "change": {
            "changed_at": rfc3339(changed_at),
            "notice": _notice(version),
            "next": None if next_at is None else _announced(next_version, next_at),
        },
    }


def _pays(paytable: Paytable) -> Mapping[str, Mapping[str, str]]:
    tables = {"play": paytable.play_pays}
    if paytable.ante_bonus is not None:
        tables["ante_bonus"] = paytable.ante_bonus.pays
    if paytable.pair_bonus is not None:
        tables["pair_bonus"] = paytable.pair_bonus.pays
    return {
        spot: {category: str(odds) for category, odds in pays_document(pays).items()}
        for spot, pays in tables.items()
    }


def _limits(paytable: Paytable, limits: Limits) -> dict[str, Any]:
    most = Stakes(limits.ante.max_minor, 0 if limits.pair_bonus is None else limits.pair_bonus.max_minor)
    possible = maximum_payout_minor(paytable, most)
    return {
        "ante": _range(limits.ante),
        "pair_bonus": None if limits.pair_bonus is None else _range(limits.pair_bonus),
        "payout_max_minor": limits.payout_max_minor,
        "maximum_win_minor": min(possible, limits.payout_max_minor or PAYOUT_MAX_MINOR, PAYOUT_MAX_MINOR),
    }


def _range(stakes: StakeRange) -> dict[str, int]:
    return {
        "min_minor": stakes.min_minor,
        "max_minor": stakes.max_minor,
        "step_minor": stakes.step_minor,
    }


def _notice(version: PaytableVersion) -> str:
    if version.version == 1:
        return "These are the game's first rules."
    return f"Version {version.version} of the rules and pays is in force since the time given."


def _announced(version: int | None, at: datetime) -> dict[str, Any]:
    return {
        "at": rfc3339(at),
        "version": version,
        "notice": f"Version {version} of the rules and pays comes into force at the time given;"
        " rounds that are open then are settled on the rules that they began under.",
    }
