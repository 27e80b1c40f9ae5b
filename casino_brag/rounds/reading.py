"""Reading rounds: one, the open one, a player's history, and what a session has come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from casino_brag.catalogue.sessions import Caller, read_caller
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.rounds.house import House
from casino_brag.rounds.round import Round, as_its_owner_sees


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, newest first; `next_after` is what the last item shown goes by, when there are more."""

    items: list[dict[str, Any]]
    next_after: UUID | int | None


def read_round(
    conn: psycopg.Connection[Any], house: House, token_hash: bytes, round_id: UUID
) -> dict[str, Any]:
    """A round as its owner may see it now; an ended session may still look.

    `round_not_found` for a round that does not exist or is somebody else's or of the other mode: all look the same.
    """
    caller = read_caller(conn, token_hash)
    row = conn.execute(
        "SELECT * FROM round_record WHERE round_id = %s AND player_id = %s AND mode = %s",
        [round_id, caller.player_id, caller.mode],
    ).fetchone()
    if row is None:
        raise round_not_found()
    return _shown(conn, house, Round.from_columns(row))


def list_rounds(
    conn: psycopg.Connection[Any], house: House, token_hash: bytes, *, after: UUID | None, limit: int
) -> Page:
    """The caller's rounds in the session's mode and currency, newest first, from the one behind `after`."""
    caller = read_caller(conn, token_hash)
    caller.must_be_live()
    rows = conn.execute(
        "SELECT * FROM round_record WHERE player_id = %s AND account_id = %s AND (%s::uuid IS NULL OR"
        " (opened_at, round_id) < (SELECT opened_at, round_id FROM round WHERE (round_id, player_id) = (%s, %s)))"
        " ORDER BY opened_at DESC, round_id DESC LIMIT %s",
        [caller.player_id, caller.account_id, after, after, caller.player_id, limit + 1],
    ).fetchall()
    rounds = [Round.from_columns(row) for row in rows[:limit]]
    return Page(
        [_shown(conn, house, found) for found in rounds], rounds[-1].round_id if len(rows) > limit else None
    )


def list_commitments(
    conn: psycopg.Connection[Any], token_hash: bytes, *, game: str | None, after: int | None, limit: int
) -> Page:
    """The commitments of the caller's series in a game, newest first, from the one behind the number `after`.

    `invalid` where neither the session nor `game` says which.
    """
    caller = read_caller(conn, token_hash)
    caller.must_be_live()
    game = must_name_the_sessions_game(caller, game)
    rows = conn.execute(
        """
        SELECT c.number, c.value, c.round_id, c.made_at, CASE
            WHEN r.round_id IS NOT NULL THEN CASE WHEN c.ended_at IS NULL THEN 'in_play' ELSE r.state END
            WHEN c.ended_at IS NULL THEN 'waiting' WHEN c.seed IS NOT NULL THEN 'expired' ELSE 'lost' END
        FROM commitment AS c LEFT JOIN round AS r USING (round_id)
        WHERE (c.player_id, c.game, c.mode) = (%s, %s, %s) AND (%s::bigint IS NULL OR c.number < %s)
        ORDER BY c.number DESC LIMIT %s
        """,
        [caller.player_id, game, caller.mode, after, after, limit + 1],
    ).fetchall()
    shown = [
        {
            "number": number,
            "value": value.hex(),
            "round_id": str(round_id),
            "made_at": rfc3339(made_at),
            "state": state,
        }
        for number, value, round_id, made_at, state in rows[:limit]
    ]
    return Page(shown, shown[-1]["number"] if len(rows) > limit else None)


def must_name_the_sessions_game(caller: Caller, game: str | None) -> str:
    """The game that is meant; `invalid` where it is none, or not the session's."""
    meant = game or caller.session_game
    if meant is None:
        wrong = "This session is for no game in particular: name one."
    elif caller.session_game not in (None, meant):
        wrong = f"This session is for {caller.session_game}."
    else:
        return meant
    raise ServiceError(Code.INVALID, wrong, errors={"game": [wrong]})


def open_rounds(conn: psycopg.Connection[Any], house: House, caller: Caller) -> list[dict[str, Any]]:
    """The rounds of the session's mode and game that wait for a decision, on whatever session they began."""
    rows = conn.execute(
        "SELECT * FROM round_record WHERE player_id = %s AND mode = %s AND state = 'awaiting_decision'"
        " AND (%s::text IS NULL OR game = %s) ORDER BY round_id",
        [caller.player_id, caller.mode, caller.session_game, caller.session_game],
    ).fetchall()
    return [_shown(conn, house, Round.from_columns(row)) for row in rows]


def net_position_minor(conn: psycopg.Connection[Any], caller: Caller) -> int:
    """What the session has won, less what it has lost, over its rounds that are over.

    Of a voided round that was settled before, what was lost and returned counts as nothing.
    """
    row = conn.execute(
        """
        SELECT coalesce(sum(CASE r.state
            WHEN 'settled' THEN r.total_payout_minor - r.total_staked_minor
            ELSE coalesce(r.total_payout_minor - r.total_staked_minor + v.refund_minor, 0) + v.compensation_minor
        END), 0)::bigint
        FROM round AS r LEFT JOIN voided_round AS v USING (round_id)
        WHERE r.session_id = %s AND r.state IN ('settled', 'voided')
        """,
        [caller.session_id],
    ).fetchone()
    assert row is not None
    return int(row[0])


def round_not_found() -> ServiceError:
    """The error for a round the caller may not know of."""
    return ServiceError(
        Code.ROUND_NOT_FOUND, "You have no round of this id. See GET /v1/rounds for those you have."
    )


def _shown(conn: psycopg.Connection[Any], house: House, found: Round) -> dict[str, Any]:
    return as_its_owner_sees(found, house.shelf.version(conn, found.paytable_version_id))
