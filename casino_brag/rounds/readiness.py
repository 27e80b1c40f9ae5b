"""Whether rounds can be dealt now."""

from __future__ import annotations

from typing import Any

import psycopg

from casino_brag.db.clock import rfc3339
from casino_brag.db.migrations import shipped_migrations, verify
from casino_brag.errors import SetUpError
from casino_brag.rng import RngUnavailable
from casino_brag.rounds.commitments import Commitment
from casino_brag.rounds.house import House
from casino_brag.rounds.round import Round
from casino_brag.rounds.settling import unseal
from casino_brag.sealing import SealBroken


def obstacles(conn: psycopg.Connection[Any], house: House) -> list[str]:
    """What keeps rounds from being dealt, a sentence each; empty when nothing does."""
    found = []
    try:
        verify(conn, shipped_migrations())
    except SetUpError as wrong:
        found.append(str(wrong))
    else:
        found += _silent_numbers(conn, house)
        found += _unsealed_log(conn, house)
        if conn.execute("SELECT FROM game WHERE state = 'enabled' LIMIT 1").fetchone() is None:
            found.append("No game is enabled.")
        if not _opens_seals(conn, house):
            found.append(
                "The seal's keys do not open the deals of open rounds, or the seeds of those to come."
            )
    if _writes_directly(conn):
        found.append("The application's role may change records past the functions that keep them.")
    return found


def _silent_numbers(conn: psycopg.Connection[Any], house: House) -> list[str]:
    try:
        house.upkeep.attend(conn, house.generator)
        house.generator.check()
    except RngUnavailable as unavailable:
        house.upkeep.attend(conn, house.generator)
        reason = str(unavailable).rstrip(".")
        return [
            f"No random numbers can be had: {reason}. The process has to be started again, once it is mended."
        ]
    return []


def _unsealed_log(conn: psycopg.Connection[Any], house: House) -> list[str]:
    row = conn.execute("SELECT attended_at, now() FROM audit_sealing").fetchone()
    assert row is not None
    attended_at, now = row
    if not house.sealing_is_behind(attended_at, now):
        return []
    return [
        f"The log was last sealed at {rfc3339(attended_at)}. See whether a job worker runs, and what it logs."
    ]


def _opens_seals(conn: psycopg.Connection[Any], house: House) -> bool:
    """Whether the keys open the newest open round, and the newest commitment that waits."""
    playing = conn.execute(
        "SELECT * FROM round_record WHERE state = 'awaiting_decision' ORDER BY round_id DESC LIMIT 1"
    ).fetchone()
    waiting = conn.execute(
        "SELECT round_id, number, previous, value, rng_digest, sealed_seed FROM commitment"
        " WHERE ended_at IS NULL ORDER BY round_id DESC LIMIT 1"
    ).fetchone()
    try:
        if playing is not None:
            newest = Round.from_columns(playing)
            unseal(house, newest, house.shelf.version(conn, newest.paytable_version_id))
        if waiting is not None:
            Commitment(*waiting).open_seed(house.sealer)
    except SealBroken:
        return False
    return True


def _writes_directly(conn: psycopg.Connection[Any]) -> bool:
    row = conn.execute(
        "SELECT bool_or(has_table_privilege(c.oid, 'DELETE, TRUNCATE, TRIGGER')"
        " OR has_any_column_privilege(c.oid, 'INSERT, UPDATE'))"
        " FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
    ).fetchone()
    return row is not None and bool(row[0])
