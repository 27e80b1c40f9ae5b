"""Proofs out of the tables: that entries are in a signed tree, and that one signed tree begins with another."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit.notes import opened
from casino_brag.audit.records import StoredCheckpoint, stored_hashes, verifier_keys
from casino_brag.audit.tree import consistency_proof, inclusion_proof


@dataclass(frozen=True, slots=True)
class Leaf:
    """An entry's bytes, and its place in the tree; None while it has none."""

    content: bytes
    leaf_index: int | None

    def is_in(self, checkpoint: StoredCheckpoint) -> bool:
        """Whether the checkpoint's tree has it."""
        return self.leaf_index is not None and self.leaf_index < checkpoint.tree_size


def leaves_of(
    conn: psycopg.Connection[Any], *, round_id: UUID | None = None, entry_id: UUID | None = None
) -> list[Leaf]:
    """The entries of a round, in their order, or one entry; empty where there are none."""
    with conn.cursor(row_factory=class_row(Leaf)) as cursor:
        return cursor.execute(
            "SELECT e.bytes AS content, l.leaf_index FROM audit_entry AS e LEFT JOIN audit_leaf AS l USING (entry_id)"
            " WHERE e.round_id = %s OR e.entry_id = %s ORDER BY l.leaf_index, e.entry_id",
            [round_id, entry_id],
        ).fetchall()


def inclusion(
    conn: psycopg.Connection[Any], leaves: Sequence[Leaf], checkpoint: StoredCheckpoint
) -> dict[str, Any]:
    """That entries are in the checkpoint's tree, which has to have all of them, as JSON shows it."""
    hashes = stored_hashes(conn)
    _, signers = opened(checkpoint.note, verifier_keys(conn))
    entries = []
    for leaf in leaves:
        assert leaf.leaf_index is not None
        proof = inclusion_proof(hashes, leaf.leaf_index, checkpoint.tree_size)
        entries.append(
            {
                "bytes_b64": b64encode(leaf.content).decode(),
                "leaf_index": leaf.leaf_index,
                "inclusion_proof": _texts(proof),
            }
        )
    return {
        "entries": entries,
        "tree_size": checkpoint.tree_size,
        "checkpoint": checkpoint.note,
        "verifier_key": signers[0].text(),
    }


def consistency(
    conn: psycopg.Connection[Any], old: StoredCheckpoint, new: StoredCheckpoint
) -> dict[str, Any]:
    """That the newer checkpoint's tree begins with the older one's, as JSON shows it."""
    proof = consistency_proof(stored_hashes(conn), old.tree_size, new.tree_size)
    return {"old": old.note, "new": new.note, "proof": _texts(proof)}


def _texts(hashes: Sequence[bytes]) -> list[str]:
    return [b64encode(one).decode() for one in hashes]
