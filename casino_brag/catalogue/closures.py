"""Closures: everything, one game or one paytable version is drained or disabled, for all operators or for one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.operators import operator_id_of
from casino_brag.db.clock import clock
from casino_brag.errors import SetUpError
from casino_brag.staff.acting import REASON_LENGTH_MAX


class ClosureState(StrEnum):
    """How far something is closed."""

    DRAINING = "draining"
    """No new rounds; those that are open are decided as ever."""
    DISABLED = "disabled"
    """Nothing moves; open rounds wait, with their stakes held."""


_TYPES: Final = {
    ClosureState.DRAINING: EntryType.GAME_DRAINING,
    ClosureState.DISABLED: EntryType.GAME_DISABLED,
    None: EntryType.GAME_ENABLED,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What is closed: whose rounds, of which game, of which of its versions.  None stands for all of them.

    A version is named together with its game.
    """

    operator_id: UUID | None = None
    game: str | None = None
    version_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Closure:
    """A closure in force; `version` is the number of the version that is closed, None for all of them."""

    operator: str | None
    game: str | None
    version: int | None
    state: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class GameState:
    """How a game stands: `state` is ``enabled``, ``draining`` or ``disabled``, since when and why.

    `version` is what it offers, None where it has never been published.
    """

    game: str
    version: int | None
    state: str
    reason: str | None
    since: datetime
    open_rounds: int


def scope_named(
    conn: psycopg.Connection[Any], *, game: str | None, version: int | None, operator: str | None
) -> Scope:
    """The scope that names stand for.  `SetUpError` where there is no such operator, game or version."""
    operator_id = None if operator is None else operator_id_of(conn, operator)
    version_id = None
    if game is not None:
        _found(
            conn.execute("SELECT game FROM game WHERE game = %s", [game]).fetchone(),
            f"There is no game {game!r}. To see those there are: games list.",
        )
    if version is not None:
        if game is None:
            raise SetUpError("A version is one of a game: name the game as well.")
        version_id = _found(
            conn.execute(
                "SELECT version_id FROM paytable_version WHERE game = %s AND version = %s", [game, version]
            ).fetchone(),
            f"{game} has no version {version}.",
        )
    return Scope(operator_id, game, version_id)


def _found(row: tuple[Any, ...] | None, sentence: str) -> Any:
    if row is None:
        raise SetUpError(sentence)
    return row[0]


def close(
    conn: psycopg.Connection[Any],
    scope: Scope,
    state: ClosureState,
    reason: str,
    *,
    actor: str,
    authoriser: str | None = None,
) -> bool:
    """Closes a scope, or closes it further or less, on record; whether that changed something.

    `reason` is 1 to `REASON_LENGTH_MAX` characters.
    """
    return _set(conn, scope, state, reason, actor, authoriser)


def open_again(
    conn: psycopg.Connection[Any], scope: Scope, reason: str, *, actor: str, authoriser: str | None = None
) -> bool:
    """Takes the closure of exactly this scope back, on record; whether there was one.  Wider ones hold on."""
    return _set(conn, scope, None, reason, actor, authoriser)


def _set(
    conn: psycopg.Connection[Any],
    scope: Scope,
    state: ClosureState | None,
    reason: str,
    actor: str,
    authoriser: str | None,
) -> bool:
    assert 1 <= len(reason) <= REASON_LENGTH_MAX
    with conn.transaction():  # one after the other, so that each entry tells what its change found
        conn.execute("SELECT pg_advisory_xact_lock(hashtextextended('closure_set', 0))")
        named = {"game": scope.game, "version": _version(conn, scope.version_id)}
        entry = Entry(
            type=_TYPES[state],
            occurred_at=clock(conn),
            actor=actor,
            authoriser=authoriser,
            operator_id=scope.operator_id,
            reason=reason,
            before=named | {"state": _state_of(conn, scope)},
            after=named | {"state": state or "enabled"},
        )
        row = conn.execute(
            "SELECT closure_set(%s, %s, %s, %s, %s, %s)",
            [scope.operator_id, scope.game, scope.version_id, state, reason, entry.text()],
        ).fetchone()
    assert row is not None
    return bool(row[0])


def _version(conn: psycopg.Connection[Any], version_id: UUID | None) -> int | None:
    row = conn.execute("SELECT version FROM paytable_version WHERE version_id = %s", [version_id]).fetchone()
    return None if row is None else row[0]


def _state_of(conn: psycopg.Connection[Any], scope: Scope) -> str:
    row = conn.execute(
        "SELECT state FROM closure"
        " WHERE (operator_id, game, version_id) IS NOT DISTINCT FROM (%s::uuid, %s::text, %s::uuid)",
        [scope.operator_id, scope.game, scope.version_id],
    ).fetchone()
    return "enabled" if row is None else str(row[0])


def closures(conn: psycopg.Connection[Any], operator_id: UUID | None = None) -> list[Closure]:
    """The closures in force, widest first: all of them, or those that an operator's rounds are under."""
    with conn.cursor(row_factory=class_row(Closure)) as cursor:
        return cursor.execute(
            """
            SELECT o.name AS operator, k.game, v.version, k.state, k.reason, k.since
            FROM closure AS k
            LEFT JOIN operator AS o USING (operator_id)
            LEFT JOIN paytable_version AS v USING (version_id)
            WHERE %s::uuid IS NULL OR k.operator_id IS NULL OR k.operator_id = %s
            ORDER BY o.name NULLS FIRST, k.game NULLS FIRST, v.version NULLS FIRST
            """,
            [operator_id, operator_id],
        ).fetchall()


def game_states(conn: psycopg.Connection[Any], operator_id: UUID | None = None) -> list[GameState]:
    """How every game stands, for an operator's rounds where one is given; by name.

    Without one, only closures for all operators count, and everybody's open rounds.
    """
    with conn.cursor(row_factory=class_row(GameState)) as cursor:
        return cursor.execute(
            """
            SELECT g.game, v.version, coalesce(k.state, g.state) AS state, coalesce(k.reason, g.reason) AS reason,
                coalesce(k.since, g.changed_at) AS since, coalesce(waiting.rounds, 0) AS open_rounds
            FROM game AS g
            LEFT JOIN paytable_version AS v ON v.version_id = g.active_version_id
            LEFT JOIN LATERAL (
                SELECT k.state, k.reason, k.since FROM closure AS k
                WHERE (k.operator_id IS NULL OR k.operator_id = %(operator)s) AND (k.game IS NULL OR k.game = g.game)
                  AND (k.version_id IS NULL OR k.version_id = g.active_version_id)
                  AND (g.state = 'enabled' OR k.state = 'disabled')  -- a file that will not do closes a game as well
                ORDER BY k.state, k.since LIMIT 1
            ) AS k ON true
            LEFT JOIN (
                SELECT r.game, count(*) AS rounds FROM round AS r
                WHERE r.state = 'awaiting_decision' AND (%(operator)s::uuid IS NULL OR r.operator_id = %(operator)s)
                GROUP BY r.game
            ) AS waiting ON waiting.game = g.game
            ORDER BY g.game
            """,
            {"operator": operator_id},
        ).fetchall()
