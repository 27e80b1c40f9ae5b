"""Deposits, withdrawals and balances of the built-in wallet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit import Entry, EntryType
from casino_brag.ids import uuid7
from casino_brag.wallet.answers import Answer, Request, carry_out, known_answer, operation

DEPOSITS_MAX_MINOR: Final = 2**52
"""A deposit may fill an account up to this, so that winnings still fit into a JSON number."""


class Direction(StrEnum):
    """Which way money moves between a player's account and the world outside."""

    DEPOSIT = "deposit"
    """To the player."""
    WITHDRAWAL = "withdrawal"
    """From the player."""


@dataclass(frozen=True, slots=True)
class PlayerAccount:
    """A player's account in one currency."""

    player_id: UUID
    account_id: UUID
    ledger_id: UUID


def player_account(
    conn: psycopg.Connection[Any], operator_id: UUID, player: str, currency: str, mode: str
) -> PlayerAccount:
    """The account of the player whom the operator calls `player`; it is opened on first mention."""
    with conn.cursor(row_factory=class_row(PlayerAccount)) as cursor:
        found = cursor.execute(
            "SELECT player_id, account_id, ledger_id FROM player_account(%s, %s, %s, %s, %s)",
            [operator_id, player, currency, mode, uuid7()],
        ).fetchone()
    assert found is not None
    return found


def move(
    conn: psycopg.Connection[Any],
    request: Request,
    *,
    direction: Direction,
    operator_id: UUID,
    operator: str,
    player: str,
    currency: str,
    amount_minor: int,
    now: datetime,
) -> Answer:
    """Moves real money in or out, once for each idempotency key.

    Raises `ServiceError`: insufficient_funds, balance_limit_exceeded, idempotency_key_reused.
    """
    account = player_account(conn, operator_id, player, currency, "real")
    if (stored := known_answer(conn, operator_id, account.player_id, request)) is not None:
        return stored

    movement_id = uuid7()
    entry = Entry(
        type=EntryType.WALLET_DEPOSIT if direction is Direction.DEPOSIT else EntryType.WALLET_WITHDRAWAL,
        occurred_at=now,
        actor=f"operator:{operator}",
        operator_id=operator_id,
        player_id=account.player_id,
        payload={"movement_id": movement_id, "amount_minor": amount_minor, "currency": currency},
    )
    record = {
        "movement_id": movement_id,
        "direction": direction.value,
        "operator_id": operator_id,
        "player_id": account.player_id,
        "account_id": account.account_id,
        "ledger_id": account.ledger_id,
        "amount_minor": amount_minor,
        "balance_max_minor": DEPOSITS_MAX_MINOR,
        "made_at": now,
    }
    document = {
        "movement_id": str(movement_id),
        "player": player,
        "currency": currency,
        "amount_minor": amount_minor,
    }
    op = operation(record, request, status=201, document=document, audit=entry.text())
    (outcome,) = carry_out(conn, "wallet_move", [op])
    return outcome.answer_or_refusal()


def balance_minor(conn: psycopg.Connection[Any], operator_id: UUID, player: str, currency: str) -> int:
    """What a player's real account holds; 0 for a player or currency never mentioned."""
    row = conn.execute(
        "SELECT a.balance_minor FROM account AS a JOIN ledger AS l USING (ledger_id) JOIN player AS p USING (player_id)"
        " WHERE p.operator_id = %s AND p.reference = %s AND l.operator_id = p.operator_id"
        " AND l.currency = %s AND l.mode = 'real'",
        [operator_id, player, currency],
    ).fetchone()
    return 0 if row is None else int(row[0])
