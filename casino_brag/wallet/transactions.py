"""What an operator's wallet is asked: stored before it is asked, and worked on until the wallet has given its word.

A debit is pending while a request waits for it, then done, refused, or cancelled; a credit is pending until it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.records import as_jsonb

LEASE_SECONDS: Final = 30
"""How long whoever works on a transaction is given before somebody else takes it up: longer than any wait within."""


class Purpose(StrEnum):
    """Why a wallet is asked."""

    STAKE = "stake"
    """To debit a wager."""
    SETTLEMENT = "settlement"
    """To credit what a settled round pays, nothing included: it closes the round."""
    VOID = "void"
    """To credit what a voided round returns."""


class Ending(StrEnum):
    """What becomes of a debit that did not come about."""

    REFUSED = "refused"
    """The wallet said no."""
    CANCELLING = "cancelling"
    """It may have been done: the wallet will be told to cancel it until it answers."""
    CANCELLED = "cancelled"
    """It was cancelled, or never sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A debit or credit at an operator's wallet; `player` is the operator's own name for the player.

    `tried_before` is true when the wallet was asked and did not give its word.
    """

    transaction_id: UUID
    operator_id: UUID
    player_id: UUID
    round_id: UUID
    purpose: str
    wager: str
    amount_minor: int
    begun_at: datetime
    game: str
    currency: str
    player: str
    tried_before: bool = False

    def body(self) -> dict[str, Any]:
        """What the wallet is told.  A cancel says the same as the debit that it cancels."""
        return {
            "transaction_id": str(self.transaction_id),
            "round_id": str(self.round_id),
            "game": self.game,
            "wager": self.wager,
            "amount_minor": self.amount_minor,
            "currency": self.currency,
            "player": self.player,
            "round_closed": self.purpose != Purpose.STAKE,
        }

    def entry(self, kind: EntryType, now: datetime, reason: str | None = None) -> Entry:
        """An audit entry about it."""
        return Entry(
            type=kind,
            occurred_at=now,
            actor="system:wallet",
            operator_id=self.operator_id,
            player_id=self.player_id,
            round_id=self.round_id,
            reason=reason,
            payload={
                "transaction_id": self.transaction_id,
                "purpose": self.purpose,
                "wager": self.wager,
                "amount_minor": self.amount_minor,
                "currency": self.currency,
            },
        )


@dataclass(frozen=True, slots=True)
class GivenUp:
    """How a debit ends that did not come about; `reason` is the wallet's for refusing, `problem` what is not known."""

    transaction: Transaction
    ending: Ending
    reason: str | None = None
    problem: str | None = None


def reserve(
    conn: psycopg.Connection[Any],
    debits: Sequence[Transaction],
    *,
    account_id: UUID,
    mode: str,
    decided: bool,
    now: datetime,
) -> str:
    """Stores the debits of one stake, or does not: an outcome of `wallet_reserve`, ``reserved`` when it did."""
    first = debits[0]
    entry = Entry(
        type=EntryType.WALLET_DEBIT_BEGUN,
        occurred_at=now,
        actor=f"player:{first.player_id}",
        operator_id=first.operator_id,
        player_id=first.player_id,
        round_id=first.round_id,
        payload={"debits": [debit.body() for debit in debits]},
    )
    op = {
        "round_id": first.round_id,
        "operator_id": first.operator_id,
        "player_id": first.player_id,
        "account_id": account_id,
        "game": first.game,
        "mode": mode,
        "decided": decided,
        "lease_seconds": LEASE_SECONDS,
        "debits": [
            {"transaction_id": d.transaction_id, "wager": d.wager, "amount_minor": d.amount_minor}
            for d in debits
        ],
        "audit": entry.text(),
    }
    return str(_value(conn, "SELECT wallet_reserve(%s)", [as_jsonb(op)]))


