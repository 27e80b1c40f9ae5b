"""What is reported of rounds: their sums, those that are unfinished, and what was changed around them.

Each is of one operator, or of all where `operator_id` is None.  A round belongs to the time in which it was opened.
Sums are in minor units of one currency each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from casino_brag.audit import EntryType
from casino_brag.db.clock import rfc3339

NO_ACTIVITY: Final = "No Activity"
NO_DATA: Final = "no data"


class Period(StrEnum):
    """A time that ends now."""

    DAY = "day"
    """Since midnight, UTC."""
    MONTH = "month"
    """Since the first of the month."""
    QUARTER = "quarter"
    """Since the first of January, April, July or October."""
    YEAR = "year"
    """Since the first of January."""
    LIFE = "life"
    """Since the day on which the operator was added; of all of them, the first."""


def period_start(
    conn: psycopg.Connection[Any], operator_id: UUID | None, period: Period, now: datetime
) -> datetime:
    """When the period began in which `now` is: a midnight, both in UTC."""
    if period is Period.LIFE:
        row = conn.execute(
            "SELECT min(added_at) FROM operator WHERE %(one)s::uuid IS NULL OR operator_id = %(one)s",
            {"one": operator_id},
        ).fetchone()
        assert row is not None
        return _midnight((row[0] or now).astimezone(UTC))
    month = {Period.YEAR: 1, Period.QUARTER: now.month - (now.month - 1) % 3}.get(period, now.month)
    return _midnight(now.replace(month=month, day=now.day if period is Period.DAY else 1))


def _whose(operator_id: UUID | None, column: str) -> sql.Composable:
    # Told apart in the text, so that an operator's rows are found by their index.
    if operator_id is None:
        return sql.SQL("true")
    return sql.SQL("{} = %(operator_id)s").format(sql.Identifier(*column.split(".")))


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def game_performance(
    conn: psycopg.Connection[Any], operator_id: UUID | None, since: datetime, until: datetime
) -> list[dict[str, Any]]:
    """What each version of each game took and paid for each operator in each currency, of rounds opened in that time.

    Real money only, and no tests.  Voided rounds are counted and told, and are in no other sum.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            sql.SQL(
                """
            SELECT sums.*, o.name AS operator, v.version, v.digest, v.figures FROM (
                SELECT r.operator_id, r.game, r.paytable_version_id, r.currency, count(*) AS rounds,
                    count(*) FILTER (WHERE r.state = 'settled') AS settled,
                    count(*) FILTER (WHERE r.state = 'awaiting_decision') AS open_rounds,
                    count(*) FILTER (WHERE r.state = 'voided') AS voids,
                    sum(coalesce(
                        (SELECT sum(t.amount_minor) FROM wallet_transaction AS t
                         WHERE t.round_id = r.round_id AND t.purpose = 'stake' AND t.state = 'done'),
                        r.ante_minor + r.pair_bonus_minor)) FILTER (WHERE r.state = 'awaiting_decision') AS held,
                    sum(r.total_staked_minor) FILTER (WHERE r.state = 'settled') AS staked,
                    sum(r.total_payout_minor) FILTER (WHERE r.state = 'settled') AS paid,
                    sum(r.pair_bonus_minor) FILTER (WHERE r.state = 'settled') AS pair_bonus_staked,
                    sum(jsonb_path_query_first(
                        r.settlement, '$.wagers[*] ? (@.spot == "pair_bonus").payout_minor')::bigint)
                        FILTER (WHERE r.state = 'settled' AND r.pair_bonus_minor > 0) AS pair_bonus_paid,
                    sum(w.refund_minor) AS refunded, sum(w.compensation_minor) AS compensated,
                    sum(greatest(0, r.total_payout_minor - r.total_staked_minor)) FILTER (WHERE r.state = 'voided')
                        AS kept
                FROM round AS r JOIN session AS s USING (session_id) LEFT JOIN voided_round AS w USING (round_id)
                WHERE {whose} AND r.opened_at >= %(since)s AND r.opened_at < %(until)s
                  AND r.mode = 'real' AND NOT s.test
                GROUP BY r.operator_id, r.game, r.paytable_version_id, r.currency
            ) AS sums JOIN paytable_version AS v ON v.version_id = sums.paytable_version_id
            JOIN operator AS o USING (operator_id)
            ORDER BY sums.game, v.version, sums.currency, o.name
            """
            ).format(whose=_whose(operator_id, "r.operator_id")),
            {"operator_id": operator_id, "since": since, "until": until},
        ).fetchall()
    return [_performance(row) for row in rows]


