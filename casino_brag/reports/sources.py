"""What reports over the whole installation are read from, where that is not a matter of rounds alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from casino_brag.audit import EntryType
from casino_brag.game.paytable import Paytable
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.staff.people import users_and_rights
from casino_brag.watch.cases import changes_of

Items = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """Of what a report's items are read: of a time, of one operator or all, of these types of entries.

    `limit` is one more than the report has at most, so that it is known whether there are more.
    """

    now: datetime
    since: datetime
    until: datetime
    operator_id: UUID | None
    types: frozenset[EntryType]
    limit: int


def voids(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    """Rounds that were voided in that time, newest first, whether for money or not."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            """
            SELECT w.round_id, w.voided_at, o.name AS operator, p.reference AS player, r.game,
                v.version AS paytable_version, r.mode, s.test, r.currency, r.opened_at, r.settled_at,
                r.ante_minor + r.pair_bonus_minor + coalesce(r.play_minor, 0) AS staked_minor,
                coalesce(r.total_payout_minor, 0) AS payout_minor, w.refund_minor, w.compensation_minor,
                w.policy, w.actor, w.approver, w.reason
            FROM voided_round AS w
            JOIN round AS r USING (round_id)
            JOIN session AS s USING (session_id)
            JOIN operator AS o ON o.operator_id = r.operator_id
            JOIN player AS p ON p.player_id = r.player_id
            JOIN paytable_version AS v ON v.version_id = r.paytable_version_id
            WHERE w.voided_at >= %(since)s AND w.voided_at < %(until)s
              AND (%(operator_id)s::uuid IS NULL OR r.operator_id = %(operator_id)s)
            ORDER BY w.voided_at DESC, w.round_id DESC LIMIT %(limit)s
            """,
            {
                "since": asked.since,
                "until": asked.until,
                "operator_id": asked.operator_id,
                "limit": asked.limit,
            },
        ).fetchall()


def rights(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    """Staff with their tokens, then operators with their keys, each by name; of one operator, its keys alone."""
    with conn.cursor(row_factory=dict_row) as cursor:
        keys = cursor.execute(
            "SELECT o.name, o.added_at AS since, k.key_id, k.added_at, k.retired_at"
            " FROM operator AS o JOIN operator_key AS k USING (operator_id)"
            " WHERE %(operator_id)s::uuid IS NULL OR o.operator_id = %(operator_id)s"
            " ORDER BY o.name, k.added_at, k.slot",
            {"operator_id": asked.operator_id},
        ).fetchall()
    staff = users_and_rights(conn) if asked.operator_id is None else []
    operators = [
        {
            "kind": "operator",
            "name": name,
            "added_at": since,
            "keys": [{what: key[what] for what in ("key_id", "added_at", "retired_at")} for key in of_one],
        }
        for (name, since), of_one in groupby(keys, key=itemgetter("name", "since"))
    ]
    return [{"kind": "staff", **person} for person in staff] + operators


def rtp_checks(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    """Checks of the return to player that were made in that time, newest first."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "SELECT check_id, made_at, day, scheduled, result FROM rtp_check"
            " WHERE made_at >= %s AND made_at < %s ORDER BY made_at DESC, check_id DESC LIMIT %s",
            [asked.since, asked.until, asked.limit],
        ).fetchall()


def rtp_cases(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    """Cases that were open at some instant of that time, with all their steps, newest first."""
    with conn.cursor(row_factory=dict_row) as cursor:
        cases = cursor.execute(
            """
            SELECT c.case_id, v.game, v.version AS paytable_version, c.level, c.state, c.opened_at, c.changed_at
            FROM rtp_case AS c JOIN paytable_version AS v ON v.version_id = c.paytable_version_id
            WHERE c.opened_at < %(until)s AND (c.state <> 'closed' OR c.changed_at >= %(since)s)
            ORDER BY c.opened_at DESC, c.case_id DESC LIMIT %(limit)s
            """,
            {"since": asked.since, "until": asked.until, "limit": asked.limit},
        ).fetchall()
    return [
        case | {"changes": [asdict(change) for change in changes_of(conn, case["case_id"])]} for case in cases
    ]


def par_sheets(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    """Every published version with its PAR sheet, computed anew from the document that is stored."""
    with conn.cursor(row_factory=dict_row) as cursor:
        versions = cursor.execute(
            "SELECT v.game, v.version AS paytable_version, v.digest AS paytable_digest, v.published_at,"
            " coalesce(v.version_id = g.active_version_id, false) AS active, v.document"
            " FROM paytable_version AS v LEFT JOIN game AS g USING (game) ORDER BY v.game, v.version LIMIT %s",
            [asked.limit],
        ).fetchall()
    return [
        {
            **{name: value for name, value in found.items() if name != "document"},
            "paytable": json.loads(found["document"]),
            "par_sheet": par_sheet(Paytable.from_document(json.loads(found["document"]))),
        }
        for found in versions
    ]
