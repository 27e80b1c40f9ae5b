"""What a verification of the log checks of its entries, on a snapshot that somebody holds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit.findings import Findings, Wrong
from casino_brag.audit.kept import Kept
from casino_brag.audit.notes import VerifierKey
from casino_brag.audit.rows import Row, agrees, problems, rows, uuid_text
from casino_brag.audit.tree import leaf_hash
from casino_brag.ids import least_id_at

LATE_MICROSECONDS: Final = 3600 * 1_000_000
"""How much older than what was sealed before it an entry may claim to be."""
UNATTENDED_MICROSECONDS: Final = 300 * 1_000_000
"""How much older an entry without a leaf may claim to be than when all that could be seen had one."""
RETENTION: Final = timedelta(days=5 * 365)
"""Only what is older than this was ever let go."""

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Sealed:
    """The transactions that the sealer has been through: those before `end` that were not `under_way`.

    None that can be seen is numbered `future` or higher.  `attended_at`, in microseconds since 2000, is when nothing
    that could be seen was without a leaf.
    """

    end: int = 0
    under_way: frozenset[int] = frozenset()
    future: int = 1 << 64
    attended_at: int = -(1 << 63)

    @classmethod
    def parse(cls, snapshot: str, future: int = 1 << 64, attended_at: int = -(1 << 63)) -> Sealed:
        """Of what PostgreSQL writes of a snapshot.

        >>> sealed = Sealed.parse("10:20:10,14")
        >>> [xid in sealed for xid in (9, 10, 14, 19, 20)]
        [True, False, False, True, False]
        """
        _, end, under_way = snapshot.split(":")
        return cls(int(end), frozenset(map(int, filter(None, under_way.split(",")))), future, attended_at)

    def __contains__(self, xid: int) -> bool:
        return xid < self.end and xid not in self.under_way

    def has_passed(self, row: Row) -> bool:
        """Whether an entry without a leaf cannot be one that waits for the sealer."""
        xid = int.from_bytes(row.written_xid or b"", "big")
        is_old = (row.occurred_at or 0) < self.attended_at - UNATTENDED_MICROSECONDS
        return xid in self or xid >= self.future or is_old


NOTHING_SEALED: Final = Sealed()


@dataclass(frozen=True, slots=True)
class Facts:
    """What every check has to know.

    The keys whose signatures count; some checkpoints: their sizes, and times in microseconds since 2000; which
    transactions the sealer has been through; how many leaves there are; and the time.
    """

    keys: tuple[VerifierKey, ...]
    sizes: tuple[int, ...]
    times: tuple[int, ...]
    sealed: Sealed
    leaves: int
    now: datetime


@dataclass(slots=True)
class Stretch:
    """Of the entries sealed between two checkpoints: the earliest time that one claims, which one, and the latest."""

    earliest: int = 1 << 63
    leaf_index: int | None = None
    entry_id: bytes = b""
    latest: int = -(1 << 63)

    def merge(self, other: Stretch) -> None:
        """Takes another part of the same in."""
        if other.earliest < self.earliest:
            self.earliest, self.leaf_index, self.entry_id = other.earliest, other.leaf_index, other.entry_id
        self.latest = max(self.latest, other.latest)


@dataclass(slots=True)
class EntriesRead:
    """How many entries were read, and how many of them have a leaf; whether any was there twice."""

    entries: int = 0
    sealed: int = 0
    twice: bool = False
    stretches: dict[int, Stretch] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    def merge(self, other: EntriesRead) -> None:
        """Adds what somebody else has read.  Findings are merged by whoever holds them all."""
        self.entries += other.entries
        self.sealed += other.sealed
        self.twice |= other.twice
        for number, stretch in other.stretches.items():
            self.stretches.setdefault(number, Stretch()).merge(stretch)


# It is said of the leaves too: else those of all earlier entries would be read each time.
_BETWEEN: Final = """
    AND l.entry_id >= %(first)s AND (%(end)s::uuid IS NULL OR l.entry_id < %(end)s)
    WHERE e.entry_id >= %(first)s AND (%(end)s::uuid IS NULL OR e.entry_id < %(end)s) ORDER BY e.entry_id
