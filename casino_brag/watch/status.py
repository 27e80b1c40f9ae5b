"""How live play stands: figures, evidence, cases and the course of each day, as one plain document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from casino_brag.catalogue.paytables import PaytableVersion, Shelf
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.instant import one_instant
from casino_brag.watch.alerts import told
from casino_brag.watch.bands import Sums
from casino_brag.watch.cases import CaseState, cases
from casino_brag.watch.checking import evidence_of
from casino_brag.watch.figures import SUMS, compared, dealt_in, figures, sums_of, theories

_DAYS: Final = f"""
    SELECT b.wager, b.currency, b.day, {SUMS} FROM rtp_bucket AS b
    WHERE b.paytable_version_id = %s AND b.play = 'real' AND b.day BETWEEN %s AND %s
    GROUP BY b.wager, b.currency, b.day HAVING sum(b.rounds) > 0 ORDER BY b.wager, b.currency, b.day
"""  # noqa: S608 - no value is in the text


def status(
    conn: psycopg.Connection[Any],
    *,
    game: str | None = None,
    since: date | None = None,
    until: date | None = None,
) -> dict[str, Any]:
    """How live play stands, of one game or of all, from one day (UTC) to another, both included.

    Without `since` from the beginning, without `until` up to today.  Real play that was no test; sums in minor units.
    ``behind_leaves`` is how many entries of the log have not been added up yet.  ``evidence`` is of the time since
    it last began anew, whatever days are asked for.
    """
    with one_instant(conn):
        shelf, now = Shelf(), clock(conn)
        first, last = since or date.min, until or now.astimezone(UTC).date()
        with conn.cursor(row_factory=dict_row) as cursor:
            versions = cursor.execute(
                """
                SELECT v.version_id, v.version_id = g.active_version_id AS active,
                    coalesce(closure_of(NULL, v.game, v.version_id), g.state) AS state
                FROM paytable_version AS v JOIN game AS g USING (game)
                WHERE (%(game)s::text IS NULL OR v.game = %(game)s) AND (v.version_id = g.active_version_id
                    OR EXISTS (SELECT FROM rtp_bucket AS b WHERE b.paytable_version_id = v.version_id))
                ORDER BY v.game, v.version
                """,
                {"game": game},
            ).fetchall()
        return {
            "as_of": rfc3339(now),
            "since": None if since is None else since.isoformat(),
            "until": last.isoformat(),
            **_behind(conn),
            "versions": [
                _version(conn, shelf.version(conn, row["version_id"]), first, last)
                | {"active": row["active"], "state": row["state"]}
                for row in versions
            ],
            "cases": [case.document() for case in cases(conn, game=game) if case.state != CaseState.CLOSED],
            "last_check": _last_check(conn),
        }


def _behind(conn: psycopg.Connection[Any]) -> dict[str, Any]:
    """How many entries are not added up yet, and of when the first of them is."""
    row = conn.execute(
        """
        SELECT (SELECT coalesce(max(leaf_index) + 1, 0) FROM audit_leaf) - c.next_leaf,
            (SELECT e.occurred_at FROM audit_entry AS e WHERE e.entry_id = (
                SELECT l.entry_id FROM audit_leaf AS l WHERE l.leaf_index = c.next_leaf))
        FROM rtp_cursor AS c
        """
    ).fetchone()
    assert row is not None
    return {"behind_leaves": row[0], "behind_since": None if row[1] is None else rfc3339(row[1])}


def _last_check(conn: psycopg.Connection[Any]) -> dict[str, Any] | None:
    row = conn.execute(
        "SELECT check_id, day, made_at FROM rtp_check WHERE scheduled ORDER BY day DESC LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    return {"check_id": str(row[0]), "day": row[1].isoformat(), "made_at": rfc3339(row[2])}


def _version(
    conn: psycopg.Connection[Any], version: PaytableVersion, since: date, until: date
) -> dict[str, Any]:
    return {
        "game": version.game,
        "version": version.version,
        "digest": version.digest,
        "evidence": told(evidence_of(conn, version.version_id)),
        "figures": figures(conn, version, since, until),
        "dealt": dealt_in(conn, version, since, until),
        "course": list(_course(conn, version, since, until)),
    }


def _course(
    conn: psycopg.Connection[Any], version: PaytableVersion, since: date, until: date
) -> Iterator[dict[str, Any]]:
    """By wager and currency, the figures of all days up to each day on which there was play: how they settle."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_DAYS, [version.version_id, since, until]).fetchall()
    so_far: dict[tuple[str, str], Sums] = defaultdict(Sums)
    for row in rows:
        of_day = sums_of(row)
        so_far[row["wager"], row["currency"]] += of_day
        yield {
            "wager": row["wager"],
            "currency": row["currency"],
            "day": row["day"].isoformat(),
            "rounds_of_day": of_day.rounds,
        } | compared(so_far[row["wager"], row["currency"]], theories(version.paytable)[row["wager"]])