def _performance(row: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "held",
        "staked",
        "paid",
        "pair_bonus_staked",
        "pair_bonus_paid",
        "refunded",
        "compensated",
        "kept",
    )
    sums = {name: int(row[name] or 0) for name in names}  # the database's sums are of its type for any size
    pair_bonus = sums["pair_bonus_staked"], sums["pair_bonus_paid"]
    main = sums["staked"] - pair_bonus[0], sums["paid"] - pair_bonus[1]
    theoretical = {f["wager"]: f for f in row["figures"] if f["figure"] == "rtp"}
    return {
        "operator": row["operator"],
        "game": row["game"],
        "paytable": {"version": row["version"], "digest": row["digest"]},
        "currency": row["currency"],
        **{name: row[name] for name in ("rounds", "settled", "open_rounds", "voids")},
        "held_minor": sums["held"],
        "refunded_minor": sums["refunded"],
        "compensated_minor": sums["compensated"],
        "kept_minor": sums["kept"],
        "staked_minor": sums["staked"],
        "paid_minor": sums["paid"],
        "actual_rtp": rtp(sums["staked"], sums["paid"]),
        "wagers": [
            {
                "wager": wager,
                "staked_minor": staked,
                "paid_minor": paid,
                "actual_rtp": rtp(staked, paid),
                "theoretical_rtp": {
                    name: theoretical[wager][name] for name in ("value", "exact", "strategy")
                },
            }
            for wager, (staked, paid) in (("main", main), ("pair_bonus", pair_bonus))
            if wager in theoretical
        ],
    }


def rtp(staked_minor: int, paid_minor: int) -> dict[str, str | None]:
    """What came back of what was staked: exactly, and to eight places; nothing staked is no data.

    >>> rtp(400, 389)
    {'value': '0.97250000', 'exact': '389/400'}
    >>> rtp(0, 0)
    {'value': 'no data', 'exact': None}
    """
    if not staked_minor:
        return {"value": NO_DATA, "exact": None}
    return {"value": f"{paid_minor / staked_minor:.8f}", "exact": str(Fraction(paid_minor, staked_minor))}


PERFORMANCE_COLUMNS: Final = (
    *("game", "paytable_version", "paytable_digest", "currency"),
    *(
        "rounds",
        "settled",
        "open_rounds",
        "voids",
        "held_minor",
        "refunded_minor",
        "compensated_minor",
        "kept_minor",
    ),
    *("staked_minor", "paid_minor", "actual_rtp", "actual_rtp_exact"),
    *(
        f"{wager}_{what}"
        for wager in ("main", "pair_bonus")
        for what in ("staked_minor", "paid_minor", "actual_rtp", "actual_rtp_exact", "theoretical_rtp")
    ),
)
"""What a row of game performance has; a table over operators names each of them before."""


