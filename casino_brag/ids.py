"""Identifiers: UUID version 7 (RFC 9562, section 5.7), so that they sort by the time they were made."""

from __future__ import annotations

import os
import time
from datetime import datetime
from uuid import UUID


def uuid7() -> UUID:
    """A new identifier: 48 bits of Unix milliseconds, then 74 bits from the operating system.

    >>> uuid7().version
    7
    """
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def least_id_at(moment: datetime) -> UUID:
    """The least identifier that can have been made at a time.

    >>> from datetime import UTC
    >>> least_id_at(datetime(2026, 11, 30, tzinfo=UTC))
    UUID('01a229c0-5400-0000-0000-000000000000')
    """
    return UUID(int=int(moment.timestamp() * 1000) << 80)
