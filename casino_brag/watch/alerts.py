"""What follows when the evidence against a version reaches a level: operators are told, a case is opened, and at the
highest level the version is closed, as the house has decided beforehand.
"""

from __future__ import annotations

from enum import StrEnum
from math import isinf, log
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.closures import ClosureState, Scope, close
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.db.clock import clock
from casino_brag.ids import uuid7
from casino_brag.watch.evidence import CHANCES, Evidence, Level

ACTOR: Final = "system:rtp watch"


class Suspension(StrEnum):
    """What the house does with a version whose evidence reaches `Level.SUSPEND`."""

    NONE = "none"
    """Nothing but the alert."""
    DRAIN = "drain"
    """It takes no new rounds; those that are open are decided as ever."""
    DISABLE = "disable"
    """Its open rounds wait as well."""


_CLOSES: Final = {Suspension.DRAIN: ClosureState.DRAINING, Suspension.DISABLE: ClosureState.DISABLED}


def is_alert(before: Evidence, now: Evidence) -> bool:
    """Whether the evidence has just reached a level at which somebody has to be told."""
    return now.level in (Level.ALERT, Level.SUSPEND) and now.level is not before.level


def raise_alert(
    conn: psycopg.Connection[Any], version: PaytableVersion, evidence: Evidence, suspension: Suspension
) -> None:
    """Puts an alert on record, with a case of its own unless the version has one open, and closes the version at
    `Level.SUSPEND` by the policy `suspension`; inside the transaction that found it.

    What operators are told names no sums: play of all operators is in them.
    """
    note = _note(version, evidence)
    named = {"game": version.game, "version": version.version, "digest": version.digest}
    alert = Entry(
        type=EntryType.RTP_ALERT,
        occurred_at=clock(conn),
        actor=ACTOR,
        reason=note,
        payload=named | told(evidence),
    )
    case_id, before = _open_case(conn, version)
    of_case = named | {"case_id": case_id}
    case = Entry(
        type=EntryType.RTP_CASE_OPENED if before is None else EntryType.RTP_CASE_CHANGED,
        occurred_at=alert.occurred_at,
        actor=ACTOR,
        reason=note,
        before=None if before is None else of_case | before,
        after=of_case | {"state": "open", "level": evidence.level.value},
        payload={"alert": alert.entry_id} | _sums(conn, version.version_id),
    )
    conn.execute(
        "SELECT rtp_alert(%s, %s, %s, %s, %s, %s, %s)",
        [case_id, version.version_id, evidence.level, ACTOR, note, alert.text(), case.text()],
    )
    if evidence.level is Level.SUSPEND and suspension is not Suspension.NONE:
        _close(conn, version, suspension, note)


def told(evidence: Evidence) -> dict[str, Any]:
    """The level and the figures behind it, as plain data: e-values by their decimal logarithms, the strongest first.

    >>> told(Evidence.none())
    {'level': 'none', 'chance': None, 'log10_e': '0.00', 'rounds': 0, 'impossible': 0, 'streams': {}}
    """
    streams = sorted(evidence.streams.items(), key=lambda stream: -stream[1])
    return {
        "level": evidence.level.value,
        "chance": _chance(evidence.level),
        "log10_e": _log10(evidence.log_e),
        "rounds": evidence.rounds,
        "impossible": evidence.impossible,
        "streams": {stream: _log10(log_e) for stream, log_e in streams},
    }


def _chance(level: Level) -> str | None:
    """The share of versions without a fault that ever reach a level, at the most, as a fraction."""
    return str(CHANCES[level]) if level in CHANCES else None


def _log10(log_e: float) -> str:
    return "infinite" if isinf(log_e) else f"{round(log_e / log(10), 2) + 0:.2f}"


def _note(version: PaytableVersion, evidence: Evidence) -> str:
    what = f"{version.game}, version {version.version}: level {evidence.level.value}"
    if evidence.impossible:
        return f"{what}. {evidence.impossible} of {evidence.rounds} rounds paid what no cards of the dealer's lead to."
    strongest = max(evidence.streams, key=lambda stream: evidence.streams[stream])
    return (
        f"{what} after {evidence.rounds} rounds, to which chance takes at most"
        f" {_chance(evidence.level)} of all versions. The strongest evidence is of: {strongest}."
    )


def _open_case(conn: psycopg.Connection[Any], version: PaytableVersion) -> tuple[UUID, dict[str, Any] | None]:
    """The version's case and how it stood, or the identifier that a new one gets."""
    row = conn.execute(
        "SELECT case_id, state, level FROM rtp_case WHERE paytable_version_id = %s AND state <> 'closed'",
        [version.version_id],
    ).fetchone()
    return (uuid7(), None) if row is None else (row[0], {"state": row[1], "level": row[2]})


def _sums(conn: psycopg.Connection[Any], version_id: UUID) -> dict[str, Any]:
    """What the version has taken and paid in real play, by wager and currency, in minor units."""
    rows = conn.execute(
        "SELECT wager, currency, sum(rounds), sum(staked_minor), sum(returned_minor) FROM rtp_bucket"
        " WHERE paytable_version_id = %s AND play = 'real' GROUP BY wager, currency ORDER BY wager, currency",
        [version_id],
    ).fetchall()
    return {
        "real_play": [
            {
                "wager": wager,
                "currency": currency,
                "rounds": int(rounds),
                "staked_minor": int(staked),
                "returned_minor": int(returned),
            }
            for wager, currency, rounds, staked, returned in rows
        ]
    }


def _close(
    conn: psycopg.Connection[Any], version: PaytableVersion, suspension: Suspension, reason: str
) -> None:
    scope, state = Scope(None, version.game, version.version_id), _CLOSES[suspension]
    closed = conn.execute(
        "SELECT FROM closure WHERE operator_id IS NULL AND version_id = %s AND state <= %s",
        [version.version_id, state],  # `disabled` sorts before `draining`
    ).fetchone()
    if closed is None:
        close(conn, scope, state, reason, actor=ACTOR, authoriser=f"policy:rtp suspension {suspension}")
