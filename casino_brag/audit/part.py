"""A part of the log, verified: its entries, and that with all beside them they make the tree that was signed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import psycopg

from casino_brag.audit.checks import add_wrong, in_order
from casino_brag.audit.findings import Finding, Findings, Wrong
from casino_brag.audit.notes import NoteError
from casino_brag.audit.records import StoredCheckpoint, newest_checkpoint, stored_hashes, verifier_keys
from casino_brag.audit.rows import rows
from casino_brag.audit.tree import around, root_around
from casino_brag.audit.tree_checks import opened_checkpoint
from casino_brag.db.instant import one_instant
from casino_brag.errors import Code, ServiceError

LEAVES_MAX: Final = 100_000
"""The longest part: a few seconds' work."""
PIECE: Final = 10_000
"""Entries that one statement reads."""
AGAIN_SECONDS: Final = 5
"""When to ask again while another part is verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartVerified:
    """The leaves that were looked at, both ends included, the signed tree that they are of, and what is wrong.

    `next_leaf` is where to go on, None where nothing is left; `findings` are the first of all that is `wrong`.
    """

    first_leaf: int
    last_leaf: int
    next_leaf: int | None
    tree_size: int
    checkpoint: str
    wrong: int
    findings: list[Finding]

    def document(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self) | {
            "holds": self.wrong == 0,
            "findings": [finding.document() for finding in self.findings],
        }


def verify_part(conn: psycopg.Connection[Any], first_leaf: int, last_leaf: int | None) -> PartVerified | None:
    """Verifies entries by their leaves, `LEAVES_MAX` at most, in the newest signed tree; None where that lacks them.

    Up to `last_leaf`, or to the end of the tree.  An entry that was archived and let go is missing.  Signatures are
    judged by the keys that the database names: compare the checkpoint with what was published elsewhere.

    Raises `ServiceError`: busy, while another is verified.
    """
    with one_instant(conn):
        _must_be_alone(conn)
        newest = newest_checkpoint(conn)
        if newest is None or first_leaf >= newest.tree_size:
            return None
        wanted = newest.tree_size if last_leaf is None else min(newest.tree_size, last_leaf + 1)
        end = min(wanted, first_leaf + LEAVES_MAX)
        findings = Findings()
        for start in range(first_leaf, end, PIECE):
            _verify_entries(conn, start, min(start + PIECE, end), findings)
        _verify_tree(conn, first_leaf, end, newest, findings)
    return PartVerified(
        first_leaf=first_leaf,
        last_leaf=end - 1,
        next_leaf=end if end < wanted else None,
        tree_size=newest.tree_size,
        checkpoint=newest.note,
        wrong=findings.count,
        findings=findings.named,
    )


def _must_be_alone(conn: psycopg.Connection[Any]) -> None:
    """Takes the turn, which ends with the transaction.  It is one in all processes, as each part is much work."""
    row = conn.execute("SELECT pg_try_advisory_xact_lock(hashtext('casino_brag audit part'))").fetchone()
    if row != (True,):
        raise ServiceError(
            Code.BUSY,
            "Another part of the log is being verified. Send the same request again.",
            retry_after_seconds=AGAIN_SECONDS,
        )


def _verify_entries(conn: psycopg.Connection[Any], first: int, end: int, findings: Findings) -> None:
    found = set()
    for row in rows(conn, "WHERE l.leaf_index >= %(first)s AND l.leaf_index < %(end)s", first=first, end=end):
        assert row.leaf_index is not None
        if row.leaf_index in found:
            findings.add(Wrong.ENTRY_TWICE, "its entry is there twice", leaf_index=row.leaf_index)
        found.add(row.leaf_index)
        if not in_order(row):
            add_wrong(findings, row)
    for leaf_index in range(first, end):
        if leaf_index not in found:
            findings.add(Wrong.ENTRY_MISSING, "its entry is not there", leaf_index=leaf_index)


def _verify_tree(
    conn: psycopg.Connection[Any], first: int, end: int, newest: StoredCheckpoint, findings: Findings
) -> None:
    """Compares the root that these leaves make, with the hashes kept of all others, with the one that was signed."""
    hashes = stored_hashes(conn)
    try:
        signed = opened_checkpoint(newest.note, verifier_keys(conn))
    except NoteError as wrong:
        findings.add(Wrong.CHECKPOINT_FORGED, f"the newest checkpoint is not as it was signed: {wrong}")
        return
    try:
        left, right = around(hashes, first, end, signed.size)
        root = root_around(left, hashes(0, first, end - first), right, first, end, signed.size)
    except (LookupError, ValueError):
        findings.add(Wrong.LEAF_MISSING, "hashes are missing: the tree cannot be made", leaf_index=first)
        return
    if root != signed.root:
        detail = f"these leaves, and what is kept of the others, are not the {signed.size} that were signed"
        findings.add(Wrong.ROOT_DIFFERS, detail, leaf_index=first)
