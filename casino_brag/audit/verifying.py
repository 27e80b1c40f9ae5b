"""The whole log, verified: every entry, every place in the tree, and every checkpoint, also those kept elsewhere.

All of it is read in one snapshot, so that play goes on meanwhile, and nothing is written, so that a replica will do.
Several processes share the snapshot.  Each takes a piece of the work at a time, and holds a row of it in memory.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing.process import BaseProcess
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg

from casino_brag.audit.checks import (
    Connection,
    EntriesRead,
    Facts,
    Sealed,
    add_late,
    missing_entries,
    read_entries,
)
from casino_brag.audit.findings import Findings, Verification, Wrong
from casino_brag.audit.kept import Kept
from casino_brag.audit.notes import NoteError, VerifierKey
from casino_brag.audit.records import verifier_keys
from casino_brag.audit.tree_checks import CheckpointsRead, TreeRead, read_checkpoints, read_tree
from casino_brag.errors import SetUpError

PIECE: Final = 20_000
"""Leaves of a piece of work."""
WORKERS_WORTH: Final = 5 * PIECE
"""Leaves from which on other processes save more time than they take to start."""
CHECKPOINTS_SAMPLED: Final = 20_000
"""So many of the checkpoints part the entries into stretches, in which one's claim to its time is judged."""

Progress = Callable[[int, int], None]
"""Is told how many entries were read, and how many there are, about."""


def verify_log(
    url: str,
    *,
    kept: Sequence[Kept] = (),
    keys: Sequence[VerifierKey] = (),
    workers: int | None = None,
    progress: Progress = lambda done, of: None,
) -> Verification:
    """Verifies the log in the database at `url` against itself, and against the checkpoints that are `kept` elsewhere.

    `keys` are those whose signatures count; without any, those that the database names, which shows that checkpoints
    are signed alike, and not by whom.  `kept` has to be listed before the call: what is published later is of more
    entries than are looked at.  `workers` are processes, by default one a processor.  `SetUpError` when the database
    cannot be read.
    """
    try:
        with psycopg.connect(url, connect_timeout=5, autocommit=True) as conn, _snapshot(conn) as snapshot:
            facts = _facts(conn, keys)
            most = workers or len(os.sched_getaffinity(0))
            run = _Run(url, snapshot, 1 if facts.leaves < WORKERS_WORTH else most)
            return _verified(conn, facts, kept, run, progress)
    except psycopg.Error as failure:
        raise SetUpError(f"The database cannot be read: {str(failure).strip()}") from failure


@contextmanager
def _snapshot(conn: Connection, shared: str | None = None) -> Iterator[str]:
    """One state of the database, for reading only, until the block is left; that of another process if one is given."""
    conn.execute("SET timezone = 'UTC'")
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if shared is None:
            shared = _value(conn, "SELECT pg_export_snapshot()")
        else:
            conn.execute(f"SET TRANSACTION SNAPSHOT '{shared}'")
        yield shared


def _value(conn: Connection, query: LiteralString) -> Any:
    row = conn.execute(query).fetchone()
    return None if row is None else row[0]


_SEALED: Final = """
    SELECT sealed::text, pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
        (extract(epoch FROM attended_at - timestamptz '2000-01-01Z') * 1000000)::bigint
    FROM audit_sealing
    WHERE walked_to IS NULL AND system = (SELECT system_identifier FROM pg_control_system())
"""


def _facts(conn: Connection, keys: Sequence[VerifierKey]) -> Facts:
    with suppress(NoteError):  # then no signature is known, and every checkpoint is named
        keys = keys or verifier_keys(conn)
    sampled = conn.execute(
        """
        SELECT tree_size, (extract(epoch FROM made_at - timestamptz '2000-01-01Z') * 1000000)::bigint
        FROM (SELECT tree_size, made_at, row_number() OVER (ORDER BY tree_size) AS number,
                count(*) OVER () / %s + 1 AS step FROM audit_checkpoint) AS numbered
        WHERE number %% step = 0 AND isfinite(made_at) ORDER BY tree_size
        """,
        [CHECKPOINTS_SAMPLED],
    ).fetchall()
    return Facts(
        keys=tuple(keys),
        sizes=tuple(size for size, _ in sampled),
        times=tuple(time for _, time in sampled),
        sealed=Sealed.parse(*sealing) if (sealing := conn.execute(_SEALED).fetchone()) else Sealed(),
        leaves=_value(conn, "SELECT coalesce(max(leaf_index) + 1, 0) FROM audit_leaf"),
        now=_value(conn, "SELECT now()"),
    )


