"""What the database holds of the tree: leaves, nodes, checkpoints and the keys that signed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from casino_brag.audit.notes import VerifierKey
from casino_brag.audit.tree import Hashes


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """What the tree was at one size, and the signed note that says so."""

    tree_size: int
    root_hash: bytes
    note: str
    made_at: datetime


_CHECKPOINT = "SELECT tree_size, root_hash, note, made_at FROM audit_checkpoint"


def stored_hashes(conn: psycopg.Connection[Any]) -> Hashes:
    """The tree of the database, for the functions of `casino_brag.audit.tree`."""

    def hashes(level: int, first: int, count: int) -> Sequence[bytes]:
        if level == 0:
            rows = conn.execute(
                "SELECT leaf_hash FROM audit_leaf WHERE leaf_index >= %s AND leaf_index < %s ORDER BY leaf_index",
                [first, first + count],
            )
        else:
            rows = conn.execute(
                "SELECT hash FROM audit_node WHERE level = %s AND node_index >= %s AND node_index < %s"
                " ORDER BY node_index",
                [level, first, first + count],
            )
        return [found for (found,) in rows]

    return hashes


def newest_checkpoint(conn: psycopg.Connection[Any]) -> StoredCheckpoint | None:
    """The checkpoint of the largest tree; None before the first."""
    return _checkpoint(conn, "ORDER BY tree_size DESC")


def checkpoint_of(conn: psycopg.Connection[Any], size: int) -> StoredCheckpoint | None:
    """The checkpoint of the tree of `size` leaves, if one was made."""
    return _checkpoint(conn, "WHERE tree_size = %s", size)


def first_checkpoint_covering(conn: psycopg.Connection[Any], leaf_index: int) -> StoredCheckpoint | None:
    """The checkpoint of the smallest tree that has the leaf; None while it waits for one."""
    return _checkpoint(conn, "WHERE tree_size > %s ORDER BY tree_size", leaf_index)


def _checkpoint(conn: psycopg.Connection[Any], which: str, *values: int) -> StoredCheckpoint | None:
    with conn.cursor(row_factory=class_row(StoredCheckpoint)) as cursor:
        return cursor.execute(f"{_CHECKPOINT} {which} LIMIT 1", values).fetchone()


def verifier_keys(conn: psycopg.Connection[Any]) -> list[VerifierKey]:
    """The keys that have signed checkpoints, in the order in which they were put on record."""
    rows = conn.execute("SELECT verifier_key FROM audit_key ORDER BY added_at, verifier_key")
    return [VerifierKey.parse(text) for (text,) in rows]
