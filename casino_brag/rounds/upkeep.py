"""What has to be done now and then for a process to go on dealing: checks of integrity, and a record of both."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError
from casino_brag.rng import Event, EventKind, Generator
from casino_brag.rng.generator import INTEGRITY_SECONDS
from casino_brag.rounds.integrity import Integrity, check_integrity

FIRST_CHECK_SECONDS_MAX: Final = 10

_TYPES: Final = {
    EventKind.SELF_TESTED: EntryType.RNG_SELF_TESTED,
    EventKind.INSTANTIATED: EntryType.RNG_INSTANTIATED,
    EventKind.FORKED: EntryType.RNG_FORKED,
    EventKind.INTEGRITY_CHECKED: EntryType.RNG_INTEGRITY_CHECKED,
    EventKind.FAILED: EntryType.RNG_FAILED,
}


class Upkeep:
    """When a process last checked the program, and what it has yet to write down of that and of its generator."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._checked_at: float | None = None
        self._unwritten: list[Entry] = []

    def attend(self, conn: psycopg.Connection[Any], generator: Generator) -> None:
        """Checks integrity if a day has passed or the process is new, and puts on record what there is to record.

        A failed check stops the generator for good.  One thread does it.  Others wait for a process's first check,
        so that nothing is dealt before it, and for no other.  Raises `ServiceError`: busy, when they waited too long.
        """
        if self._process != os.getpid():
            self._begin()  # a fork may have come while a thread held the lock, which is not there to let it go
        if not (generator.events_waiting or self._unwritten or self._is_due()):
            return
        first = self._checked_at is None
        if self._lock.acquire(timeout=FIRST_CHECK_SECONDS_MAX if first else 0):
            try:
                self._attend(conn, generator)
            finally:
                self._lock.release()
        elif first:
            raise ServiceError(Code.BUSY, "The program is being checked. Send the same request again.")

    def _is_due(self) -> bool:
        return self._checked_at is None or time.monotonic() - self._checked_at > INTEGRITY_SECONDS

    def _attend(self, conn: psycopg.Connection[Any], generator: Generator) -> None:
        # What cannot be written now is kept, and written the next time; it is checked once all the same.
        if self._is_due():
            result = check_integrity(conn)
            if result.problems:
                generator.fail(" ".join(result.problems))
            self._unwritten.append(integrity_entry(conn, result, actor=f"system:process-{os.getpid()}"))
            self._checked_at = time.monotonic()
        if generator.events_waiting:
            now = clock(conn)
            self._unwritten += [_entry(event, now) for event in generator.take_events()]
        record(conn, self._unwritten)
        self._unwritten = []


def check_now(
    conn: psycopg.Connection[Any], generator: Generator, *, actor: str
) -> tuple[Integrity, datetime]:
    """Checks integrity because somebody asked, on record; what came of it, and when.

    A failed check stops the generator for good.  What stopped it before is among the problems where nothing else is.
    """
    result = check_integrity(conn)
    if result.problems:
        generator.fail(" ".join(result.problems))
    entry = integrity_entry(conn, result, actor=actor)
    record(conn, [entry])
    failure = generator.failure
    problems = result.problems or (() if failure is None else (failure,))
    return replace(result, problems=problems), entry.occurred_at


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


def _entry(event: Event, now: datetime) -> Entry:
    return Entry(
        type=_TYPES[event.kind],
        occurred_at=now,
        actor=f"system:process-{event.detail['process']}",
        payload=event.detail,
    )
