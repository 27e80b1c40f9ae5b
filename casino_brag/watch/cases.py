"""Cases: what an alert of live play led to, from its opening to its end, and by whom.

A case belongs to one paytable version, which has one at a time: further alerts join it.  When it is closed, the
evidence against the version begins anew; whether the game is opened again is a decision of its own (`games enable`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock, rfc3339
from casino_brag.errors import SetUpError

NOTE_LENGTH_MAX: Final = 500


class CaseState(StrEnum):
    """How far a case is."""

    OPEN = "open"
    """Nobody has found out yet."""
    INVESTIGATED = "investigated"
    """The cause is known, and what is to be done."""
    CLOSED = "closed"
    """It is done; this is final."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a case: who took it, when, to which state, and what was noted."""

    changed_at: datetime
    actor: str
    state: str
    note: str


@dataclass(frozen=True, slots=True)
class Case:
    """A case as it stands; `level` is the highest that its alerts reached."""

    case_id: UUID
    game: str
    version: int
    level: str
    state: str
    opened_at: datetime
    changed_at: datetime

    def document(self) -> dict[str, Any]:
        """The case as plain data."""
        return {
            "case_id": str(self.case_id),
            "game": self.game,
            "version": self.version,
            "level": self.level,
            "state": self.state,
            "opened_at": rfc3339(self.opened_at),
            "changed_at": rfc3339(self.changed_at),
        }


_CASES: Final = """
    SELECT c.case_id, v.game, v.version, c.level, c.state, c.opened_at, c.changed_at
    FROM rtp_case AS c JOIN paytable_version AS v ON v.version_id = c.paytable_version_id
"""


def cases(conn: psycopg.Connection[Any], *, game: str | None = None, limit: int = 200) -> list[Case]:
    """The newest cases, of one game or of all: those that are not closed first."""
    with conn.cursor(row_factory=class_row(Case)) as cursor:
        return cursor.execute(
            f"{_CASES} WHERE %s::text IS NULL OR v.game = %s"
            " ORDER BY c.state = 'closed', c.opened_at DESC, c.case_id LIMIT %s",
            [game, game, limit],
        ).fetchall()


def case_of(conn: psycopg.Connection[Any], case_id: UUID) -> Case:
    """One case; `SetUpError` where there is none of this id."""
    with conn.cursor(row_factory=class_row(Case)) as cursor:
        found = cursor.execute(f"{_CASES} WHERE c.case_id = %s", [case_id]).fetchone()
    if found is None:
        raise SetUpError(f"There is no case {case_id}. To see those there are: rtp cases.")
    return found


def changes_of(conn: psycopg.Connection[Any], case_id: UUID) -> list[Change]:
    """The steps of a case, in their order."""
    with conn.cursor(row_factory=class_row(Change)) as cursor:
        return cursor.execute(
            "SELECT changed_at, actor, state, note FROM rtp_case_change WHERE case_id = %s ORDER BY number",
            [case_id],
        ).fetchall()


def change_case(
    conn: psycopg.Connection[Any], case_id: UUID, state: CaseState, note: str, *, actor: str
) -> Case:
    """Takes a case to a state, or adds a note where it is there already; on record, with who did it.

    `SetUpError` for an unknown or closed case, a note of another length than 1 to `NOTE_LENGTH_MAX` characters, and
    where somebody else changed the case meanwhile.
    """
    if not 1 <= len(note) <= NOTE_LENGTH_MAX:
        raise SetUpError(f"A note has 1 to {NOTE_LENGTH_MAX} characters.")
    before = case_of(conn, case_id)
    if before.state == CaseState.CLOSED:
        raise SetUpError(f"Case {case_id} is closed, which is final. A new alert opens a new case.")
    named = {"case_id": case_id, "game": before.game, "version": before.version}
    entry = Entry(
        type=EntryType.RTP_CASE_CHANGED,
        occurred_at=clock(conn),
        actor=actor,
        reason=note,
        before=named | {"state": before.state},
        after=named | {"state": state.value},
    )
    row = conn.execute(
        "SELECT rtp_case_set(%s, %s, %s, %s, %s, %s)",
        [case_id, before.state, state.value, actor, note, entry.text()],
    ).fetchone()
    if row != (True,):
        raise SetUpError(f"Somebody else changed case {case_id} meanwhile. To see it: rtp case {case_id}.")
    return case_of(conn, case_id)
