"""Recall: an operator's rounds in full, each with everything that it takes to reconstruct it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from casino_brag.db.clock import rfc3339
from casino_brag.rounds.round import AWAITING_DECISION, DECIDING, SETTLED, VOIDED

_OPEN: Final = sql.SQL("r.state = 'awaiting_decision'")
_DEBITED: Final = sql.SQL(
    "EXISTS (SELECT FROM wallet_transaction AS t"
    " WHERE t.round_id = r.round_id AND t.purpose = 'stake' AND t.ended_at IS NULL)"
)
_STATES: Final[Mapping[str, sql.Composable]] = {
    AWAITING_DECISION: sql.SQL("{} AND NOT {}").format(_OPEN, _DEBITED),
    DECIDING: sql.SQL("{} AND {}").format(_OPEN, _DEBITED),
    SETTLED: sql.SQL("r.state = 'settled'"),
    VOIDED: sql.SQL("r.state = 'voided'"),
}
STATES: Final = tuple(_STATES)
"""The states a dealt round can be in.  `deciding`: an operator's wallet has still to answer for the Play wager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which rounds: those opened from `since` until before `until`, and tests only where they are wanted.

    A None does not matter.
    """

    player: str | None = None
    state: str | None = None
    game: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    mode: str = "real"
    test: bool = False

    def conditions(self) -> list[sql.Composable]:
        """The filter in SQL, about a round `r` and its session `s`; its values are the fields by their names."""
        # Only what is asked for is said, so that the index that serves it is found.
        found: list[sql.Composable] = [sql.SQL("r.mode = %(mode)s")]
        if not self.test:
            found.append(sql.SQL("NOT s.test"))
        if self.player is not None:
            found.append(
                sql.SQL(
                    "r.player_id = (SELECT player_id FROM player"
                    " WHERE (operator_id, reference) = (%(operator_id)s, %(player)s))"
                )
            )
        if self.state is not None:
            found.append(_STATES[self.state])
        if self.game is not None:
            found.append(sql.SQL("r.game = %(game)s"))
        if self.since is not None:
            found.append(sql.SQL("r.opened_at >= %(since)s"))
        if self.until is not None:
            found.append(sql.SQL("r.opened_at < %(until)s"))
        return found


_RECORDS: Final = sql.SQL(
    """
    SELECT r.round_id, p.reference AS player, r.session_id, s.channel, s.jurisdiction, s.test, r.mode, r.currency,
        r.game, v.version, v.digest, r.rng_digest, r.commitment_number, r.commitment_value, r.client_seed,
        r.state, r.opened_at, r.settled_at, r.ante_minor, r.pair_bonus_minor, r.player_cards, r.dealer_cards,
        r.decision, r.result, r.settlement, r.total_staked_minor, r.total_payout_minor,
        r.debit_unfinished, r.credit_unfinished,
        r.voided_at, w.reason AS void_reason, w.actor AS void_actor, w.approver AS void_approver,
        w.policy AS void_policy, w.refund_minor, w.compensation_minor
    FROM page JOIN round_record AS r USING (round_id)
    JOIN player AS p ON p.player_id = r.player_id
    JOIN session AS s ON s.session_id = r.session_id
    JOIN paytable_version AS v ON v.version_id = r.paytable_version_id
    LEFT JOIN voided_round AS w ON w.round_id = r.round_id
    ORDER BY r.opened_at DESC, r.round_id DESC
    """
)


def list_operator_rounds(
    conn: psycopg.Connection[Any], operator_id: UUID, wanted: Filter, *, after: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """An operator's rounds in full, newest first, from the one behind `after`; at most `limit`."""
    conditions = [sql.SQL("r.operator_id = %(operator_id)s"), *wanted.conditions()]
    if after is not None:
        conditions.append(
            sql.SQL(
                "(r.opened_at, r.round_id) < (SELECT a.opened_at, a.round_id FROM round AS a"
                " WHERE (a.round_id, a.operator_id) = (%(after)s, %(operator_id)s))"
            )
        )
    page = sql.SQL(
        "SELECT r.round_id FROM round AS r JOIN session AS s USING (session_id)"
        " WHERE {} ORDER BY r.opened_at DESC, r.round_id DESC LIMIT %(limit)s"
    ).format(sql.SQL(" AND ").join(conditions))
    return _records(conn, page, asdict(wanted) | {"operator_id": operator_id, "after": after, "limit": limit})


