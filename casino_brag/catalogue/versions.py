"""Versions of paytables: which there are, what became of each, its file and its PAR sheet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, kwargs_row

from casino_brag.catalogue.editing import text_of
from casino_brag.catalogue.paytables import PaytableVersion, read_version_of
from casino_brag.errors import Code, ServiceError
from casino_brag.game.paytable import Paytable
from casino_brag.odds.par_sheet import Document, par_sheet


class VersionState(StrEnum):
    """Where a version is in its life."""

    APPROVED = "approved"
    """It can be put in force; it may have been before."""
    SCHEDULED = "scheduled"
    """It comes into force at a time that is set."""
    ACTIVE = "active"
    """New rounds of its game are dealt under it."""
    RETIRED = "retired"
    """It is never put in force again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A version, as lists have it, with the names of those who had to do with it.

    `draft` is the number of the draft that it was, None for one from a file; of such a one nobody is known to have
    approved it, and it is offered in all `jurisdictions` (None).  `activated_at` is when it last came into force,
    `scheduled_at` when it will.
    """

    version_id: UUID
    game: str
    version: int
    digest: str
    state: VersionState
    draft: int | None
    published_at: datetime
    approved_by: str | None
    jurisdictions: Sequence[str] | None
    certificate: str | None
    note: str | None
    activated_at: datetime | None
    scheduled_at: datetime | None
    scheduled_by: str | None
    retired_at: datetime | None

    @property
    def waits(self) -> bool:
        """Whether it was approved and never put in force, so that operations has it to do."""
        return self.state is VersionState.APPROVED and self.activated_at is None


def games_with_paytables(conn: psycopg.Connection[Any]) -> list[str]:
    """All games that have a version or a draft, or were closed by a first file that would not do; by name."""
    rows = conn.execute(
        "SELECT game FROM game UNION SELECT game FROM paytable_version UNION SELECT game FROM paytable_draft"
        " ORDER BY game"
    )
    return [game for (game,) in rows]


def list_versions(conn: psycopg.Connection[Any], game: str) -> list[VersionRow]:
    """All versions of a game, newest first; none of a game that there is not."""
    return _versions(conn, game, None)


def version_row(conn: psycopg.Connection[Any], game: str, version: int) -> VersionRow:
    """A version as lists have it; `not_found`."""
    found = _versions(conn, game, version)
    if not found:
        raise ServiceError(Code.NOT_FOUND, f"There is no version {version} of such a game.")
    return found[0]


def read_version(
    conn: psycopg.Connection[Any], game: str, version: int
) -> tuple[VersionRow, PaytableVersion]:
    """A version and what it says; `not_found`, and `game_unavailable` for one that was altered."""
    row = version_row(conn, game, version)
    return row, read_version_of(conn, row.version_id)


def par_sheet_of(conn: psycopg.Connection[Any], game: str, version: int) -> Document:
    """The PAR sheet that a version was approved with, or one made now for a version from before; `not_found`."""
    row = conn.execute(
        "SELECT s.document, v.document FROM paytable_version AS v LEFT JOIN paytable_par_sheet AS s USING (version_id)"
        " WHERE v.version_id = %s",
        [version_row(conn, game, version).version_id],
    ).fetchone()
    assert row is not None
    stored, document = row
    sheet: Document = (
        par_sheet(Paytable.from_document(json.loads(document))) if stored is None else json.loads(stored)
    )
    return sheet


def version_text(conn: psycopg.Connection[Any], game: str, version: int | None) -> str:
    """The file of a version, or where none was kept one written from its record; `not_found`."""
    row = conn.execute(
        "SELECT t.text, v.document FROM paytable_version AS v LEFT JOIN paytable_text AS t USING (version_id)"
        " WHERE (v.game, v.version) = (%s, %s)",
        [printable(game), version],
    ).fetchone()
    if row is None:
        raise ServiceError(Code.NOT_FOUND, "There is no such version of such a game.")
    text: str | None = row[0]
    return text_of(Paytable.from_document(json.loads(row[1]))) if text is None else text


def history(
    conn: psycopg.Connection[Any], game: str, *, after: UUID | None = None, limit: int = 50
) -> list[dict[str, Any]]:
    """What the log says of a game and its paytables, newest first, and older than the entry `after`.

    Each has `entry_id`, `occurred_at`, `type`, `actor`, `authoriser`, `reason`, `before`, `after` and `payload`.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            """
            SELECT e.entry_id, e.occurred_at, e.type, e.actor, e.authoriser, e.reason, e.before, e.after, e.payload
            FROM game_entry AS e
            WHERE e.game = %(game)s AND (%(after)s::uuid IS NULL OR (e.occurred_at, e.entry_id) < (
                SELECT a.occurred_at, a.entry_id FROM audit_entry AS a WHERE a.entry_id = %(after)s))
            ORDER BY e.occurred_at DESC, e.entry_id DESC LIMIT %(limit)s
            """,
            {"game": printable(game), "after": after, "limit": limit},
        ).fetchall()


def printable(game: str) -> str:
    """A name that can be looked up; one with a zero byte would be refused by the database."""
    return game if game.isprintable() else ""


def _versions(conn: psycopg.Connection[Any], game: str, version: int | None) -> list[VersionRow]:
    with conn.cursor(row_factory=kwargs_row(_version_row)) as cursor:
        return cursor.execute(
            """
            SELECT v.version_id, v.game, v.version, v.digest, v.state, v.draft, v.published_at,
                v.approver AS approved_by, v.jurisdictions, v.certificate, v.note, put.activated_at, v.scheduled_at,
                v.scheduler AS scheduled_by, v.retired_at
            FROM paytable_version_now AS v
            LEFT JOIN (
                SELECT e.after ->> 'digest' AS digest, max(e.occurred_at) AS activated_at FROM game_entry AS e
                WHERE e.type = 'paytable.activated' AND e.game = %(game)s GROUP BY 1
            ) AS put USING (digest)
            WHERE v.game = %(game)s AND (%(version)s::numeric IS NULL OR v.version = %(version)s)
            ORDER BY v.version DESC
            """,
            {"game": printable(game), "version": version},
        ).fetchall()


def _version_row(*, state: str, **columns: Any) -> VersionRow:
    return VersionRow(state=VersionState(state), **columns)
