"""What a verification of the log checks of its tree and of checkpoints, on a snapshot that somebody holds."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any, Final, TypeAlias

from casino_brag.audit.checks import Connection, Facts
from casino_brag.audit.findings import Findings, Wrong
from casino_brag.audit.kept import Kept
from casino_brag.audit.notes import Checkpoint, NoteError, VerifierKey, opened
from casino_brag.audit.tree import EMPTY_ROOT, Growth

LEAVES_AT_ONCE: Final = 5_000


@dataclass(slots=True)
class TreeRead:
    """How many leaves there are, and the newest checkpoint that is of them."""

    leaves: int = 0
    size: int = 0
    root: bytes = EMPTY_ROOT
    findings: Findings = field(default_factory=Findings)


@dataclass(frozen=True, slots=True)
class _Mark:
    """What the root of the first `size` leaves is said to be, by the database or by a file."""

    size: int
    root: bytes
    kept: Kept | None


_Node: TypeAlias = tuple[int, int, int, bytes]
"""A hash that is kept of complete subtrees: the size that completes it, by which they come; level, number and hash."""


def read_tree(conn: Connection, facts: Facts, kept: Sequence[Kept]) -> TreeRead:
    """Grows the tree from its leaves, and compares all that is said of it with what it then is."""
    with (
        closing(_stored_marks(conn)) as marks,
        closing(_stored_nodes(conn)) as nodes,
        conn.cursor("leaves") as leaves,
    ):
        tree = _Tree(facts, marks, nodes, kept)
        leaves.execute("SELECT leaf_index, leaf_hash FROM audit_leaf ORDER BY leaf_index", binary=True)
        while (rows := leaves.fetchmany(LEAVES_AT_ONCE)) and tree.add(rows):
            pass
        tree.end()
    return tree.read


class _Tree:
    """The tree as it grows, beside what the database and files say of it."""

    def __init__(
        self, facts: Facts, marks: Iterator[_Mark], nodes: Iterator[_Node], kept: Sequence[Kept]
    ) -> None:
        self.read = TreeRead()
        self._leaves = facts.leaves
        self._growth = Growth(lambda level, first, count: [], 0)
        self._marks = heapq.merge(marks, self._kept_marks(kept, facts.keys), key=lambda mark: mark.size)
        self._nodes = nodes
        self._mark, self._node = next(self._marks, None), next(self._nodes, None)
        self._stored = 0
        self._kept = 0
        self._differs = False
        self._gap = False
        self._compare_marks()

    def add(self, rows: Sequence[tuple[Any, Any]]) -> bool:
        """Takes the next leaves, each with its number; False when one of them is not the next."""
        growth, taken = self._growth, 0
        leaves = [leaf for _, (_, leaf) in takewhile(_is_next, enumerate(rows, growth.size))]
        while taken < len(leaves):
            until = len(leaves) if self._mark is None else taken + self._mark.size - growth.size
            growth.extend(leaves[taken:until])
            taken = until
            self._compare_nodes()
            self._compare_marks()
        if len(leaves) == len(rows):
            return True
        self._gap = True
        detail = "this leaf is missing, there twice or empty; the tree cannot be made from here on"
        self.read.findings.add(Wrong.LEAF_MISSING, detail, leaf_index=growth.size)
        return False

    def end(self) -> None:
        """Names what is said of a larger tree than there is."""
        self.read.leaves = self._growth.size
        for mark in chain([] if self._mark is None else [self._mark], self._marks):
            if self._gap and mark.size <= self._leaves:
                continue  # there are so many leaves, but not all of them can be reached
            where = f" in {mark.kept.path}" if mark.kept else ""
            self.read.findings.add(
                Wrong.RECORDS_OLDER if mark.kept else Wrong.ROOT_DIFFERS,
                f"the checkpoint of {mark.size} entries{where} is of more than there are ({self._growth.size}):"
                " records were removed, or an older backup was restored",
                leaf_index=self._growth.size,
            )
        if not self._gap:
            for node in chain([] if self._node is None else [self._node], self._nodes):
                self._add_node(node, "is of no leaves that there are")

    def _compare_marks(self) -> None:
        while self._mark is not None and self._mark.size <= self._growth.size:
            mark, self._mark = self._mark, next(self._marks, None)
            holds = mark.root == self._growth.root()
            if mark.kept is None:
                self._stored = mark.size
                if holds:
                    self.read.size, self.read.root = mark.size, mark.root
                elif not self._differs:
                    self._differs = True
                    self.read.findings.add(
                        Wrong.ROOT_DIFFERS,
                        f"one of the leaves {self.read.size} to {mark.size - 1} is another or elsewhere than when"
                        f" the checkpoint of {mark.size} entries was signed, or that checkpoint was forged",
                        leaf_index=self.read.size,
                    )
                else:
                    self.read.findings.count += 1  # as it must be, after the first
            elif not holds:
                self.read.findings.add(
                    Wrong.HISTORY_DIFFERS,
                    f"the first {mark.size} entries are not those of the checkpoint in {mark.kept.path}",
                    leaf_index=self._kept,  # what the database has signed may be of another history from there on
                )
            else:
                self._kept = mark.size
                if mark.size != self._stored:
                    self.read.findings.add(
                        Wrong.CHECKPOINT_MISSING,
                        f"the database lacks the checkpoint of {mark.size} entries in {mark.kept.path}",
                        leaf_index=mark.size - 1,
                    )

    def _compare_nodes(self) -> None:
        for level, number, made in self._growth.nodes:
            place = ((number + 1) << level, level, number)
            while self._node is not None and self._node[:3] < place:
                self._add_node(self._node, "is none that is kept")
                self._node = next(self._nodes, None)
            if self._node is not None and self._node[:3] == place:
                if self._node[3] != made:
                    self._add_node(self._node, "is not that of its leaves")
                self._node = next(self._nodes, None)
            elif self._mark is not None:  # a tree that has it was signed
                self._add_node((*place, made), "is missing")
        self._growth.nodes.clear()

    def _add_node(self, node: _Node, what: str) -> None:
        _, level, number, _ = node
        detail = f"the hash that is kept of the {1 << level} leaves from {number << level} on {what}"
        self.read.findings.add(Wrong.NODE_ALTERED, detail, leaf_index=number << level)

    def _kept_marks(self, kept: Sequence[Kept], keys: Sequence[VerifierKey]) -> Iterator[_Mark]:
        for one in kept:
            try:
                checkpoint = opened_checkpoint(one.note(), keys)
            except NoteError as wrong:
                self.read.findings.add(Wrong.CHECKPOINT_FORGED, f"{one.path}: {wrong}")
            else:
                yield _Mark(checkpoint.size, checkpoint.root, one)


def _is_next(place: tuple[int, tuple[Any, Any]]) -> bool:
    expected, (number, leaf) = place
    return bool(number == expected) and isinstance(leaf, bytes)


def _stored_marks(conn: Connection) -> Generator[_Mark]:
    with conn.cursor("marks") as cursor:
        cursor.execute("SELECT tree_size, root_hash FROM audit_checkpoint ORDER BY tree_size", binary=True)
        for size, root in cursor:
            yield _Mark(size, root, None)


def _stored_nodes(conn: Connection) -> Generator[_Node]:
    with conn.cursor("nodes") as cursor:
        cursor.execute(
            "SELECT (node_index + 1) << level, level, node_index, hash FROM audit_node ORDER BY 1, 2, 3",
            binary=True,
        )
        yield from cursor


@dataclass(slots=True)
class CheckpointsRead:
    """How many checkpoints there are."""

    checkpoints: int = 0
    findings: Findings = field(default_factory=Findings)


def read_checkpoints(conn: Connection, facts: Facts, after: int, last: int | None) -> CheckpointsRead:
    """Checks the notes of the checkpoints with more than `after` entries, up to `last`: who signed them, and what."""
    read = CheckpointsRead()
    with conn.cursor("notes") as cursor:
        cursor.execute(
            "SELECT tree_size, root_hash, note FROM audit_checkpoint WHERE tree_size > %(after)s"
            " AND (%(last)s::bigint IS NULL OR tree_size <= %(last)s) ORDER BY tree_size",
            {"after": after, "last": last},
        )
        for size, root, note in cursor:
            read.checkpoints += 1
            try:
                signed = opened_checkpoint(note, facts.keys)
                if (signed.size, signed.root) != (size, root):
                    raise NoteError("another size or root was signed")
            except NoteError as wrong:
                detail = f"the checkpoint of {size} entries is not as it was signed: {wrong}"
                read.findings.add(Wrong.CHECKPOINT_FORGED, detail, leaf_index=after if size < 1 else size - 1)
    return read


def opened_checkpoint(note: Any, keys: Sequence[VerifierKey]) -> Checkpoint:
    """The checkpoint of a note that one of `keys` has signed as the log's own; `NoteError` for any other."""
    if not isinstance(note, str):
        raise NoteError("this is no text")
    checkpoint, signers = opened(note, keys)
    if checkpoint.origin not in {key.name for key in signers}:
        raise NoteError(f"the keys that signed it are not those of the log {checkpoint.origin}")
    return checkpoint