def flat_performance(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of `game_performance` as a row, which has a column for each figure."""
    flat = {
        **item,
        "paytable_version": item["paytable"]["version"],
        "paytable_digest": item["paytable"]["digest"],
        **_flat_return(item, ""),
    }
    for wager in item["wagers"]:
        prefix = f"{wager['wager']}_"
        flat |= {prefix + name: wager[name] for name in ("staked_minor", "paid_minor")}
        flat |= {**_flat_return(wager, prefix), prefix + "theoretical_rtp": wager["theoretical_rtp"]["value"]}
    return flat


def _flat_return(of: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    actual = of["actual_rtp"]
    return {prefix + "actual_rtp": actual["value"], prefix + "actual_rtp_exact": actual["exact"]}


# Rounds that wait for their players, stakes that a wallet has yet to answer for, and payouts it has yet to confirm.
# A round stands in one of the three parts at most.
_INTERRUPTED: Final = sql.SQL(
    """
    WITH unfinished AS (
        SELECT t.round_id, t.player_id, t.account_id, t.purpose = 'stake' AS of_stake, min(t.begun_at) AS begun_at,
            min(t.due_at) AS due_at, sum(t.amount_minor)::bigint AS amount_minor, max(t.attempts) AS attempts,
            max(t.last_problem) AS last_problem
        FROM wallet_transaction AS t WHERE {transactions} AND t.ended_at IS NULL
        GROUP BY t.round_id, t.player_id, t.account_id, of_stake
    ), interrupted AS (
        SELECT r.round_id, r.player_id, r.game, r.currency,
            CASE WHEN r.debit_unfinished THEN 'deciding' ELSE r.state END AS state, r.opened_at AS since,
            coalesce(r.debited_minor, r.ante_minor + r.pair_bonus_minor) AS held_minor,
            coalesce(u.amount_minor, 0) AS in_flight_minor, 0::bigint AS owed_minor,
            CASE WHEN u.round_id IS NULL THEN o.interruption_policy ELSE 'cancel' END AS resolution,
            coalesce(u.due_at, r.opened_at + make_interval(hours => o.interruption_hours)) AS resolves_at,
            coalesce(u.attempts, 0) AS attempts, u.last_problem
        FROM round_record AS r JOIN operator AS o USING (operator_id)
        LEFT JOIN unfinished AS u ON u.round_id = r.round_id AND u.of_stake
        WHERE {rounds} AND r.state = 'awaiting_decision' AND r.mode = 'real'
        UNION ALL
        SELECT u.round_id, u.player_id, c.game, l.currency, 'reserving', u.begun_at, 0, u.amount_minor, 0,
            'cancel', u.due_at, u.attempts, u.last_problem
        FROM unfinished AS u JOIN commitment AS c USING (round_id)
        JOIN account AS a USING (account_id) JOIN ledger AS l USING (ledger_id)
        WHERE u.of_stake AND NOT EXISTS (SELECT FROM round AS r WHERE r.round_id = u.round_id)
        UNION ALL
        SELECT u.round_id, u.player_id, r.game, r.currency, r.state, u.begun_at, 0, 0, u.amount_minor,
            'credit', u.due_at, u.attempts, u.last_problem
        FROM unfinished AS u JOIN round AS r USING (round_id) WHERE NOT u.of_stake
    )
    """
)


def _interrupted(operator_id: UUID | None) -> sql.Composable:
    return _INTERRUPTED.format(
        transactions=_whose(operator_id, "t.operator_id"), rounds=_whose(operator_id, "r.operator_id")
    )


def interrupted(
    conn: psycopg.Connection[Any],
    operator_id: UUID | None,
    before: datetime,
    *,
    after: UUID | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Real rounds that have been unfinished since `before`, by their ids, newest first; at most `limit`.

    `held_minor` are stakes held, `in_flight_minor` debits that a wallet has not answered for, `owed_minor` what it has
    not confirmed to have paid.  `resolution` is what is done at `resolves_at` if nothing happens before: ``fold`` or
    ``void`` the round, ``cancel`` the debits, try the ``credit`` again.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            _interrupted(operator_id)
            + sql.SQL(
                "SELECT i.*, p.reference AS player, o.name AS operator"
                " FROM interrupted AS i JOIN player AS p USING (player_id) JOIN operator AS o USING (operator_id)"
                " WHERE i.since <= %(before)s AND (%(after)s::uuid IS NULL OR i.round_id < %(after)s)"
                " ORDER BY i.round_id DESC LIMIT %(limit)s"
            ),
            {"operator_id": operator_id, "before": before, "after": after, "limit": limit},
        ).fetchall()
    return [
        {name: value for name, value in row.items() if name != "player_id"}
        | {
            "round_id": str(row["round_id"]),
            "since": rfc3339(row["since"]),
            "resolves_at": rfc3339(row["resolves_at"]),
        }
        for row in rows
    ]


def interrupted_totals(
    conn: psycopg.Connection[Any], operator_id: UUID | None, before: datetime
) -> list[dict[str, Any]]:
    """The sums of all that `interrupted` lists, by currency."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            _interrupted(operator_id)
            + sql.SQL(
                "SELECT currency, count(*) AS rounds, sum(held_minor)::bigint AS held_minor,"
                " sum(in_flight_minor)::bigint AS in_flight_minor, sum(owed_minor)::bigint AS owed_minor"
                " FROM interrupted WHERE since <= %(before)s GROUP BY currency ORDER BY currency"
            ),
            {"operator_id": operator_id, "before": before},
        ).fetchall()


