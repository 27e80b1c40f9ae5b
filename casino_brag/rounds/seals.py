"""What is sealed under which key, and how it moves to the present one."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.db.clock import clock
from casino_brag.rounds.commitments import Latest, Series, renew
from casino_brag.rounds.house import House
from casino_brag.sealing import SealBroken

BATCH: Final = 100


def sealed_by_key(conn: psycopg.Connection[Any]) -> list[tuple[str, str, int]]:
    """What is sealed and still to be opened: its kind, the key's id, how many."""
    rows: list[tuple[str, str, int]] = conn.execute(
        r"""
        SELECT kind, split_part(encode(sealed, 'escape'), '\000', 1) AS key_id, count(*) FROM (
            SELECT 'open rounds' AS kind, sealed_deal AS sealed FROM round WHERE state = 'awaiting_decision'
            UNION ALL SELECT 'commitments', sealed_seed FROM commitment WHERE ended_at IS NULL
            UNION ALL SELECT 'operators'' secrets', sealed_secret FROM operator_key WHERE retired_at IS NULL
            UNION ALL SELECT 'webhooks'' secrets', sealed_secret FROM webhook_endpoint
            UNION ALL SELECT 'second factors', sealed_secret FROM staff_access
        ) AS everything GROUP BY kind, key_id ORDER BY kind, key_id
        """
    ).fetchall()
    return rows


def renew_commitments(conn: psycopg.Connection[Any], house: House, *, give_up_lost: bool = False) -> int:
    """Replaces the commitments that wait under another key than the present one, or that no round will be dealt
    from any more, and reveals each; how many there were.

    Those in play are left to their players' decisions.  Raises `RngUnavailable`, and `SealBroken` where the keys do
    not open one; with `give_up_lost` that one is replaced and never revealed.
    """
    renewed, after = 0, UUID(int=0)
    while rows := conn.execute(
        """
        SELECT latest.*, p.operator_id, c.player_id, c.mode, coalesce(game.active_version_id, c.paytable_version_id)
        FROM (SELECT * FROM commitment WHERE ended_at IS NULL AND round_id > %s ORDER BY round_id LIMIT %s) AS c
        JOIN player AS p USING (player_id)
        LEFT JOIN game ON game.game = c.game AND game.state = 'enabled'
        CROSS JOIN LATERAL latest_commitment(c.player_id, c.game, c.mode) AS latest
        WHERE latest.round_id = c.round_id ORDER BY c.round_id
        """,
        [after, BATCH],
    ).fetchall():
        waiting = []
        for row in rows:
            latest, (operator_id, player_id, mode, version_id) = Latest.from_columns(row)
            assert latest is not None
            after = latest.commitment.round_id
            kept = latest.serves(version_id) and house.sealer.is_current(latest.commitment.sealed_seed)
            if not latest.in_play and not (kept and _opens(house, latest)):
                version = house.shelf.version(conn, version_id)
                waiting.append(Series(operator_id, player_id, mode, version, latest))
        if waiting:
            renewed += renew(conn, house, waiting, clock(conn), give_up_lost=give_up_lost)
    return renewed


def _opens(house: House, latest: Latest) -> bool:
    try:
        latest.commitment.open_seed(house.sealer)
    except SealBroken:
        return False
    return True
