"""Reconciling with an operator's wallet: our transactions beside our ledger, and beside the wallet's own statement."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.errors import SetUpError
from casino_brag.game.rules import MINOR_MAX

DIFFERENCES_MAX: Final = 1_000
"""How many differences are listed; all are counted."""


@dataclass(frozen=True, slots=True)
class Total:
    """What one currency's transactions of a kind come to."""

    currency: str
    direction: str
    state: str
    transactions: int
    amount_minor: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A transaction that the wallet has not given its word on."""

    transaction_id: UUID
    round_id: UUID
    player: str
    purpose: str
    wager: str
    state: str
    currency: str
    amount_minor: int
    begun_at: datetime
    attempts: int
    last_problem: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A transaction that the two sides do not say the same of; None where a side does not know it."""

    transaction_id: str
    what: str
    our_state: str | None
    our_amount_minor: int | None
    their_state: str | None
    their_amount_minor: int | None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What was found.  `ledger_difference_minor` by currency is 0 where the ledger says what the transactions say."""

    totals: list[Total]
    unfinished: list[Unfinished]
    ledger_difference_minor: Mapping[str, int]
    compared: int | None
    differing: int
    differences: list[Difference]

    @property
    def agrees(self) -> bool:
        """Whether nothing differs; what is unfinished is no difference."""
        return not self.differing and not any(self.ledger_difference_minor.values())

    def document(self) -> dict[str, Any]:
        """It as JSON."""
        return {"agrees": self.agrees, **asdict(self)}


def reconcile(
    conn: psycopg.Connection[Any],
    operator_id: UUID,
    statement: Iterable[str] | None = None,
    *,
    begun_from: datetime | None = None,
    begun_before: datetime | None = None,
) -> Reconciliation:
    """Compares an operator's transactions with the ledger, and with a statement of the wallet's where there is one.

    `statement` is the text of a CSV file by lines, with the columns transaction_id, amount_minor and state (``done``,
    ``refused``, ``cancelled``); others are not read.  It has to cover the time that is asked for.  `SetUpError` says
    what is wrong with it.  Everything is read at one instant.
    """
    period = {"operator": operator_id, "from": begun_from, "before": begun_before, "most": DIFFERENCES_MAX}
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        compared, found = None, []
        if statement is not None:
            compared = _load(conn, statement)
            found = conn.execute(_DIFFERENCES, period).fetchall()
        with conn.cursor(row_factory=class_row(Total)) as cursor:
            totals = cursor.execute(_TOTALS, period).fetchall()
        with conn.cursor(row_factory=class_row(Unfinished)) as cursor:
            unfinished = cursor.execute(_UNFINISHED, period).fetchall()
        ledger = dict(conn.execute(_LEDGER, period).fetchall())
    return Reconciliation(
        totals,
        unfinished,
        ledger,
        compared,
        differing=found[0][0] if found else 0,
        differences=[Difference(*row) for _, *row in found],
    )


_TOTALS: Final = """
    SELECT c.currency, CASE c.purpose WHEN 'stake' THEN 'debit' ELSE 'credit' END AS direction, t.state,
        count(*) AS transactions, sum(t.amount_minor)::bigint AS amount_minor
    FROM wallet_transaction AS t JOIN wallet_call AS c USING (transaction_id)
    WHERE t.operator_id = %(operator)s AND (%(from)s::timestamptz IS NULL OR t.begun_at >= %(from)s)
      AND (%(before)s::timestamptz IS NULL OR t.begun_at < %(before)s)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

_UNFINISHED: Final = """
    SELECT t.transaction_id, t.round_id, c.player, t.purpose, t.wager, t.state, c.currency, t.amount_minor, t.begun_at,
        t.attempts, t.last_problem
    FROM wallet_transaction AS t JOIN wallet_call AS c USING (transaction_id)
    WHERE t.operator_id = %(operator)s AND t.ended_at IS NULL ORDER BY t.begun_at
"""

