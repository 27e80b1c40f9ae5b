"""A stretch of the log as files, which prove by themselves that they are of the log: for auditors, and for archives.

    manifest.json        what this is: the period asked for, the stretch, and size and SHA-256 of every other file.
                         Written last: an export without it was not finished.
    entries.csv          the entries by leaf_index, without a gap: leaf_index, the columns of the log, bytes (base64:
                         what is hashed), leaf_hash (hex: the entry's own) and sealed_hash (hex: that in the tree).  Of
                         an entry that was archived and let go before: leaf_index, entry_id and sealed_hash.  Texts
                         that a spreadsheet would take for a formula begin with an apostrophe.  With --format parquet
                         it is entries.parquet, of the same columns: bytes and hashes are binary, and nothing is
                         changed for spreadsheets.
    tree.json            first, end (the stretch is the leaves from `first` to before `end`), tree_size, and as base64
                         the hashes of the complete subtrees left and right of the stretch, with which its leaves make
                         the root of the tree of `tree_size`.
    checkpoint.txt       the signed checkpoint of `tree_size`: the first that covers the stretch.
    checkpoints.jsonl    the signed checkpoints within the stretch, each a JSON string on a line of its own.
    keys.txt             the keys that signed them, one a line.  Compare them with what was published elsewhere.

`verification/verify_log.py log DIRECTORY` checks all of it without this program.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final, Self

import psycopg

from casino_brag.audit.records import (
    StoredCheckpoint,
    first_checkpoint_covering,
    newest_checkpoint,
    stored_hashes,
    verifier_keys,
)
from casino_brag.audit.tree import around
from casino_brag.db.clock import rfc3339
from casino_brag.db.csv_text import csv_lines
from casino_brag.db.instant import one_instant
from casino_brag.errors import SetUpError

FORMAT: Final = "casino-brag-log-export-1"
PIECE: Final = 5_000
"""Entries that are held in memory."""

TEXTS: Final = (
    *("entry_id", "type", "occurred_at", "actor", "authoriser"),
    *("operator_id", "player_id", "session_id", "round_id", "reason", "before", "after", "payload"),
)

_ENTRIES: Final = """
    SELECT l.leaf_index, l.entry_id::text, e.type,
        to_char(e.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.actor, e.authoriser,
        e.operator_id::text, e.player_id::text, e.session_id::text, e.round_id::text, e.reason,
        e.before::text, e.after::text, e.payload::text, e.bytes, e.leaf_hash, l.leaf_hash
    FROM audit_leaf AS l LEFT JOIN audit_entry AS e ON e.entry_id = l.entry_id
    WHERE l.leaf_index >= %s AND l.leaf_index < %s ORDER BY l.leaf_index
"""

Progress = Callable[[int, int], None]
"""Is told how many entries were written, and how many there are."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The stretch that was exported: leaves from `first` to before `end`, of the tree of `tree_size`."""

    first: int
    end: int
    tree_size: int


def export_log(
    conn: psycopg.Connection[Any],
    directory: Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    form: str = "csv",
    progress: Progress = lambda done, of: None,
) -> Exported:
    """Writes the stretch of the log that has every entry from `since` to before `until`, in the files above.

    All of the log where neither is given.  Entries that are under no checkpoint yet are left out.  `form` is csv or
    parquet.  `SetUpError` when the directory has something in it, and when there is nothing to export.
    """
    entries: _CsvFile | _ParquetFile = _ParquetFile(directory) if form == "parquet" else _CsvFile(directory)
    _make(directory)
    with one_instant(conn):
        first, end, covering = _stretch(conn, since, until)
        with entries:
            for start in range(first, end, PIECE):
                rows = conn.execute(_ENTRIES, [start, min(start + PIECE, end)]).fetchall()
                entries.write(rows)
                progress(min(start + PIECE, end) - first, end - first)
        _write_tree(conn, directory, first, end, covering)
    exported = Exported(first, end, covering.tree_size)
    _write_manifest(directory, entries.name, since, until, exported)
    return exported


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise SetUpError(f"There is something in {directory}: name another directory, or empty it.")
    except OSError as failure:
        raise SetUpError(f"{directory} cannot be written: {failure.strerror}.") from failure


def _stretch(
    conn: psycopg.Connection[Any], since: datetime | None, until: datetime | None
) -> tuple[int, int, StoredCheckpoint]:
    newest = newest_checkpoint(conn)
    size = 0 if newest is None else newest.tree_size
    first, end = 0, size
    if since is not None or until is not None:
        row = conn.execute(
            "SELECT min(l.leaf_index), max(l.leaf_index) + 1"
            " FROM audit_entry AS e JOIN audit_leaf AS l USING (entry_id)"
            " WHERE e.occurred_at >= coalesce(%s::timestamptz, '-infinity')"
            " AND e.occurred_at < coalesce(%s::timestamptz, 'infinity')"
            " AND l.leaf_index < %s",
            [since, until, size],
        ).fetchone()
        least, after = row if row is not None and row[0] is not None else (0, 0)
        first = 0 if since is None else least
        end = size if until is None and after else after
    covering = first_checkpoint_covering(conn, end - 1) if end else None
    if covering is None:
        raise SetUpError("There is nothing to export: no entry of that time is under a checkpoint.")
    return first, end, covering


def _write_tree(
    conn: psycopg.Connection[Any], directory: Path, first: int, end: int, covering: StoredCheckpoint
) -> None:
    """Everything that proves the entries."""
    try:
        left, right = around(stored_hashes(conn), first, end, covering.tree_size)
    except LookupError as missing:
        raise SetUpError(
            f"The tree is not whole: {missing}. `casino-brag audit verify` tells more."
        ) from missing
    tree = {
        "first": first,
        "end": end,
        "tree_size": covering.tree_size,
        "left": [b64encode(one).decode() for one in left],
        "right": [b64encode(one).decode() for one in right],
    }
    (directory / "tree.json").write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    (directory / "checkpoint.txt").write_text(covering.note, encoding="utf-8")
    keys = "".join(f"{key.text()}\n" for key in verifier_keys(conn))
    (directory / "keys.txt").write_text(keys, encoding="utf-8")
    with (
        (directory / "checkpoints.jsonl").open("w", encoding="utf-8") as file,
        conn.cursor("checkpoints") as cursor,
    ):
        cursor.execute(
            "SELECT note FROM audit_checkpoint WHERE tree_size > %s AND tree_size <= %s ORDER BY tree_size",
            [first, end],
        )
        file.writelines(json.dumps(note, ensure_ascii=False) + "\n" for (note,) in cursor)


def _write_manifest(
    directory: Path, entries: str, since: datetime | None, until: datetime | None, exported: Exported
) -> None:
    files = {}
    for name in (entries, "tree.json", "checkpoint.txt", "checkpoints.jsonl", "keys.txt"):
        with (directory / name).open("rb") as file:
            files[name] = {"sha256": file_digest(file, "sha256").hexdigest(), "bytes": file.tell()}
    manifest = {
        "format": FORMAT,
        "from": None if since is None else rfc3339(since),
        "to": None if until is None else rfc3339(until),
        "first": exported.first,
        "end": exported.end,
        "tree_size": exported.tree_size,
        "files": files,
    }
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


Rows = Sequence[tuple[Any, ...]]


class _CsvFile:
    name = "entries.csv"

    def __init__(self, directory: Path) -> None:
        self._path = directory / self.name

    def __enter__(self) -> Self:
        self._file = self._path.open("w", encoding="utf-8", newline="")
        self._file.write(csv_lines([("leaf_index", *TEXTS, "bytes", "leaf_hash", "sealed_hash")]))
        return self

    def write(self, rows: Rows) -> None:
        self._file.write(
            csv_lines(
                (
                    *texts,
                    b64encode(entry or b"").decode(),
                    (leaf_hash or b"").hex(),
                    (sealed_hash or b"").hex(),
                )
                for *texts, entry, leaf_hash, sealed_hash in rows
            )
        )

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _ParquetFile:
    name = "entries.parquet"

    def __init__(self, directory: Path) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
            import pyarrow.parquet as pq  # noqa: PLC0415
        except ImportError:
            raise SetUpError(
                "Parquet needs the extra 'casino-brag[archive]': install it, or export CSV."
            ) from None
        self._pa, self._pq, self._path = pa, pq, directory / self.name
        self._schema = pa.schema(
            [
                pa.field("leaf_index", pa.int64(), nullable=False),
                *(pa.field(name, pa.string()) for name in TEXTS),
                *(pa.field(name, pa.binary()) for name in ("bytes", "leaf_hash", "sealed_hash")),
            ]
        )

    def __enter__(self) -> Self:
        self._writer = self._pq.ParquetWriter(self._path, self._schema, compression="zstd")
        return self

    def write(self, rows: Rows) -> None:
        columns = zip(*rows, strict=True)
        arrays = [
            self._pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_batch(self._pa.record_batch(arrays, schema=self._schema))

    def __exit__(self, *_: object) -> None:
        self._writer.close()