"""


def read_entries(conn: Connection, facts: Facts, first: UUID, end: UUID | None) -> EntriesRead:
    """Checks every entry with an identifier from `first` to before `end`: bytes, hash, columns, and its leaf."""
    read = EntriesRead()
    low, high, stretch, last, waiting = 0, 0, Stretch(), b"", 0
    for read.entries, row in enumerate(rows(conn, _BETWEEN, first=first, end=end), start=1):
        entry_id, leaf_index, claimed = row.entry_id, row.leaf_index, row.occurred_at or 0
        if not in_order(row):
            add_wrong(read.findings, row, facts.sealed)
        if entry_id == last:
            read.twice = True
            read.findings.add(Wrong.ENTRY_TWICE, "it is there twice", **_named(row))
        last = entry_id
        if leaf_index is None:
            waiting += 1
            low, high, number = 0, 0, len(facts.sizes) + 1
            stretch = read.stretches.setdefault(number, Stretch())
        elif not low <= leaf_index < high:
            number = bisect_right(facts.sizes, leaf_index)
            low = facts.sizes[number - 1] if number else 0
            high = facts.sizes[number] if number < len(facts.sizes) else 1 << 63
            stretch = read.stretches.setdefault(number, Stretch())
        if claimed < stretch.earliest:
            stretch.earliest, stretch.leaf_index, stretch.entry_id = claimed, leaf_index, entry_id
        stretch.latest = max(stretch.latest, claimed)
    read.sealed = read.entries - waiting
    return read


def in_order(row: Row) -> bool:
    """Whether an entry is in order at first sight: its columns, its bytes and its leaf agree."""
    return agrees(row) and leaf_hash(row.content) == row.leaf_hash == row.sealed_hash


def add_wrong(findings: Findings, row: Row, sealed: Sealed = NOTHING_SEALED) -> None:
    """Names what is wrong with an entry that is not in order at first sight, if anything is."""
    is_bytes = isinstance(row.content, bytes)
    digest = leaf_hash(row.content) if is_bytes else b""
    told: list[tuple[Wrong, str]] = []
    if row.leaf_index is None:
        if sealed.has_passed(row):
            told.append((Wrong.ENTRY_UNSEALED, "it has no leaf, and the sealer will not come to it any more"))
    elif digest != row.sealed_hash:
        told.append((Wrong.ENTRY_ALTERED, "its bytes are not those that were sealed"))
    if digest != row.leaf_hash:
        told.append((Wrong.COLUMNS_ALTERED, "leaf_hash is not that of its bytes"))
    told += [(Wrong.COLUMNS_ALTERED, problem) for problem in problems(row)]
    if told:
        findings.add(told[0][0], "; ".join(words for _, words in told), **_named(row))


def _named(row: Row) -> dict[str, Any]:
    is_uuid = isinstance(row.entry_id, bytes) and len(row.entry_id) == 16
    return {"leaf_index": row.leaf_index, "entry_id": uuid_text(row.entry_id) if is_uuid else None}


def add_late(findings: Findings, stretches: dict[int, Stretch], facts: Facts) -> None:
    """Names entries that claim to be more than an hour older than others that were sealed before them.

    Of those between two checkpoints one is named.  A backlog is sealed late too, and is no finding: what was sealed
    before it is older yet.
    """
    latest = -(1 << 63)
    for number, stretch in sorted(stretches.items()):
        if number:
            before = min(latest, facts.times[min(number, len(facts.times)) - 1]) if facts.times else latest
            if stretch.earliest < before - LATE_MICROSECONDS:
                findings.add(
                    Wrong.ENTRY_LATE,
                    "it claims to be more than an hour older than what was sealed before it",
                    leaf_index=stretch.leaf_index,
                    entry_id=uuid_text(stretch.entry_id),
                )
        latest = max(latest, stretch.latest)


def missing_entries(conn: Connection, facts: Facts, kept: Sequence[Kept], findings: Findings) -> int:
    """Names the leaves whose entry is not there; how many of them were archived and let go instead.

    Let go are months as a whole, from the beginning of the log on, and after five years: so nothing that is younger
    stands before them.  How old a leaf is, only a checkpoint shows that was published then.
    """
    archived = 0
    let_go: dict[str, bool] = {}
    old = min(_old_leaves(facts, kept), _first_young_leaf(conn, facts))
    with conn.cursor("missing") as cursor:
        cursor.execute(
            """
            SELECT l.leaf_index, l.entry_id::text, to_char(t.at, 'YYYY-MM-01'),
                t.at < %(since)s AND l.leaf_index < %(old)s
            FROM audit_leaf AS l CROSS JOIN LATERAL (SELECT to_timestamp(
                ('x' || substr(replace(l.entry_id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) AS at) AS t
            WHERE NOT EXISTS (SELECT FROM audit_entry AS e WHERE e.entry_id = l.entry_id) ORDER BY l.leaf_index
            """,
            {"since": facts.now - RETENTION, "old": old},
        )
        for leaf_index, entry_id, month, is_old in cursor:
            if is_old and month not in let_go:
                let_go[month] = not _has_entries(conn, month)
            if is_old and let_go[month]:
                archived += 1
            else:
                findings.add(
                    Wrong.ENTRY_MISSING,
                    "it was sealed, and is not there any more; that it was archived is not shown",
                    leaf_index=leaf_index,
                    entry_id=entry_id,
                )
    return archived


def _old_leaves(facts: Facts, kept: Sequence[Kept]) -> int:
    """Of how many leaves, from the first on, it was published so long ago that they may have been let go.

    A file in the directory of a day that is later than those of larger trees shows that these are not of their days.
    """
    before = (facts.now - RETENTION).date()
    days = ((one.size, one.day) for one in kept if one.day is not None)
    return max((size for size, _ in takewhile(lambda dated: dated[1] < before, days)), default=0)


def _first_young_leaf(conn: Connection, facts: Facts) -> int:
    """The first leaf whose entry is there and is not old enough to be let go; beyond all where there is none."""
    row = conn.execute(
        "SELECT min(l.leaf_index) FROM audit_leaf AS l JOIN audit_entry AS e USING (entry_id)"
        " WHERE e.occurred_at >= %s",
        [facts.now - RETENTION],
    ).fetchone()
    return 1 << 62 if row is None or row[0] is None else int(row[0])


def _has_entries(conn: Connection, month: str) -> bool:
    """Whether anything is left of a month: one that is let go is let go as a whole."""
    first = datetime.fromisoformat(month).replace(tzinfo=UTC)
    after = (first + timedelta(days=32)).replace(day=1)
    row = conn.execute(
        "SELECT EXISTS (SELECT FROM audit_entry WHERE entry_id >= %s AND entry_id < %s)",
        [least_id_at(first), least_id_at(after)],
    ).fetchone()
    return row is None or bool(row[0])