# What the world outside has put in, less what it has taken out: by the transfers, and by the transactions.
_LEDGER: Final = """
    SELECT l.currency, (
        (SELECT coalesce(sum(CASE m.kind WHEN 'wallet_debit' THEN m.amount_minor ELSE -m.amount_minor END), 0)
         FROM transfer AS m WHERE m.ledger_id = l.ledger_id AND m.kind IN ('wallet_debit', 'wallet_credit'))
        - (SELECT coalesce(sum(CASE t.purpose WHEN 'stake' THEN t.amount_minor ELSE -t.amount_minor END), 0)
           FROM wallet_transaction AS t JOIN account AS a USING (account_id)
           WHERE a.ledger_id = l.ledger_id AND t.state = 'done'))::bigint
    FROM ledger AS l WHERE l.operator_id = %(operator)s AND l.mode = 'real' ORDER BY l.currency
"""

_DIFFERENCES: Final = """
    SELECT count(*) OVER (), coalesce(o.transaction_id::text, s.transaction_id) AS transaction_id,
        CASE WHEN o.transaction_id IS NULL THEN 'the wallet knows it, we do not'
             WHEN s.transaction_id IS NULL THEN 'we had it done, the wallet does not know it'
             WHEN o.amount_minor <> s.amount_minor THEN 'the amounts differ'
             ELSE 'one side has it done, the other has not' END AS what,
        o.state AS our_state, o.amount_minor AS our_amount_minor,
        s.state AS their_state, s.amount_minor AS their_amount_minor
    FROM (
        SELECT t.transaction_id, t.state, t.amount_minor FROM wallet_transaction AS t
        WHERE t.operator_id = %(operator)s AND (%(from)s::timestamptz IS NULL OR t.begun_at >= %(from)s)
          AND (%(before)s::timestamptz IS NULL OR t.begun_at < %(before)s)
    ) AS o
    FULL JOIN statement AS s ON s.transaction_id = o.transaction_id::text
    WHERE CASE WHEN o.transaction_id IS NULL
               THEN s.state = 'done' AND NOT EXISTS (
                   SELECT FROM wallet_transaction AS t WHERE t.transaction_id::text = s.transaction_id
                     AND t.operator_id = %(operator)s)
               WHEN s.transaction_id IS NULL THEN o.state = 'done'
               ELSE o.amount_minor <> s.amount_minor
                 OR (o.state NOT IN ('pending', 'cancelling') AND (o.state = 'done') <> (s.state = 'done')) END
    ORDER BY 2 LIMIT %(most)s
"""


def _load(conn: psycopg.Connection[Any], statement: Iterable[str]) -> int:
    conn.execute("DROP TABLE IF EXISTS pg_temp.statement")
    conn.execute(
        "CREATE TEMPORARY TABLE statement (transaction_id text PRIMARY KEY, amount_minor bigint, state text)"
        " ON COMMIT DROP"
    )
    lines = 0
    try:
        with conn.cursor() as cursor, cursor.copy("COPY pg_temp.statement FROM STDIN") as copy:
            for row in _rows(statement):
                copy.write_row(row)
                lines += 1
    except psycopg.errors.UniqueViolation as twice:
        raise SetUpError("The statement has a transaction twice; each has one line.") from twice
    return lines


def _rows(statement: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    reader = csv.DictReader(statement)
    try:
        missing = {"transaction_id", "amount_minor", "state"} - set(reader.fieldnames or ())
        if missing:
            raise SetUpError(f"The statement's first line lacks the columns {', '.join(sorted(missing))}.")
        for row in reader:
            yield _row(row, reader.line_num)
    except (UnicodeDecodeError, csv.Error) as unreadable:
        raise SetUpError(
            f"The statement cannot be read beyond line {reader.line_num}: it has to be CSV in UTF-8."
        ) from unreadable


def _row(row: Mapping[str, str], line: int) -> tuple[str, int, str]:
    try:
        transaction_id, amount_minor = UUID(row["transaction_id"]), int(row["amount_minor"])
    except (ValueError, TypeError, AttributeError):
        amount_minor = -1
    if not 0 <= amount_minor <= MINOR_MAX:
        raise SetUpError(
            f"Line {line} of the statement has no transaction_id, or no whole amount_minor from 0 to {MINOR_MAX}."
        )
    if row["state"] not in ("done", "refused", "cancelled"):
        raise SetUpError(
            f"Line {line} of the statement has a state that is none of done, refused, cancelled."
        )
    return str(transaction_id), amount_minor, row["state"]
