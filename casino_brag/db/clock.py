"""The one clock that stamps everything: the database's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg


def clock(conn: psycopg.Connection[Any]) -> datetime:
    """The database's time, to the microsecond, in UTC."""
    row = conn.execute("SELECT now()").fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment


def rfc3339(moment: datetime) -> str:
    """A time in UTC, to the microsecond.

    >>> rfc3339(datetime(2026, 11, 30, 12, tzinfo=UTC))
    '2026-11-30T12:00:00.000000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