def read_operator_round(
    conn: psycopg.Connection[Any], operator_id: UUID, round_id: UUID
) -> dict[str, Any] | None:
    """One round in full, whatever its mode; None where the operator has none of this id."""
    page = sql.SQL(
        "SELECT round_id FROM round WHERE (round_id, operator_id) = (%(round_id)s, %(operator_id)s)"
    )
    return next(iter(_records(conn, page, {"round_id": round_id, "operator_id": operator_id})), None)


def _records(
    conn: psycopg.Connection[Any], page: sql.Composable, values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    # The page is found first, by ids alone: all the rest is looked up for its rounds only.
    query = sql.SQL("WITH page AS MATERIALIZED ({}) {}").format(page, _RECORDS)
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query, values).fetchall()
        made = cursor.execute(
            "SELECT * FROM wallet_transaction WHERE round_id = ANY (%s)"
            " ORDER BY purpose <> 'stake', begun_at, transaction_id",
            [[row["round_id"] for row in rows]],
        ).fetchall()
    transactions: dict[UUID, list[dict[str, Any]]] = {row["round_id"]: [] for row in rows}
    for one in made:
        transactions[one["round_id"]].append(one)
    return [_record(row, transactions[row["round_id"]]) for row in rows]


def _record(row: Mapping[str, Any], transactions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A round as its operator may know it; the dealer's cards are there once they are decided against."""
    settlement = row["settlement"] or {}
    return {
        **{
            name: row[name]
            for name in ("player", "channel", "jurisdiction", "test", "mode", "currency", "game")
        },
        "round_id": str(row["round_id"]),
        "session_id": str(row["session_id"]),
        "paytable": {"version": row["version"], "digest": row["digest"]},
        "rng_digest": row["rng_digest"],
        "commitment": _commitment(row),
        "client_seed": row["client_seed"],
        "state": DECIDING if row["state"] == AWAITING_DECISION and row["debit_unfinished"] else row["state"],
        "opened_at": rfc3339(row["opened_at"]),
        "settled_at": _time(row["settled_at"]),
        "player_cards": row["player_cards"],
        "player_category": settlement.get("player_category"),
        "dealer_cards": row["dealer_cards"],
        "dealer_category": settlement.get("dealer_category"),
        "dealer_qualified": settlement.get("dealer_qualified"),
        "decision": row["decision"],
        "result": row["result"],
        "wagers": settlement.get("wagers", _opening_wagers(row)),
        "total_staked_minor": row["total_staked_minor"],
        "total_payout_minor": row["total_payout_minor"],
        "net_minor": _net_minor(row),
        "payout_state": _payout_state(row),
        "void": _void(row),
        "wallet_transactions": [_transaction(one) for one in transactions],
    }


def _commitment(row: Mapping[str, Any]) -> dict[str, Any] | None:
    if row["commitment_number"] is None:
        return None
    return {
        "number": row["commitment_number"],
        "value": row["commitment_value"].hex(),
        "round_id": str(row["round_id"]),
    }


def _opening_wagers(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"spot": spot, "stake_minor": row[f"{spot}_minor"]}
        for spot in ("ante", "pair_bonus")
        if row[f"{spot}_minor"]
    ]


def _net_minor(row: Mapping[str, Any]) -> int | None:
    """What the player has won by the round, less what was lost; None while that is open."""
    if row["state"] == AWAITING_DECISION:
        return None
    staked = row["ante_minor"] + row["pair_bonus_minor"]
    if row["total_staked_minor"] is not None:
        staked = row["total_staked_minor"] - row["total_payout_minor"]
    return int((row["refund_minor"] or 0) + (row["compensation_minor"] or 0) - staked)


def _payout_state(row: Mapping[str, Any]) -> str | None:
    if row["state"] == AWAITING_DECISION:
        return None
    return "pending" if row["credit_unfinished"] else "paid"


def _void(row: Mapping[str, Any]) -> dict[str, Any] | None:
    if row["voided_at"] is None:
        return None
    return {
        "voided_at": rfc3339(row["voided_at"]),
        "reason": row["void_reason"],
        "actor": row["void_actor"],
        "approver": row["void_approver"],
        "policy": row["void_policy"],
        "refund_minor": row["refund_minor"],
        "compensation_minor": row["compensation_minor"],
    }


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
