"""What has to be done now and then for a process to go on dealing: checks of integrity, and a record of both."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Final

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError
from casino_brag.rng import Event, EventKind, Generator
from casino_brag.rounds.integrity import Integrity, check_integrity

INTEGRITY_SECONDS: Final = 24 * 60 * 60
FIRST_CHECK_SECONDS_MAX: Final = 10

_TYPES: Final = {
    EventKind.SELF_TESTED: EntryType.RNG_SELF_TESTED,
    EventKind.INSTANTIATED: EntryType.RNG_INSTANTIATED,
    EventKind.FORKED: EntryType.RNG_FORKED,
    EventKind.INTEGRITY_CHECKED: EntryType.RNG_INTEGRITY_CHECKED,
    EventKind.FAILED: EntryType.RNG_FAILED,
}


class Upkeep:
    """When a process last checked the program, and what of the module's events it has yet to write down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checked = (0, 0.0)  # by which process, and when on its clock
        self._unwritten: list[Event] = []

    def attend(self, conn: psycopg.Connection[Any], generator: Generator) -> None:
        """Checks integrity if a day has passed or the process is new, and puts on record what there is to record.

        A failed check stops the generator for good.  One thread does it.  Others wait for a process's first check,
        so that nothing is dealt before it, and for no other.  Raises `ServiceError`: busy, when they waited too long.
        """
        if not (generator.events_waiting or self._unwritten or self._is_due()):
            return
        first = self._checked[0] != os.getpid()
        if self._lock.acquire(timeout=FIRST_CHECK_SECONDS_MAX if first else 0):
            try:
                self._attend(conn, generator)
            finally:
                self._lock.release()
        elif first:
            raise ServiceError(Code.BUSY, "The program is being checked. Send the same request again.")

    def _is_due(self) -> bool:
        process, at = self._checked
        return process != os.getpid() or time.monotonic() - at > INTEGRITY_SECONDS

    def _attend(self, conn: psycopg.Connection[Any], generator: Generator) -> None:
        entries = []
        if self._is_due():
            result = check_integrity(conn)
            if result.problems:
                generator.fail(" ".join(result.problems))
            entries.append(integrity_entry(conn, result, actor=f"system:process-{os.getpid()}"))
        # What cannot be written now is kept and written the next time.
        self._unwritten += generator.take_events()
        entries += [_entry(conn, event) for event in self._unwritten]
        record(conn, entries)
        self._unwritten.clear()
        self._checked = (os.getpid(), time.monotonic())


def integrity_entry(conn: psycopg.Connection[Any], result: Integrity, *, actor: str) -> Entry:
    """What the audit log says of a check."""
    return Entry(
        type=EntryType.INTEGRITY_FAILED if result.problems else EntryType.INTEGRITY_CHECKED,
        occurred_at=clock(conn),
        actor=actor,
        payload={
            "manifest_digest": result.manifest_digest,
            "files": result.files,
            "paytables": result.paytables,
            "problems": list(result.problems),
        },
    )


def record(conn: psycopg.Connection[Any], entries: list[Entry]) -> None:
    """Writes entries of modules and checks into the audit log."""
    if entries:
        conn.execute("SELECT module_events_record(%s)", [[entry.text() for entry in entries]])


def _entry(conn: psycopg.Connection[Any], event: Event) -> Entry:
    return Entry(
        type=_TYPES[event.kind],
        occurred_at=clock(conn),
        actor=f"system:process-{event.detail['process']}",
        payload=event.detail,
    )
