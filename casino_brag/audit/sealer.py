"""The sealer: gives committed entries their place in the tree, and signs what the tree is then.

One transaction a pass, so that whatever ends it leaves the tree as it was before or as it is after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import structlog

from casino_brag.audit.entry import Entry, EntryType
from casino_brag.audit.notes import Checkpoint, NoteError, SigningKey, opened, sign
from casino_brag.audit.publishing import Publication
from casino_brag.audit.records import StoredCheckpoint, newest_checkpoint, stored_hashes, verifier_keys
from casino_brag.audit.tree import Growth
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.errors import SetUpError

log = structlog.get_logger("casino_brag.audit")

AT_MOST: Final = 20_000
"""Entries of one pass: a fraction of a second's work."""


class LogBroken(Exception):
    """The tree in the database is not the one that was signed.  Nothing is signed on top of it."""


@dataclass(frozen=True, slots=True)
class Sealing:
    """What the log is sealed with, the present key first, and where its checkpoints are published."""

    keys: tuple[SigningKey, ...]
    publication: Publication

    def attend(self, connect: Connect) -> int:
        """Seals, and publishes what is due; how many entries it went through, as `seal` has it."""
        try:
            gone_through = seal(connect, self.keys)
        except LogBroken as broken:
            log.error("log_broken", problem=str(broken))
            raise
        with connect() as conn:
            self.publication.publish(conn, [key.verifier for key in self.keys])
        return gone_through


def signing_keys(text: str) -> tuple[SigningKey, ...]:
    """The keys of ``CASINO_BRAG_LOG_KEYS``, parted by commas: the present one first.  `SetUpError` names it."""
    try:
        keys = tuple(SigningKey.parse(part.strip()) for part in text.split(","))
    except NoteError as wrong:
        raise SetUpError(f"CASINO_BRAG_LOG_KEYS is a list of signing keys: {wrong}.") from None
    if len({key.name for key in keys}) > 1:
        raise SetUpError("CASINO_BRAG_LOG_KEYS holds keys of several names; all have that of the log.")
    if len(set(keys)) < len(keys):
        raise SetUpError("CASINO_BRAG_LOG_KEYS holds a key twice.")
    return keys


def seal(connect: Connect, keys: Sequence[SigningKey], *, at_most: int = AT_MOST) -> int:
    """Puts new entries into the tree, signed by all of `keys`; how many it went through.

    When that is `at_most`, there may be more.  0 while somebody else seals.  Raises `LogBroken`, and what the database
    raises; nothing has changed then.
    """
    with connect() as conn, conn.transaction():
        if not _call(conn, "audit_sealer_take()"):
            return 0
        _put_on_record(conn, keys)
        gone_through: int = _call(conn, "audit_order(%s)", at_most)
        _grow(conn, keys, at_most)
    return gone_through


def _call(conn: psycopg.Connection[Any], function: str, *values: Any) -> Any:
    row = conn.execute(f"SELECT {function}", values).fetchone()
    assert row is not None
    return row[0]


def _put_on_record(conn: psycopg.Connection[Any], keys: Sequence[SigningKey]) -> None:
    """Says in the log which keys sign it, before the first time they do."""
    known = verifier_keys(conn)
    for key in (key.verifier.text() for key in keys if key.verifier not in known):
        entry = Entry(
            type=EntryType.LOG_KEY_ADDED,
            occurred_at=clock(conn),
            actor="system:sealer",
            payload={"verifier_key": key},
        )
        _call(conn, "audit_key_add(%s, %s)", key, entry.text())


def _grow(conn: psycopg.Connection[Any], keys: Sequence[SigningKey], at_most: int) -> None:
    """Signs the tree with the leaves that are not in its newest checkpoint."""
    before = newest_checkpoint(conn)
    size = 0 if before is None else before.tree_size
    leaves = conn.execute(
        "SELECT leaf_hash FROM audit_leaf WHERE leaf_index >= %s ORDER BY leaf_index LIMIT %s",
        [size, at_most],
    ).fetchall()
    if not leaves:
        return
    growth = Growth(stored_hashes(conn), size)
    if before is not None:
        _must_be_signed(conn, before, Checkpoint(keys[0].name, size, growth.root()))
    growth.extend([leaf for (leaf,) in leaves])
    root = growth.root()
    note = sign(Checkpoint(keys[0].name, growth.size, root), keys)
    nodes = [list(column) for column in zip(*growth.nodes, strict=True)] or [[], [], []]
    if not _call(
        conn,
        "audit_checkpoint_add(%s, %s, %s, %s::smallint[], %s::bigint[], %s::bytea[])",
        growth.size,
        root,
        note,
        *nodes,
    ):
        raise LogBroken(f"There is a checkpoint of {growth.size} leaves or more already.")


def _must_be_signed(conn: psycopg.Connection[Any], before: StoredCheckpoint, found: Checkpoint) -> None:
    """Compares the tree that is to grow with the note that was signed of it."""
    try:
        signed, _ = opened(before.note, verifier_keys(conn))
    except NoteError as wrong:
        raise LogBroken(f"The checkpoint of {before.tree_size} leaves is broken: {wrong}.") from wrong
    if signed.origin != found.origin:
        raise LogBroken(f"The log is {signed.origin}, and the keys are those of {found.origin}.")
    if (signed.root, before.root_hash) != (found.root, found.root):
        raise LogBroken(f"The first {before.tree_size} leaves are not those that were signed.")