def credit_row(credit: Transaction, account_id: UUID, *, held: bool) -> dict[str, Any]:
    """A credit as the row that a settlement or a void stores with everything else it writes.

    `held`: whoever writes it makes the first call itself, and nobody else does meanwhile.
    """
    return {
        "transaction_id": credit.transaction_id,
        "operator_id": credit.operator_id,
        "player_id": credit.player_id,
        "account_id": account_id,
        "round_id": credit.round_id,
        "purpose": credit.purpose,
        "wager": credit.wager,
        "amount_minor": credit.amount_minor,
        "state": "pending",
        "attempts": 0,
        "begun_at": credit.begun_at,
        "due_at": credit.begun_at + timedelta(seconds=LEASE_SECONDS if held else 0),
    }


def confirm(conn: psycopg.Connection[Any], done: Sequence[Transaction], now: datetime) -> bool:
    """Books what the wallet said is done, of one player; false when some of it was given up or booked meanwhile."""
    ids = [transaction.transaction_id for transaction in done]
    entries = [
        transaction.entry(
            EntryType.WALLET_DEBITED if transaction.purpose == Purpose.STAKE else EntryType.WALLET_CREDITED,
            now,
        ).text()
        for transaction in done
    ]
    return bool(_value(conn, "SELECT wallet_confirm(%s, %s)", [ids, entries]) == len(ids))


_ENDED: Final = {
    Ending.REFUSED: EntryType.WALLET_DEBIT_REFUSED,
    Ending.CANCELLING: EntryType.WALLET_DEBIT_UNKNOWN,
    Ending.CANCELLED: EntryType.WALLET_DEBIT_CANCELLED,
}


def give_up(conn: psycopg.Connection[Any], given_up: Sequence[GivenUp], now: datetime) -> None:
    """Ends debits that did not come about; those that ended meanwhile are left alone."""
    conn.execute(
        "SELECT wallet_give_up(%s, %s, %s, %s, %s)",
        [
            [one.transaction.transaction_id for one in given_up],
            [one.ending.value for one in given_up],
            [one.reason for one in given_up],
            [one.problem for one in given_up],
            [
                one.transaction.entry(_ENDED[one.ending], now, one.reason or one.problem).text()
                for one in given_up
            ],
        ],
    )


def operators_due(conn: psycopg.Connection[Any]) -> list[UUID]:
    """The operators whose wallets have something to be asked now, those who wait longest first."""
    return [row[0] for row in conn.execute("SELECT operator_id FROM wallet_due ORDER BY since").fetchall()]


def unfinished(conn: psycopg.Connection[Any]) -> dict[UUID, int]:
    """How many transactions each operator's wallet has not given its word on."""
    return dict(
        conn.execute(
            "SELECT operator_id, count(*) FROM wallet_transaction WHERE ended_at IS NULL GROUP BY operator_id"
        ).fetchall()
    )


def claim(conn: psycopg.Connection[Any], operator_id: UUID, *, at_most: int) -> list[Transaction]:
    """Takes up what is due of an operator, oldest first; nobody else does while `LEASE_SECONDS` last."""
    with conn.cursor(row_factory=class_row(Transaction)) as cursor:
        return cursor.execute(
            "SELECT call.* FROM wallet_claim(%s, %s, %s) AS claimed (transaction_id)"
            " JOIN wallet_call AS call USING (transaction_id) ORDER BY call.begun_at",
            [operator_id, at_most, LEASE_SECONDS],
        ).fetchall()


def postpone(conn: psycopg.Connection[Any], transaction_id: UUID, problem: str) -> None:
    """Puts off what the wallet gave no definite word on, longer from time to time."""
    conn.execute("SELECT wallet_postpone(%s, %s)", [transaction_id, problem])


def resume(conn: psycopg.Connection[Any], operator_id: UUID) -> None:
    """Has everything taken up at once that was put off: the wallet answers again."""
    conn.execute("SELECT wallet_resume(%s)", [operator_id])


def _value(conn: psycopg.Connection[Any], query: Any, values: list[Any]) -> Any:
    row = conn.execute(query, values).fetchone()
    assert row is not None
    return row[0]
