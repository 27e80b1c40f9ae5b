"""Faults of the program, put on record by their kind and places alone: an error's text may hold anything."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Final

import psycopg
import structlog

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.errors import ServiceError, places_of

RECORDED_MAX: Final = 10
"""How many faults a process puts on record within `RECORDED_SECONDS`; the next one that is says how many were not."""
RECORDED_SECONDS: Final = 60

log = structlog.get_logger("casino_brag.events")


class _Allowance:
    """How much of a process's faults may still be written; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: deque[float] = deque()
        self._left_out = 0

    def take(self, now: float) -> int | None:
        """How many were left out before this one; None when this one is left out too."""
        with self._lock:
            while self._written and now - self._written[0] >= RECORDED_SECONDS:
                self._written.popleft()
            if len(self._written) >= RECORDED_MAX:
                self._left_out += 1
                return None
            self._written.append(now)
            left_out, self._left_out = self._left_out, 0
            return left_out

    def give_back(self, left_out: int) -> None:
        """Notes that a fault was not written after all."""
        with self._lock:
            self._left_out += left_out + 1


_allowance = _Allowance()


def record_failure(connect: Connect, component: str, fault: BaseException) -> bool:
    """Logs an unforeseen error of a part of the program, and puts it on record; whether it was.

    It is written for itself, on a connection of its own, and only if it can be: whoever failed has to go on.
    """
    kind, places = type(fault).__name__, places_of(fault)
    log.error("unforeseen", component=component, kind=kind, at=places)
    if (left_out := _allowance.take(time.monotonic())) is None:
        return False
    try:
        with connect() as conn:
            entry = Entry(
                type=EntryType.PROGRAM_FAILED,
                occurred_at=clock(conn),
                actor=f"system:process-{os.getpid()}",
                payload={"component": component, "kind": kind, "at": places, "not_recorded": left_out},
            )
            conn.execute("SELECT program_failure_record(%s)", [entry.text()])
    except (ServiceError, psycopg.Error) as unwritten:
        log.warning("failure_not_recorded", kind=type(unwritten).__name__)
        _allowance.give_back(left_out)
        return False
    return True
