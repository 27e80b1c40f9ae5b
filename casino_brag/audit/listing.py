"""The log as it is read by people: entries by what they are about, and checkpoints, newest first."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from casino_brag.db.clock import rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which entries: those of `since` until before `until`, and none of the type `without`.  A None does not matter."""

    entry_id: UUID | None = None
    type: str | None = None
    without: str | None = None
    actor: str | None = None
    operator_id: UUID | None = None
    player_id: UUID | None = None
    session_id: UUID | None = None
    round_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


_ENTRIES: Final = """
    WITH page AS MATERIALIZED (
        SELECT * FROM audit_entry AS e
        WHERE (%(entry_id)s::uuid IS NULL OR e.entry_id = %(entry_id)s)
          AND (%(type)s::text IS NULL OR e.type = %(type)s)
          AND (%(without)s::text IS NULL OR e.type <> %(without)s)
          AND (%(actor)s::text IS NULL OR e.actor = %(actor)s)
          AND (%(operator_id)s::uuid IS NULL OR e.operator_id = %(operator_id)s)
          AND (%(player_id)s::uuid IS NULL OR e.player_id = %(player_id)s)
          AND (%(session_id)s::uuid IS NULL OR e.session_id = %(session_id)s)
          AND (%(round_id)s::uuid IS NULL OR e.round_id = %(round_id)s)
          AND (%(since)s::timestamptz IS NULL OR e.occurred_at >= %(since)s)
          AND (%(until)s::timestamptz IS NULL OR e.occurred_at < %(until)s)
          AND (%(after)s::uuid IS NULL OR (e.occurred_at, e.entry_id) < (
            SELECT a.occurred_at, a.entry_id FROM audit_entry AS a WHERE a.entry_id = %(after)s))
        ORDER BY e.occurred_at DESC, e.entry_id DESC LIMIT %(limit)s
    )
    SELECT e.entry_id::text, e.type, e.occurred_at, e.actor, e.authoriser, e.operator_id::text, e.player_id::text,
        e.session_id::text, e.round_id::text, e.reason, e.before, e.after, e.payload, l.leaf_index, e.bytes
    FROM page AS e LEFT JOIN audit_leaf AS l ON l.entry_id = e.entry_id
    ORDER BY e.occurred_at DESC, e.entry_id DESC
"""


def list_entries(
    conn: psycopg.Connection[Any], wanted: Filter, *, after: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """Entries, newest first, from the one behind `after`; at most `limit`.

    `bytes_b64` is what is hashed; `leaf_index` its place in the tree, None while it has none.
    """
    # Its values become part of the statement, which is planned for what is asked: an index for each of them would be
    # in the way of every round.
    with psycopg.ClientCursor(conn, row_factory=dict_row) as cursor:
        rows = cursor.execute(_ENTRIES, asdict(wanted) | {"after": after, "limit": limit}).fetchall()
    return [
        row
        | {
            "occurred_at": rfc3339(row["occurred_at"]),
            "bytes_b64": b64encode(row.pop("bytes")).decode(),
        }
        for row in rows
    ]


def list_checkpoints(conn: psycopg.Connection[Any], *, after: int | None, limit: int) -> list[dict[str, Any]]:
    """Checkpoints, the largest first, from the one below a size of `after`; at most `limit`."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT tree_size, root_hash, made_at, note FROM audit_checkpoint"
            " WHERE tree_size < coalesce(%s, 9223372036854775807) ORDER BY tree_size DESC LIMIT %s",
            [after, limit],
        ).fetchall()
    return [
        row | {"root_hash": b64encode(row["root_hash"]).decode(), "made_at": rfc3339(row["made_at"])}
        for row in rows
    ]
