"""Versions of paytables: putting one in force, now or at a time to come, and retiring one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import standing
from casino_brag.catalogue.versions import VersionRow, VersionState, list_versions, version_row
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.pool import Connect
from casino_brag.errors import Code, ServiceError
from casino_brag.staff.acting import carry_out, reason_given
from casino_brag.staff.people import Person

AHEAD_MAX: Final = timedelta(days=366)
"""How far ahead a version can be scheduled."""

_LEFT: Final = "Who scheduled it is not of operations any more, or who approved it has retired."


def activate(
    conn: psycopg.Connection[Any],
    by: Person,
    game: str,
    version: int,
    *,
    reason: str,
    at: datetime | None = None,
) -> None:
    """Puts a version in force, or has that done at a time to come.  Open rounds are settled on their own version.

    `not_found`; `invalid` for a reason or a time that will not do; `forbidden` for who is not of operations now;
    `same_person` for who approved it; `wrong_state` for a version that is retired or in force already, and for a time
    where another is set.
    """
    reason = reason_given(reason)
    with conn.transaction():
        before = standing(conn, game)
        row = version_row(conn, game, version)
        entry = Entry(
            type=EntryType.PAYTABLE_ACTIVATED if at is None else EntryType.PAYTABLE_SCHEDULED,
            occurred_at=clock(conn),
            actor=by.actor,
            authoriser=_authoriser(row),
            reason=reason,
            before=before,
            after=_in_force(row) if at is None else _scheduled(row, _time_ahead(conn, at)),
        )
        if at is None:
            query, values = (
                "SELECT paytable_activate(%s, %s, %s, %s)",
                [game, version, by.staff_id, entry.text()],
            )
        else:
            query = "SELECT paytable_schedule_set(%s, %s, %s, %s, %s, %s)"
            values = [game, version, at, reason, by.staff_id, entry.text()]
        carry_out(
            conn,
            query,
            values,
            {
                Code.WRONG_STATE: _why_not(conn, row, at),
                Code.SAME_PERSON: "Who approved a version does not put it in force: somebody else has to.",
            },
        )


def unschedule(conn: psycopg.Connection[Any], by: Person, game: str, *, reason: str) -> None:
    """Calls off what was to come into force; `invalid`, `forbidden`, `wrong_state` where there is nothing of a game."""
    reason = reason_given(reason)
    with conn.transaction():
        standing(conn, game)
        row = _pending(conn, game)
        if row is None:
            raise ServiceError(Code.WRONG_STATE, f"No version of {game!a} is scheduled.")
        entry = _called_off(row, by.actor, reason, clock(conn))
        carry_out(conn, "SELECT paytable_schedule_end(%s, %s, %s)", [game, by.staff_id, entry.text()], {})


def retire(conn: psycopg.Connection[Any], by: Person, game: str, version: int, *, reason: str) -> None:
    """Has a version never put in force again.

    `not_found`; `invalid`; `forbidden` for who is not of operations now; `wrong_state` for one that is in force, is
    scheduled, or is retired.
    """
    reason = reason_given(reason)
    with conn.transaction():
        standing(conn, game)
        row = version_row(conn, game, version)
        named = {"game": game, "version": version, "digest": row.digest}
        entry = Entry(
            type=EntryType.PAYTABLE_RETIRED,
            occurred_at=clock(conn),
            actor=by.actor,
            reason=reason,
            before=named | {"state": row.state},
            after=named | {"state": VersionState.RETIRED},
        )
        carry_out(
            conn,
            "SELECT paytable_retire(%s, %s, %s, %s, %s)",
            [game, version, reason, by.staff_id, entry.text()],
            {
                Code.WRONG_STATE: f"Version {version} is {row.state}, and only one that is approved is retired."
            },
        )


def attend(connect: Connect) -> int:
    """Puts in force what is due; how much that was.  Any number of workers may do so at once: each is done once.

    What was scheduled or approved by somebody who has left is called off instead, and counts too.
    """
    with connect() as conn:
        due = conn.execute(
            "SELECT game FROM paytable_schedule WHERE activates_at <= now() ORDER BY activates_at"
        ).fetchall()
        return sum(_put_in_force_when_due(conn, game) for (game,) in due)


def _put_in_force_when_due(conn: psycopg.Connection[Any], game: str) -> bool:
    with conn.transaction():
        before = standing(conn, game)
        due = conn.execute(
            "SELECT reason FROM paytable_schedule WHERE game = %s AND activates_at <= now()", [game]
        ).fetchone()
        row = _pending(conn, game)
        if due is None or row is None:
            return False  # somebody else has done it, or called it off
        entry = Entry(
            type=EntryType.PAYTABLE_ACTIVATED,
            occurred_at=clock(conn),
            actor=f"staff:{row.scheduled_by}",
            authoriser=_authoriser(row),
            reason=due[0],
            before=before,
            after=_in_force(row),
        )
        called_off = _called_off(row, "system:jobs", _LEFT, entry.occurred_at)
        carry_out(
            conn,
            "SELECT paytable_activate_scheduled(%s, %s, %s)",
            [game, entry.text(), called_off.text()],
            {},
        )
    return True


def _pending(conn: psycopg.Connection[Any], game: str) -> VersionRow | None:
    scheduled = (row for row in list_versions(conn, game) if row.state is VersionState.SCHEDULED)
    return next(scheduled, None)


def _authoriser(row: VersionRow) -> str | None:
    return None if row.approved_by is None else f"staff:{row.approved_by}"


def _in_force(row: VersionRow) -> Mapping[str, Any]:
    return {"game": row.game, "state": "enabled", "version": row.version, "digest": row.digest}


def _scheduled(row: VersionRow, at: datetime) -> Mapping[str, Any]:
    return {
        "game": row.game,
        "version": row.version,
        "digest": row.digest,
        "state": VersionState.SCHEDULED,
        "activates_at": rfc3339(at),
    }


def _called_off(row: VersionRow, actor: str, reason: str, at: datetime) -> Entry:
    assert row.scheduled_at is not None
    return Entry(
        type=EntryType.PAYTABLE_UNSCHEDULED,
        occurred_at=at,
        actor=actor,
        reason=reason,
        before=_scheduled(row, row.scheduled_at),
        after={"game": row.game, "version": row.version, "state": VersionState.APPROVED},
    )


def _time_ahead(conn: psycopg.Connection[Any], at: datetime) -> datetime:
    now = clock(conn)
    if at.tzinfo is None or not now < at <= now + AHEAD_MAX:
        latest = rfc3339((now + AHEAD_MAX).astimezone(UTC))
        sentence = f"give a time with its offset from UTC, after {rfc3339(now)} and until {latest}"
        raise ServiceError(Code.INVALID, "Nothing can be scheduled for that time.", errors={"at": [sentence]})
    return at


def _why_not(conn: psycopg.Connection[Any], row: VersionRow, at: datetime | None) -> str:
    if row.state in (VersionState.RETIRED, VersionState.ACTIVE):
        return f"Version {row.version} is {row.state} already."
    pending = _pending(conn, row.game)
    if at is not None and pending is not None:
        return f"Version {pending.version} is scheduled already: call that off first."
    return f"Version {row.version} cannot be put in force as things are: read it anew."
