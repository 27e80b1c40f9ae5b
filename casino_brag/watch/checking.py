"""The daily check of live play against theory: once a day (UTC), whichever worker makes it, and whenever asked for.

Each version is looked at over the day, the last thirty days, since it was last put in force, and over its life.  The
tolerances are for one look; what raises alerts is the evidence (`casino_brag.watch.evidence`), which may be looked at
always.  A check is kept for good, and the log holds its SHA-256.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg
import rfc8785
from psycopg.types.json import Jsonb

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import PaytableVersion, Shelf
from casino_brag.db.clock import clock
from casino_brag.db.instant import one_instant
from casino_brag.db.pool import Connect
from casino_brag.ids import uuid7
from casino_brag.rounds.house import House
from casino_brag.watch.alerts import ACTOR, told
from casino_brag.watch.dealt import duplicates_p
from casino_brag.watch.evidence import Evidence
from casino_brag.watch.figures import Verdict, dealt_in, figures

GRACE_MINUTES: Final = 10
"""A day is checked so long after its end: every settlement of it has been committed by then."""
DAYS_MADE_UP: Final = 31
"""Of so many days checks are made up for, when no worker has run."""


def attend(connect: Connect, house: House) -> int:
    """Makes the check that is due, the oldest first, if any is and the day is added up; 1 when it made one."""
    with connect() as conn:
        day = _due(conn)
        if day is None:
            return 0
        made = check(conn, house.shelf, day, actor=ACTOR, scheduled=True)
    return int(made is not None)


def _due(conn: psycopg.Connection[Any]) -> date | None:
    """The day whose check comes next, once it is over and all of it is added up."""
    row = conn.execute(
        """
        SELECT (now() AT TIME ZONE 'UTC' - make_interval(mins => %s))::date - 1,
            (SELECT max(day) FROM rtp_check WHERE scheduled),
            (SELECT (attended_at AT TIME ZONE 'UTC')::date FROM audit_sealing),
            (SELECT (e.occurred_at AT TIME ZONE 'UTC')::date FROM audit_entry AS e WHERE e.entry_id = (
                SELECT l.entry_id FROM audit_leaf AS l WHERE l.leaf_index = c.next_leaf))
        FROM rtp_cursor AS c
        """,
        [GRACE_MINUTES],
    ).fetchone()
    assert row is not None
    over, checked, ordered_on, next_is_of = row
    day: date = max(checked + timedelta(1), over - timedelta(DAYS_MADE_UP - 1)) if checked else over
    added_up = ordered_on > day and (next_is_of is None or next_is_of > day)
    return day if day <= over and added_up else None


def check(
    conn: psycopg.Connection[Any], shelf: Shelf, day: date, *, actor: str, scheduled: bool = False
) -> Mapping[str, Any] | None:
    """Makes a check of all days up to `day`, on record; its result, or None where the day's was made already."""
    with one_instant(conn):
        result: dict[str, Any] = {
            "day": day.isoformat(),
            "versions": [
                _version(conn, shelf.version(conn, version_id), day) for version_id in _versions(conn, day)
            ],
            "duplicate_deals": duplicate_deals(conn, day),
        }
    check_id = uuid7()
    entry = Entry(
        type=EntryType.RTP_CHECKED,
        occurred_at=clock(conn),
        actor=actor,
        payload={
            "check_id": check_id,
            "day": day.isoformat(),
            "scheduled": scheduled,
            "result_sha256": sha256(rfc8785.dumps(result)).hexdigest(),
            "outside_99": list(_outside(result)),
        },
    )
    row = conn.execute(
        "SELECT rtp_check_add(%s, %s, %s, %s, %s)", [check_id, day, scheduled, Jsonb(result), entry.text()]
    ).fetchone()
    return result if row == (True,) else None


def _versions(conn: psycopg.Connection[Any], day: date) -> list[UUID]:
    """The versions that were played until then, and those in force."""
    rows = conn.execute(
        "SELECT v.version_id FROM paytable_version AS v"
        " WHERE EXISTS (SELECT FROM rtp_bucket AS b WHERE b.paytable_version_id = v.version_id AND b.day <= %s)"
        " OR EXISTS (SELECT FROM game AS g WHERE g.active_version_id = v.version_id)"
        " ORDER BY v.game, v.version",
        [day],
    ).fetchall()
    return [version_id for (version_id,) in rows]


def _version(conn: psycopg.Connection[Any], version: PaytableVersion, day: date) -> dict[str, Any]:
    windows = {
        "day": day,
        "30 days": day - timedelta(29),
        "since activation": min(day, _activated_on(conn, version)),
        "life": date.min,
    }
    return {
        "game": version.game,
        "version": version.version,
        "digest": version.digest,
        "evidence": told(evidence_of(conn, version.version_id)),
        "windows": [
            {
                "window": window,
                "since": None if since == date.min else since.isoformat(),
                "figures": figures(conn, version, since, day),
                "dealt": dealt_in(conn, version, since, day),
            }
            for window, since in windows.items()
        ],
    }


def _activated_on(conn: psycopg.Connection[Any], version: PaytableVersion) -> date:
    """When the version was last put in force."""
    row = conn.execute(
        "SELECT (coalesce((SELECT max(e.occurred_at) FROM audit_entry AS e WHERE e.type = 'paytable.activated'"
        " AND e.after ->> 'game' = v.game AND e.after ->> 'digest' = v.digest), v.published_at)"
        " AT TIME ZONE 'UTC')::date FROM paytable_version AS v WHERE v.version_id = %s",
        [version.version_id],
    ).fetchone()
    assert row is not None
    day: date = row[0]
    return day


def evidence_of(conn: psycopg.Connection[Any], version_id: UUID) -> Evidence:
    """The evidence against a version, as it stands."""
    row = conn.execute(
        "SELECT state FROM rtp_evidence WHERE paytable_version_id = %s", [version_id]
    ).fetchone()
    return Evidence.none() if row is None else Evidence.from_document(row[0])


def duplicate_deals(conn: psycopg.Connection[Any], day: date) -> dict[str, Any]:
    """How many pairs of a day's deals, of all versions and kinds of play, are equal in every card and place."""
    parts = conn.execute("SELECT deal_indexes FROM rtp_deals WHERE day = %s", [day]).fetchall()
    deals = np.concatenate(
        [np.array(part, dtype=np.int64) for (part,) in parts] or [np.zeros(0, dtype=np.int64)]
    )
    _, counts = np.unique(deals, return_counts=True)
    pairs = int((counts * (counts - 1) // 2).sum())
    p = f"{duplicates_p(pairs, len(deals)):.6f}" if len(deals) > 1 else None
    return {"deals": len(deals), "pairs": pairs, "p": p}


def _outside(result: Mapping[str, Any]) -> Iterator[str]:
    """What missed its tolerance of 99 %, given cards and decisions, in words."""
    for version in result["versions"]:
        for window in version["windows"]:
            for figure in window["figures"]:
                if figure["verdict"] == Verdict.OUTSIDE_99:
                    whose = "" if figure["value"] is None else f" {figure['value']}"
                    yield (
                        f"{version['game']} {version['version']}, {window['window']}, {figure['by']}{whose}:"
                        f" {figure['wager']} in {figure['currency']}"
                    )