Piece = tuple[str, tuple[Any, ...]]
"""What is to be read, and which part of it."""

_READ: Final[dict[str, Callable[..., Any]]] = {
    "entries": read_entries,
    "tree": read_tree,
    "checkpoints": read_checkpoints,
}


def _verified(
    conn: Connection, facts: Facts, kept: Sequence[Kept], run: _Run, progress: Progress
) -> Verification:
    findings, entries, tree, checkpoints = Findings(), EntriesRead(), TreeRead(), 0
    for read in run.all(conn, facts, _pieces(conn, facts, kept)):
        match read:
            case EntriesRead():
                entries.merge(read)
                progress(entries.entries, facts.leaves)
            case TreeRead():
                tree = read
            case CheckpointsRead():
                checkpoints += read.checkpoints
        findings.merge(read if isinstance(read, Findings) else read.findings)
    add_late(findings, entries.stretches, facts)
    if nameless := _value(conn, "SELECT count(*) FROM audit_entry WHERE entry_id IS NULL"):
        findings.add(Wrong.UNREADABLE, f"{nameless} entries have no identifier")
    archived = 0
    if entries.sealed != facts.leaves or tree.leaves != facts.leaves or entries.twice:
        archived = missing_entries(conn, facts, kept, findings)
    return Verification(
        entries=entries.entries,
        waiting=entries.entries - entries.sealed,
        leaves=facts.leaves,
        archived=archived,
        checkpoints=checkpoints,
        published=len(kept),
        tree_size=tree.size,
        root_hash=tree.root.hex(),
        keys=[key.text() for key in facts.keys],
        wrong=findings.count,
        findings=findings.named,
    )


def _pieces(conn: Connection, facts: Facts, kept: Sequence[Kept]) -> Iterator[Piece]:
    """The work, in pieces; the longest of them first."""
    yield "tree", (tuple(kept),)
    step = 20 * PIECE
    for after in range(0, max(facts.leaves, 1), step):
        yield "checkpoints", (after, after + step if after + step < facts.leaves else None)
    # Entries are read in the order of their identifiers, which is about that of the leaves.
    rows = conn.execute(
        "SELECT DISTINCT entry_id FROM generate_series(%s::bigint, %s, %s) AS n"
        " JOIN audit_leaf ON leaf_index = n ORDER BY 1",
        [PIECE, facts.leaves - 1, PIECE],
    ).fetchall()
    bounds = [UUID(int=0), *(entry_id for (entry_id,) in rows), None]
    for first, end in pairwise(bounds):
        yield "entries", (first, end)


def _read(conn: Connection, facts: Facts, piece: Piece) -> Any:
    """What was read of a piece, or that it cannot be read."""
    what, part = piece
    try:
        with conn.transaction():
            return _READ[what](conn, facts, *part)
    except psycopg.OperationalError:
        raise
    # Tables are not as they were made.
    except (psycopg.Error, TypeError, ValueError, ArithmeticError) as failure:
        findings = Findings()
        findings.add(Wrong.UNREADABLE, f"the {what} cannot be read: {str(failure).strip()}")
        return findings


class _Run:
    """Who does the work: this process, or several others."""

    def __init__(self, url: str, snapshot: str, workers: int) -> None:
        self._url, self._snapshot, self._workers = url, snapshot, workers

    def all(self, conn: Connection, facts: Facts, pieces: Iterator[Piece]) -> Iterator[Any]:
        """Everything that is read, as it comes."""
        if self._workers == 1:
            for piece in pieces:
                yield _read(conn, facts, piece)
            return
        # They are forked, by a process of their own: a fork of this one would share its connection.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        begin = (self._url, self._snapshot, facts)
        with ProcessPoolExecutor(self._workers, context, _begin, begin) as executor:
            try:
                for done in as_completed([executor.submit(_read_here, piece) for piece in pieces]):
                    yield done.result()
            except BrokenExecutor as broken:
                raise SetUpError("A process of the verification was ended from outside.") from broken
            finally:
                executor.shutdown(wait=True, cancel_futures=True)


_here: list[Any] = []
"""In a process of a verification: its connection, and the facts."""


def _begin(url: str, snapshot: str, facts: Facts) -> None:
    # A terminal tells everybody, and one need say that it was told.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    conn = psycopg.connect(url, connect_timeout=5, autocommit=True)
    holding = _snapshot(conn, snapshot)
    holding.__enter__()
    _here[:] = [conn, facts, holding]


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _read_here(piece: Piece) -> Any:
    conn, facts, _ = _here
    return _read(conn, facts, piece)
