"""How the random numbers are: the module of the process that is asked, and what all processes have put on record."""

from __future__ import annotations

import os
from typing import Any, Final

import psycopg

from casino_brag.db.clock import rfc3339
from casino_brag.rng import MODULE_DIGEST, PROTOCOL, EventKind, Generator

FAILURES_MAX: Final = 20

_EVENTS: Final = """
    SELECT e.type, count(*), max(e.occurred_at) FROM audit_entry AS e
    WHERE e.type IN ('rng.self_tested', 'rng.instantiated', 'rng.forked', 'rng.integrity_checked', 'rng.failed')
      AND e.occurred_at > now() - interval '24 hours' GROUP BY e.type
"""
_FAILURES: Final = """
    SELECT e.occurred_at, e.actor, e.payload ->> 'reason' FROM audit_entry AS e
    WHERE e.type = 'rng.failed' AND e.occurred_at > now() - interval '24 hours'
    ORDER BY e.occurred_at DESC LIMIT %s
"""


def rng_status(conn: psycopg.Connection[Any], generator: Generator) -> dict[str, Any]:
    """The module of this process, and the events that the processes put on record in the last 24 hours.

    Every process that deals tests its module before first use and once in 24 hours.  `failures` has the newest
    `FAILURES_MAX`, newest first.
    """
    counted = {kind: (count, last) for kind, count, last in conn.execute(_EVENTS)}
    events = {}
    for kind in EventKind:
        count, last = counted.get(f"rng.{kind}", (0, None))
        events[kind.value] = {"count": count, "last_at": None if last is None else rfc3339(last)}
    return {
        "module_digest": MODULE_DIGEST,
        "protocol": PROTOCOL,
        "process": os.getpid(),
        "state": generator.state.value,
        "failure": generator.failure,
        "events": events,
        "failures": [
            {"occurred_at": rfc3339(at), "actor": actor, "reason": reason}
            for at, actor, reason in conn.execute(_FAILURES, [FAILURES_MAX])
        ],
    }
