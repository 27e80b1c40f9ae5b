"""What a verification of the log finds wrong, and what it counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

NAMED_MAX: Final = 20
"""Findings that are told one by one; the others are counted."""


class Wrong(StrEnum):
    """What is wrong."""

    ENTRY_ALTERED = "entry_altered"
    """An entry's bytes are not those that were sealed."""
    COLUMNS_ALTERED = "columns_altered"
    """An entry's columns are not what its bytes say, or its bytes are not written as entries are."""
    ENTRY_MISSING = "entry_missing"
    """An entry was sealed and is not there any more."""
    ENTRY_TWICE = "entry_twice"
    """An entry is there twice, or has two places in the tree."""
    ENTRY_UNSEALED = "entry_unsealed"
    """An entry has no place in the tree, although the sealer went past it."""
    ENTRY_LATE = "entry_late"
    """An entry claims to be older than entries that were sealed long before it."""
    LEAF_MISSING = "leaf_missing"
    """The leaves are not numbered without a gap."""
    NODE_ALTERED = "node_altered"
    """A hash that is kept of a part of the tree is missing, or is not that of its leaves."""
    ROOT_DIFFERS = "root_differs"
    """A checkpoint is not that of the leaves: one of these was altered, put elsewhere or put in, or it was forged."""
    CHECKPOINT_FORGED = "checkpoint_forged"
    """A checkpoint is not signed by a key of the log, or says something else than the database says of it."""
    CHECKPOINT_MISSING = "checkpoint_missing"
    """A checkpoint that was published is not in the database."""
    RECORDS_OLDER = "records_older"
    """A published checkpoint is of more entries than there are: records were removed, or an older backup restored."""
    HISTORY_DIFFERS = "history_differs"
    """A published checkpoint is of other entries than those that are there: this is another history."""
    UNREADABLE = "unreadable"
    """A table, a row or a file is not of its form."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    `leaf_index` is the first leaf that it concerns; `entry_id` is given where it concerns one entry.
    """

    wrong: Wrong
    leaf_index: int | None
    entry_id: str | None
    detail: str

    @property
    def place(self) -> tuple[bool, int, str]:
        """By what findings are put in order: the leaf, and those of none last."""
        return self.leaf_index is None, self.leaf_index or 0, self.entry_id or ""

    def document(self) -> dict[str, Any]:
        """What `--json` says of it."""
        return {
            "wrong": self.wrong.value,
            "leaf_index": self.leaf_index,
            "entry_id": self.entry_id,
            "detail": self.detail,
        }

    def __str__(self) -> str:
        named = [] if self.leaf_index is None else [f"leaf {self.leaf_index}"]
        named += [] if self.entry_id is None else [f"entry {self.entry_id}"]
        return f"{', '.join(named)}: {self.detail}" if named else self.detail


@dataclass(slots=True)
class Findings:
    """How much is wrong, and the first of it."""

    count: int = 0
    named: list[Finding] = field(default_factory=list)

    def add(
        self, wrong: Wrong, detail: str, *, leaf_index: int | None = None, entry_id: str | None = None
    ) -> None:
        """Puts one more down."""
        self._keep(1, [Finding(wrong, leaf_index, entry_id, detail)])

    def merge(self, others: Findings) -> None:
        """Puts those down that somebody else found."""
        self._keep(others.count, others.named)

    def _keep(self, count: int, found: Iterable[Finding]) -> None:
        self.count += count
        self.named = sorted([*self.named, *found], key=lambda one: one.place)[:NAMED_MAX]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was looked at, and what of it is wrong.

    `entries` were read.  `waiting` of them have no place in the tree yet; `archived` leaves are of entries that were
    archived and let go.  `tree_size` and `root_hash` (hex) are those of the newest checkpoint that holds.
    """

    entries: int
    waiting: int
    leaves: int
    archived: int
    checkpoints: int
    published: int
    tree_size: int
    root_hash: str
    keys: list[str]
    wrong: int
    findings: list[Finding]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return self.wrong == 0

    def document(self) -> dict[str, Any]:
        """What `--json` says."""
        return asdict(self) | {"holds": self.holds, "findings": [one.document() for one in self.findings]}
