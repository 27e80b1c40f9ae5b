"""The wallet's books in one SQLite file: whatever was answered is on the disk, and every call is one transaction."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from casino_brag.errors import Code, ServiceError
from casino_brag.game.rules import MINOR_MAX
from casino_brag.sandbox.messages import Answer, Direction, Purse, Reason, Status, Transfer
from casino_brag.wallet.currency import exponent

BUSY_SECONDS: Final = 5
"""How long a call waits for those before it, and for another process that uses the file."""

_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS account (
    player TEXT NOT NULL,
    currency TEXT NOT NULL,
    funded_minor INTEGER NOT NULL CHECK (funded_minor BETWEEN 0 AND {MINOR_MAX}),
    balance_minor INTEGER NOT NULL CHECK (balance_minor BETWEEN 0 AND {MINOR_MAX}),
    PRIMARY KEY (player, currency)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS operation (
    transaction_id TEXT NOT NULL PRIMARY KEY,
    direction TEXT NOT NULL CHECK (direction IN ('debit', 'credit')),
    round_id TEXT NOT NULL,
    game TEXT NOT NULL,
    wager TEXT NOT NULL,
    amount_minor INTEGER NOT NULL CHECK (amount_minor BETWEEN 0 AND {MINOR_MAX}),
    currency TEXT NOT NULL,
    player TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('done', 'refused', 'cancelled')),
    reason TEXT CHECK ((reason IS NULL) = (state = 'done')),
    made_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS nonce (
    key_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (key_id, nonce)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS nonce_until ON nonce (until);
"""

STATEMENT_COLUMNS: Final = (
    *("transaction_id", "direction", "wager", "round_id", "player", "currency"),
    *("amount_minor", "state", "made_at"),
)


class State(StrEnum):
    """What became of a transaction."""

    DONE = "done"
    """The money moved."""
    REFUSED = "refused"
    """Nothing moved.  Final for a debit; a credit that is sent again is tried again."""
    CANCELLED = "cancelled"
    """Nothing moved, or what moved went back."""


_RETURNED: Final = "returned"
"""The reason of a cancelled debit whose money went back."""

