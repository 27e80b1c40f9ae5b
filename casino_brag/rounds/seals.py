"""What is sealed under which key, and how it moves to the present one."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.db.clock import clock
from casino_brag.rounds.commitments import Latest, Series, renew
from casino_brag.rounds.house import House

BATCH: Final = 100


def sealed_by_key(conn: psycopg.Connection[Any]) -> list[tuple[str, str, int]]:
    """What is sealed and still to be opened: its kind, the key's id, how many."""
    rows: list[tuple[str, str, int]] = conn.execute(
        r"""
        SELECT kind, split_part(encode(sealed, 'escape'), '\000', 1) AS key_id, count(*) FROM (
            SELECT 'open rounds' AS kind, sealed_deal AS sealed FROM round WHERE state <> 'settled'
            UNION ALL SELECT 'commitments', sealed_seed FROM commitment WHERE ended_at IS NULL
            UNION ALL SELECT 'operators'' secrets', sealed_secret FROM operator_key WHERE retired_at IS NULL
        ) AS everything GROUP BY kind, key_id ORDER BY kind, key_id
        """
    ).fetchall()
    return rows


def renew_commitments(conn: psycopg.Connection[Any], house: House) -> int:
    """Replaces the commitments that no round will be dealt from any more, each revealed; how many there were.

    They wait under another key than the present one, for rules that were replaced, or since before the database
    restarted, and each would be replaced when its player comes back.  Those in play are left to their players'
    decisions.  Raises `RngUnavailable`.
    """
    renewed, after = 0, UUID(int=0)
    while rows := conn.execute(
        """
        SELECT latest.*, p.operator_id, c.player_id, c.mode, coalesce(game.active_version_id, c.paytable_version_id)
        FROM commitment AS c JOIN player AS p USING (player_id)
        LEFT JOIN game ON game.game = c.game AND game.state = 'enabled'
        CROSS JOIN LATERAL latest_commitment(c.player_id, c.game, c.mode) AS latest
        WHERE c.ended_at IS NULL AND c.round_id > %s AND latest.round_id = c.round_id AND NOT latest.in_play
        ORDER BY c.round_id LIMIT %s
        """,
        [after, BATCH],
    ).fetchall():
        waiting = []
        for row in rows:
            latest, (operator_id, player_id, mode, version_id) = Latest.from_columns(row)
            assert latest is not None
            after = latest.commitment.round_id
            if not latest.serves(house, version_id):
                version = house.shelf.version(conn, version_id)
                waiting.append(Series(operator_id, player_id, mode, version, latest))
        if waiting:
            renew(conn, house, waiting, clock(conn))
        renewed += len(waiting)
    return renewed