ALTERATIONS: Final = frozenset(
    kind
    for kind in EntryType
    if kind.partition(".")[0] in ("operator", "game")
    or kind
    in (
        EntryType.PAYTABLE_ACTIVATED,
        EntryType.PAYTABLE_SCHEDULED,
        EntryType.PAYTABLE_UNSCHEDULED,
        EntryType.PAYTABLE_RETIRED,
        EntryType.WEBHOOK_SET,
        EntryType.WEBHOOK_SECRET_ROTATED,
        EntryType.WEBHOOK_REMOVED,
        EntryType.ROUND_VOIDED,
    )
)
"""What is changed by hand: closures and openings, voids, paytables put in force, and operators themselves.

Drafts of paytables change nothing yet, and are no operator's to know.
"""

PLAY: Final = frozenset(
    {
        EntryType.SESSION_OPENED,
        EntryType.SESSION_CLOSED,
        EntryType.WALLET_DEPOSIT,
        EntryType.WALLET_WITHDRAWAL,
        EntryType.WALLET_DEBIT_BEGUN,
        EntryType.WALLET_DEBITED,
        EntryType.WALLET_CREDITED,
        EntryType.COMMITMENT_MADE,
        EntryType.ROUND_OPENED,
        EntryType.ROUND_SETTLED,
    }
)
"""What is written of every session and round, and so nearly all there is; the index of all else leaves it out."""

_OF_NOTE: Final = sql.SQL(" AND e.type NOT IN ({})").format(
    sql.SQL(", ").join(map(sql.Literal, sorted(PLAY)))
)


def told(
    conn: psycopg.Connection[Any],
    types: Collection[EntryType],
    operator_id: UUID | None,
    since: datetime,
    until: datetime,
    *,
    after: UUID | None,
    limit: int,
) -> list[dict[str, Any]]:
    """The entries of these types of that time, newest first; at most `limit`.

    Of one operator's, those that are about all operators are part as well.
    """
    about = sql.SQL("true")
    if operator_id is not None:
        about = sql.SQL("(e.operator_id IS NULL OR e.operator_id = %(operator_id)s)")
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            sql.SQL(
                """
            SELECT e.entry_id, e.occurred_at, e.type, e.actor, e.authoriser, o.name AS operator,
                e.operator_id IS NULL AS for_all, e.round_id, e.reason, e.before, e.after, e.payload
            FROM audit_entry AS e LEFT JOIN operator AS o USING (operator_id)
            WHERE e.type = ANY (%(types)s) {of_note}
              AND e.occurred_at >= %(since)s AND e.occurred_at < %(until)s AND {about}
              AND (%(after)s::uuid IS NULL OR (e.occurred_at, e.entry_id) < (
                SELECT a.occurred_at, a.entry_id FROM audit_entry AS a WHERE a.entry_id = %(after)s))
            ORDER BY e.occurred_at DESC, e.entry_id DESC LIMIT %(limit)s
            """
            ).format(of_note=sql.SQL("") if PLAY & set(types) else _OF_NOTE, about=about),
            {
                "types": sorted(types),
                "operator_id": operator_id,
                "since": since,
                "until": until,
                "after": after,
                "limit": limit,
            },
        ).fetchall()
    return [
        row
        | {
            "entry_id": str(row["entry_id"]),
            "occurred_at": rfc3339(row["occurred_at"]),
            "round_id": None if row["round_id"] is None else str(row["round_id"]),
        }
        for row in rows
    ]