_NEVER_SEEN: Final = "never_seen"
"""The reason of one that was cancelled before it came."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    transfer: Transfer
    state: State
    reason: str | None


class Ledger:
    """The books within one transaction.  A player's account is opened, and funded, on first mention."""

    def __init__(self, connection: sqlite3.Connection, fund_minor: int, now: datetime) -> None:
        self._connection = connection
        self._fund_minor = fund_minor
        self._now = now

    def take_nonce(self, key_id: str, nonce: str, until: int) -> bool:
        """True the first time a key's nonce is seen; it is remembered until `until`, in Unix seconds."""
        self._connection.execute("DELETE FROM nonce WHERE until < ?", [int(self._now.timestamp())])
        taken = self._connection.execute(
            "INSERT INTO nonce VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [key_id, nonce, until]
        )
        return taken.rowcount == 1

    def debit(self, transfer: Transfer, refusal: str | None = None) -> Answer:
        """Takes a stake, once; with a `refusal` a debit that is new is refused for that reason."""
        found = self._find(transfer.transaction_id)
        if found is None:
            return self._settle(transfer, refusal or self._move(transfer, -transfer.amount_minor))
        if found.transfer != transfer:
            return _MISMATCH
        if found.state is State.CANCELLED:
            return self._answer(transfer, Reason.CANCELLED)
        return self._answer(transfer, found.reason)

    def credit(self, transfer: Transfer, refusal: str | None = None) -> Answer:
        """Pays, once; what was refused before is tried again, since a payout is owed until it is paid."""
        found = self._find(transfer.transaction_id)
        if found is not None and found.transfer != transfer:
            return _MISMATCH
        if found is not None and found.state is State.DONE:
            return self._answer(transfer, None)
        return self._settle(transfer, refusal or self._move(transfer, transfer.amount_minor))

    def cancel(self, debit: Transfer, refusal: str | None = None) -> Answer:
        """Gives a debit back, once; one that was never seen is remembered, and refused should it come.

        With a `refusal` nothing is done this time.
        """
        if refusal:
            return self._answer(debit, refusal)
        found = self._find(debit.transaction_id)
        if found is None:
            self._record(debit, State.CANCELLED, _NEVER_SEEN)
            return self._not_found(debit)
        if found.transfer != debit:
            return _MISMATCH
        if found.state is State.REFUSED or found.reason == _NEVER_SEEN:
            return self._not_found(debit)
        if found.state is State.DONE:
            if obstacle := self._move(debit, debit.amount_minor):
                return self._answer(debit, obstacle)
            self._record(debit, State.CANCELLED, _RETURNED)
        return self._answer(debit, None)

    def balance(self, purse: Purse, refusal: str | None = None) -> Answer:
        """What a player has; with a `refusal` that is refused."""
        return self._answer(purse, refusal)

    def fund(self, purse: Purse, amount_minor: int) -> Answer:
        """Gives a player money from nowhere, each time it is called."""
        account = self._account(purse)
        if account is None:
            return self._answer(purse, Reason.CURRENCY_UNKNOWN)
        if amount_minor + max(account) > MINOR_MAX:
            return self._answer(purse, Reason.LIMIT_REACHED)
        self._connection.execute(
            "UPDATE account SET balance_minor = balance_minor + ?1, funded_minor = funded_minor + ?1"
            " WHERE player = ?2 AND currency = ?3",
            [amount_minor, purse.player, purse.currency],
        )
        return self._answer(purse, None)

    def books(self) -> dict[str, Any]:
        """Every balance, and where it comes from: balance = funded - debits that are done + credits.

        The three sums are over all currencies; `broken` lists the accounts of which that is not so, always none.
        """
        balances: defaultdict[str, dict[str, int]] = defaultdict(dict)
        funded = debited = credited = 0
        broken = []
        for player, currency, balance, given, taken, paid in self._connection.execute(
            "SELECT player, currency, balance_minor, funded_minor,"
            " coalesce(sum(amount_minor) FILTER (WHERE direction = 'debit' AND state = 'done'), 0),"
            " coalesce(sum(amount_minor) FILTER (WHERE direction = 'credit' AND state = 'done'), 0)"
            " FROM account LEFT JOIN operation USING (player, currency) GROUP BY player, currency"
        ):
            balances[player][currency] = balance
            funded, debited, credited = funded + given, debited + taken, credited + paid
            if balance != given - taken + paid:
                broken.append({"player": player, "currency": currency})
        return {
            "balances": balances,
            "funded": funded,
            "debited_done": debited,
            "credited": credited,
            "broken": broken,
        }

    def _find(self, transaction_id: str) -> _Recorded | None:
        row = self._connection.execute(
            "SELECT transaction_id, direction, round_id, game, wager, amount_minor, currency, player, state, reason"
            " FROM operation WHERE transaction_id = ?",
            [transaction_id],
        ).fetchone()
        if row is None:
            return None
        first, direction, *content, state, reason = row
        return _Recorded(Transfer(first, Direction(direction), *content), State(state), reason)

    def _settle(self, transfer: Transfer, refusal: str | None) -> Answer:
        self._record(transfer, State.REFUSED if refusal else State.DONE, refusal)
        return self._answer(transfer, refusal)

    def _record(self, transfer: Transfer, state: State, reason: str | None) -> None:
        made_at = self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._connection.execute(
            "INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (transaction_id) DO UPDATE SET state = excluded.state, reason = excluded.reason",
            [*astuple(transfer), state, reason, made_at],
        )

    def _account(self, purse: Purse | Transfer) -> tuple[int, int] | None:
        """What an account holds and what it was funded with; None for a currency that is not known."""
        if exponent(purse.currency) is None:
            return None
        key = [purse.player, purse.currency]
        self._connection.execute(
            "INSERT INTO account VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO NOTHING", [*key, self._fund_minor]
        )
        balance, funded = self._connection.execute(
            "SELECT balance_minor, funded_minor FROM account WHERE player = ? AND currency = ?", key
        ).fetchone()
        return balance, funded

    def _move(self, transfer: Transfer, change_minor: int) -> Reason | None:
        """Changes a balance; where it may not be what it would become, why not, and nothing is changed."""
        account = self._account(transfer)
        if account is None:
            return Reason.CURRENCY_UNKNOWN
        after = account[0] + change_minor
        if after < 0:
            return Reason.INSUFFICIENT_FUNDS
        if after > MINOR_MAX:
            return Reason.LIMIT_REACHED
        self._connection.execute(
            "UPDATE account SET balance_minor = ? WHERE player = ? AND currency = ?",
            [after, transfer.player, transfer.currency],
        )
        return None

    def _answer(self, purse: Purse | Transfer, refusal: str | None) -> Answer:
        account = self._account(purse)
        if account is None:
            return Answer(Status.REFUSED, reason=refusal or Reason.CURRENCY_UNKNOWN)
        return Answer(Status.REFUSED if refusal else Status.DONE, account[0], refusal)

    def _not_found(self, debit: Transfer) -> Answer:
        account = self._account(debit)
        return Answer(Status.NOT_FOUND, None if account is None else account[0])


_MISMATCH: Final = Answer(Status.REFUSED, reason=Reason.TRANSACTION_MISMATCH)


class Store:
    """The file.  One connection writes, for one call at a time; SQLite has one writer anyway."""

    def __init__(self, file: Path, *, fund_minor: int) -> None:
        self._file = file
        self._fund_minor = fund_minor
        self._turn = threading.Lock()
        self._connection = self._connect()
        self._connection.executescript(_SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[Ledger]:
        """All that is done to the books in the block, or nothing if it raises; on the disk when it is left.

        Raises `ServiceError`: busy, and ``sqlite3.OperationalError`` where the file cannot be written.
        """
        if not self._turn.acquire(timeout=BUSY_SECONDS):
            raise ServiceError(Code.BUSY, "Other calls are being worked on. Call again.")
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                yield Ledger(self._connection, self._fund_minor, datetime.now(UTC))
        finally:
            self._turn.release()

    def statement(self) -> Iterator[tuple[Any, ...]]:
        """Every transaction as `STATEMENT_COLUMNS`, in the order in which they first came, as of one moment."""
        with closing(self._connect()) as connection:
            yield from connection.execute(
                f"SELECT {', '.join(STATEMENT_COLUMNS)} FROM operation ORDER BY rowid"  # noqa: S608 - our own names
            )

    def close(self) -> None:
        """Closes the file, after which nothing can be asked."""
        self._connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection
