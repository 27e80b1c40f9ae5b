"""The books against a simple model, whatever is called in whatever order."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from casino_brag.errors import Code, ServiceError
from casino_brag.game.rules import MINOR_MAX
from casino_brag.sandbox import store as store_module
from casino_brag.sandbox.messages import Answer, Direction, Purse, Reason, Status, Transfer
from casino_brag.sandbox.store import Ledger, Store

FUND = 1000
AMOUNTS = [1, 300, 1000, MINOR_MAX - 500]
PURSES = [Purse("a", "GBP"), Purse("b", "XBT")]


def transfer(number: int, direction: Direction, amount_minor: int, purse: Purse = PURSES[0]) -> Transfer:
    wager = "ante" if direction is Direction.DEBIT else "payout"
    first, round_id = str(UUID(int=number)), str(UUID(int=number // 4))
    return Transfer(first, direction, round_id, "game", wager, amount_minor, purse.currency, purse.player)


KNOWN = [
    transfer(number, Direction.CREDIT if number % 3 == 0 else Direction.DEBIT, amount_minor, purse)
    for number, (amount_minor, purse) in enumerate(product(AMOUNTS, PURSES))
]
STRANGE = st.builds(
    transfer,
    st.integers(0, len(KNOWN) - 1),
    st.sampled_from(Direction),
    st.sampled_from(AMOUNTS),
    st.sampled_from(PURSES),
)
TRANSFERS = st.one_of(*[st.sampled_from(KNOWN)] * 3, STRANGE)
"""Mostly the transfers that the ids belong to, so that they meet again; now and then others with the same ids."""


class Books(RuleBasedStateMachine):
    """Each transaction of the model is the transfer it stands for, with one word for its state."""

    @initialize()
    def open(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.file = Path(self.directory.name) / "books"
        self.store = Store(self.file, fund_minor=FUND)
        self.balances: dict[Purse, int] = {}
        self.known: dict[str, tuple[Transfer, str]] = {}

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.directory.cleanup()

    def moved(self, sent: Transfer, change_minor: int) -> Reason | None:
        purse = Purse(sent.player, sent.currency)
        after = self.balances.setdefault(purse, FUND) + change_minor
        if after < 0:
            return Reason.INSUFFICIENT_FUNDS
        if after > MINOR_MAX:
            return Reason.LIMIT_REACHED
        self.balances[purse] = after
        return None

    def answer(self, call: Callable[[Ledger, Transfer], Answer], sent: Transfer) -> tuple[Status, Any]:
        with self.store.transaction() as ledger:
            answer = call(ledger, sent)
        if answer.balance_minor is not None:
            purse = Purse(sent.player, sent.currency)
            assert answer.balance_minor == self.balances.setdefault(purse, FUND)
        return answer.status, answer.reason

    def known_otherwise(self, sent: Transfer) -> bool:
        return sent.transaction_id in self.known and self.known[sent.transaction_id][0] != sent

    @rule(sent=TRANSFERS)
    def pay_or_take(self, sent: Transfer) -> None:
        debit = sent.direction is Direction.DEBIT
        state = self.known.get(sent.transaction_id, (sent, "new"))[1]
        if self.known_otherwise(sent):
            expected: str | None = Reason.TRANSACTION_MISMATCH
        elif state == "new" or (state.startswith("refused") and not debit):
            expected = self.moved(sent, -sent.amount_minor if debit else sent.amount_minor)
            self.known[sent.transaction_id] = (sent, f"refused {expected}" if expected else "done")
        elif state.startswith("refused"):
            expected = state.removeprefix("refused ")
        else:
            expected = None if state == "done" else Reason.CANCELLED
        status = Status.REFUSED if expected else Status.DONE
        assert self.answer(Ledger.debit if debit else Ledger.credit, sent) == (status, expected)

    @rule(sent=TRANSFERS)
    def cancel(self, sent: Transfer) -> None:
        sent = replace(sent, direction=Direction.DEBIT, wager="ante")
        state = self.known.get(sent.transaction_id, (sent, "new"))[1]
        expected: tuple[Status, str | None] = Status.DONE, None
        if self.known_otherwise(sent):
            expected = Status.REFUSED, Reason.TRANSACTION_MISMATCH
        elif state == "new":
            self.known[sent.transaction_id] = (sent, "cancelled before")
            expected = Status.NOT_FOUND, None
        elif state.startswith("refused") or state == "cancelled before":
            expected = Status.NOT_FOUND, None
        elif state == "done":
            if obstacle := self.moved(sent, sent.amount_minor):
                expected = Status.REFUSED, obstacle
            else:
                self.known[sent.transaction_id] = (sent, "cancelled")
        assert self.answer(Ledger.cancel, sent) == expected

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = Store(self.file, fund_minor=FUND)

    @invariant()
    def the_books_are_the_models(self) -> None:
        if not hasattr(self, "store"):
            return
        with self.store.transaction() as ledger:
            books = ledger.books()
        assert books["broken"] == []
        held = {
            Purse(player, code): n for player, purse in books["balances"].items() for code, n in purse.items()
        }
        assert held == self.balances
        assert sum(held.values()) == books["funded"] - books["debited_done"] + books["credited"]
        states = {line[0]: line[7] for line in self.store.statement()}
        assert states == {first: state.split()[0] for first, (_, state) in self.known.items()}


TestBooks = Books.TestCase
TestBooks.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.generate],  # files are slow to shrink on
)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = Store(tmp_path / "books", fund_minor=FUND)
    yield opened
    opened.close()


def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    ante = transfer(1, Direction.DEBIT, 300)

    def fails() -> None:
        with store.transaction() as ledger:
            ledger.take_nonce("k", "n", 2**40)
            ledger.debit(ante)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert list(store.statement()) == []
    with store.transaction() as ledger:
        assert ledger.take_nonce("k", "n", 2**40)
        assert ledger.debit(ante) == Answer(Status.DONE, FUND - 300)


def test_a_nonce_is_forgotten_when_its_time_is_over(store: Store) -> None:
    with store.transaction() as ledger:
        assert ledger.take_nonce("k", "short", 1)
        assert ledger.take_nonce("k", "long", 2**40)
        assert ledger.take_nonce("k", "short", 1)
        assert not ledger.take_nonce("k", "long", 2**40)


def test_a_call_waits_for_others_for_a_bounded_time(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.05)
    with store.transaction(), pytest.raises(ServiceError) as busy, store.transaction():
        raise AssertionError("two calls at once")
    assert busy.value.code is Code.BUSY
    other = Store(tmp_path / "books", fund_minor=FUND)
    with store.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"), other.transaction():
        raise AssertionError("two processes at once")
    other.close()


def test_the_file_refuses_what_no_book_may_hold(store: Store, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "books")
    for balance in (-1, MINOR_MAX + 1, None):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT INTO account VALUES ('p', 'GBP', 0, ?)", [balance])
    connection.close()
