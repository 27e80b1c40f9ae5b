"""Clocks: whether the database's went on as time did, and whether this machine's shows the same."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import rfc3339
from casino_brag.db.pool import Connect

APART_MAX: Final = timedelta(seconds=1)
"""What a clock may step, and what two may differ by, without its being an event."""
UNSURE_SECONDS: Final = 0.25
"""A look that took longer says too little of either clock, and is let pass."""
COMPARED_MAX: Final = timedelta(hours=1)
"""Looks further apart than this are not compared: a little drift adds up."""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
ACTOR: Final = "system:clock"


@dataclass(frozen=True, slots=True)
class Look:
    """What the clocks showed at one instant: the machine's time since its start, its clock, and the database's."""

    uptime: timedelta
    machine_at: datetime
    database_at: datetime

    @property
    def apart(self) -> bool:
        """Whether the two clocks show different times."""
        return abs(self.database_at - self.machine_at) > APART_MAX


@dataclass(frozen=True, slots=True)
class Before:
    """The machine's last look, as the database keeps it; `looks` is its number."""

    looks: int
    uptime: timedelta
    database_at: datetime
    apart: bool


def look(conn: psycopg.Connection[Any]) -> Look | None:
    """The clocks now; None when the database took too long to say what time it is."""
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    machine_at = datetime.now(UTC)
    row = conn.execute("SELECT clock_timestamp()").fetchone()
    took = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    assert row is not None
    if took > UNSURE_SECONDS:
        return None
    half = timedelta(seconds=took / 2)
    return Look(timedelta(seconds=began) + half, machine_at + half, row[0])


def attend(connect: Connect) -> int:
    """Looks at the clocks, compares them with the machine's last look, and puts on record what is odd; how much.

    A machine's processes have one series of looks, which its rebooting ends; each oddity is recorded once for a
    machine, whichever process sees it.
    """
    with connect() as conn:
        machine = _BOOT_ID.read_text(encoding="ascii").strip()
        before = _before(conn, machine)
        now = look(conn)
        if now is None:
            return 0
        found = list(_oddities(before, now))
        row = conn.execute(
            "SELECT clock_look_keep(%s, %s, %s, %s, %s, %s)",
            [
                machine,
                0 if before is None else before.looks,
                now.uptime // timedelta(microseconds=1),
                now.database_at,
                now.apart,
                [entry.text() for entry in found],
            ],
        ).fetchone()
    assert row is not None
    return len(found) if row[0] else 0


def _before(conn: psycopg.Connection[Any], machine: str) -> Before | None:
    row = conn.execute(
        "SELECT looks, uptime_us, database_at, apart FROM clock_look WHERE machine = %s", [machine]
    ).fetchone()
    return None if row is None else Before(row[0], timedelta(microseconds=row[1]), row[2], row[3])


def _oddities(before: Before | None, now: Look) -> list[Entry]:
    found = []
    if before is not None and now.uptime - before.uptime <= COMPARED_MAX:
        expected = before.database_at + (now.uptime - before.uptime)
        if abs(now.database_at - expected) > APART_MAX:
            found.append(
                _entry(
                    EntryType.CLOCK_STEPPED,
                    now,
                    {"database_at": rfc3339(expected)},
                    {"database_at": rfc3339(now.database_at)},
                )
            )
    was_apart = before is not None and before.apart
    if now.apart != was_apart:
        found.append(_entry(EntryType.CLOCK_DRIFTED, now, {"apart": was_apart}, {"apart": now.apart}))
    return found


def _entry(kind: EntryType, now: Look, before: dict[str, Any], after: dict[str, Any]) -> Entry:
    return Entry(
        type=kind,
        occurred_at=now.database_at,
        actor=ACTOR,
        before=before,
        after=after,
        payload={
            "machine": socket.gethostname(),
            "machine_at": rfc3339(now.machine_at),
            "database_at": rfc3339(now.database_at),
        },
    )
