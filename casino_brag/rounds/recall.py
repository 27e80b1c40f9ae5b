"""Recall: rounds in full, an operator's or all, each with everything that it takes to reconstruct it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from casino_brag.db.clock import rfc3339
from casino_brag.rounds.round import AWAITING_DECISION, DECIDING, SETTLED, VOIDED, Round

_OPEN: Final = sql.SQL("r.state = 'awaiting_decision'")
_DEBITED: Final = sql.SQL(
    "EXISTS (SELECT FROM wallet_transaction AS t"
    " WHERE t.round_id = r.round_id AND t.purpose = 'stake' AND t.state = 'pending')"
)
_STATES: Final[Mapping[str, sql.Composable]] = {
    AWAITING_DECISION: sql.SQL("{} AND NOT {}").format(_OPEN, _DEBITED),
    DECIDING: sql.SQL("{} AND {}").format(_OPEN, _DEBITED),
    SETTLED: sql.SQL("r.state = 'settled'"),
    VOIDED: sql.SQL("r.state = 'voided'"),
}
STATES: Final = tuple(_STATES)
"""The states a dealt round can be in.  `deciding`: an operator's wallet is being asked for the Play wager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which rounds: those opened from `since` until before `until`, and tests only where they are wanted.

    A None does not matter.
    """

    player: str | None = None
    state: str | None = None
    game: str | None = None
    version: int | None = None
    result: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    mode: str = "real"
    test: bool = False

    def conditions(self, operator_id: UUID | None) -> list[sql.Composable]:
        """The filter in SQL, about a round `r` and its session `s`, of one operator or of all; its values are the
        fields by their names, and `operator_id`.
        """
        # Only what is asked for is said, so that the index that serves it is found.
        found = [sql.SQL("r.mode = %(mode)s"), _whose("r", operator_id)]
        if not self.test:
            found.append(sql.SQL("NOT s.test"))
        if self.player is not None:
            of_one = "(SELECT player_id FROM player WHERE (operator_id, reference) = (%(operator_id)s, %(player)s))"
            of_any = (
                "ANY (ARRAY(SELECT p.player_id FROM operator AS o JOIN player AS p USING (operator_id)"
                " WHERE p.reference = %(player)s))"
            )
            found.append(sql.SQL("r.player_id = " + (of_any if operator_id is None else of_one)))
        if self.state is not None:
            found.append(_STATES[self.state])
        if self.game is not None:
            found.append(sql.SQL("r.game = %(game)s"))
        if self.version is not None:
            found.append(
                sql.SQL(
                    "r.paytable_version_id = ANY (ARRAY("
                    "SELECT version_id FROM paytable_version WHERE version = %(version)s))"
                )
            )
        if self.result is not None:
            found.append(sql.SQL("r.result = %(result)s"))
        if self.since is not None:
            found.append(sql.SQL("r.opened_at >= %(since)s"))
        if self.until is not None:
            found.append(sql.SQL("r.opened_at < %(until)s"))
        return found


_RECORDS: Final = sql.SQL(
    """
    SELECT o.name, p.reference, s.channel, s.jurisdiction, s.test, v.version, v.digest, w.actor, w.approver, w.policy,
        r.*
    FROM page JOIN round_record AS r USING (round_id)
    JOIN operator AS o ON o.operator_id = r.operator_id
    JOIN player AS p ON p.player_id = r.player_id
    JOIN session AS s ON s.session_id = r.session_id
    JOIN paytable_version AS v ON v.version_id = r.paytable_version_id
    LEFT JOIN voided_round AS w ON w.round_id = r.round_id
    ORDER BY r.opened_at DESC, r.round_id DESC
    """
)


def list_operator_rounds(
    conn: psycopg.Connection[Any], operator_id: UUID | None, wanted: Filter, *, after: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """An operator's rounds in full, or with None everybody's, newest first, from the one behind `after`; at most
    `limit`.
    """
    conditions = wanted.conditions(operator_id)
    if after is not None:
        conditions.append(
            sql.SQL(
                "(r.opened_at, r.round_id) < (SELECT a.opened_at, a.round_id FROM round AS a"
                " WHERE a.round_id = %(after)s AND {})"
            ).format(_whose("a", operator_id))
        )
    page = sql.SQL(
        "SELECT r.round_id FROM round AS r JOIN session AS s USING (session_id)"
        " WHERE {} ORDER BY r.opened_at DESC, r.round_id DESC LIMIT %(limit)s"
    ).format(sql.SQL(" AND ").join(conditions))
    return _records(conn, page, asdict(wanted) | {"operator_id": operator_id, "after": after, "limit": limit})


def read_operator_round(
    conn: psycopg.Connection[Any], operator_id: UUID | None, round_id: UUID
) -> dict[str, Any] | None:
    """One round in full, whatever its mode; None where the operator, or with None everybody, has none of this id."""
    page = sql.SQL("SELECT r.round_id FROM round AS r WHERE r.round_id = %(round_id)s AND {}").format(
        _whose("r", operator_id)
    )
    return next(iter(_records(conn, page, {"round_id": round_id, "operator_id": operator_id})), None)


def _whose(of: str, operator_id: UUID | None) -> sql.Composable:
    """That a round `of` is of the operator, if one is given."""
    return sql.SQL("true" if operator_id is None else f"{of}.operator_id = %(operator_id)s")


def _records(
    conn: psycopg.Connection[Any], page: sql.Composable, values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    # The page is found first, by ids alone: all the rest is looked up for its rounds only.
    query = sql.SQL("WITH page AS MATERIALIZED ({}) {}").format(page, _RECORDS)
    # Of all operators it is planned for what is asked: a plan for whatever may be asked sorts all rounds there are.
    reader = conn.cursor() if values["operator_id"] is not None else psycopg.ClientCursor(conn)
    found = reader.execute(query, values).fetchall()
    records = {record["round_id"]: record for record in map(_record, found)}
    with conn.cursor(row_factory=dict_row) as cursor:
        for one in cursor.execute(
            "SELECT * FROM wallet_transaction WHERE round_id = ANY (%s::uuid[])"
            " ORDER BY purpose <> 'stake', begun_at, transaction_id",
            [list(records)],
        ):
            records[str(one["round_id"])]["wallet_transactions"].append(_transaction(one))
    return list(records.values())


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    """A round as its operator may know it; the dealer's cards are there once they are decided against."""
    operator, player, channel, jurisdiction, test, version, digest, actor, approver, policy, *of_round = row
    found = Round.from_columns(of_round)
    settlement = found.settlement or {}
    plain = (
        *("mode", "currency", "game", "rng_digest", "client_seed", "player_cards", "dealer_cards"),
        *("decision", "result", "wagers", "total_staked_minor", "total_payout_minor"),
    )
    return {
        "round_id": str(found.round_id),
        "operator": operator,
        "player": player,
        "session_id": str(found.session_id),
        "channel": channel,
        "jurisdiction": jurisdiction,
        "test": test,
        "paytable": {"version": version, "digest": digest},
        "commitment": None if found.commitment is None else found.commitment.named(),
        "state": found.seen_state,
        "opened_at": rfc3339(found.opened_at),
        "settled_at": _time(found.settled_at),
        "player_category": settlement.get("player_category"),
        "dealer_category": settlement.get("dealer_category"),
        "dealer_qualified": settlement.get("dealer_qualified"),
        **{name: getattr(found, name) for name in plain},
        "net_minor": _net_minor(found),
        "payout_state": None if found.state == AWAITING_DECISION else found.payout_state,
        "void": None
        if found.voided_at is None
        else {
            "voided_at": rfc3339(found.voided_at),
            "reason": found.void_reason,
            "actor": actor,
            "approver": approver,
            "policy": policy,
            "refund_minor": found.refund_minor,
            "compensation_minor": found.compensation_minor,
        },
        "wallet_transactions": [],
    }


def _net_minor(found: Round) -> int | None:
    """What the player has won by the round, less what was lost; None while that is open."""
    if found.state == AWAITING_DECISION:
        return None
    lost_minor = found.ante_minor + found.pair_bonus_minor
    if found.total_staked_minor is not None and found.total_payout_minor is not None:
        lost_minor = found.total_staked_minor - found.total_payout_minor
    return (found.refund_minor or 0) + (found.compensation_minor or 0) - lost_minor


def _transaction(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = ("purpose", "wager", "amount_minor", "state", "reason", "attempts", "last_problem")
    return {
        "transaction_id": str(row["transaction_id"]),
        **{name: row[name] for name in plain},
        "begun_at": rfc3339(row["begun_at"]),
        "ended_at": _time(row["ended_at"]),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)
