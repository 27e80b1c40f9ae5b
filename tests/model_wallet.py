"""An operator's wallet as a model: it keeps its books in memory, and goes wrong when and how it is told to."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from casino_brag.catalogue.operators import Funding, set_wallet
from casino_brag.wallet.seamless import Operation, Reply, Verdict, Wallet, Wallets
from casino_brag.web.service import EXTENSION
from tests.inprocess import AppHouse
from tests.running import Operator


class Killed(BaseException):
    """The process ends here: whatever it had not written is not written."""


class Course(StrEnum):
    """What becomes of a call."""

    DONE = "done"
    """It is done and answered."""
    REFUSED = "refused"
    """A debit is refused; anything else is not done this time."""
    UNHEARD = "unheard"
    """It is done, and the answer is lost."""
    LOST = "lost"
    """It does not arrive, as far as anybody can tell."""
    LATE = "late"
    """It does not arrive until later, when it is forgotten or cancelled."""
    NEVER_SENT = "never sent"
    """There was nobody to send it to."""
    KILLED_BEFORE = "killed before"
    """Whoever asks ends before the wallet has heard."""
    KILLED_AFTER = "killed after"
    """Whoever asks ends when it is done, before it has heard."""


UNKNOWN = Reply(Verdict.UNKNOWN, problem="The model does not answer.")

Rule = Callable[[Operation], Reply | None]
"""What calls are answered instead of what the wallet says; None lets its answer through."""


def nothing(_: Operation) -> None:
    """The rule by which everything goes well."""


class ModelWallets:
    """In the place of the calls of a process to all wallets.

    `courses` is what becomes of the next calls, in order; `left_alone` how often it is said that none would be tried.
    `before` and `after` are asked at every call: before the wallet has heard of it, and when it has done it.
    """

    def __init__(self, funds_minor: int = 0) -> None:
        self._lock = threading.Lock()
        self.before: Rule = nothing
        self.after: Rule = nothing
        self.balances: defaultdict[str, int] = defaultdict(lambda: funds_minor)
        self.states: dict[str, str] = {}
        """By transaction: done, refused, cancelled (it was done before), or unseen (cancelled before it came)."""
        self.courses: list[Course] = []
        self.left_alone = 0
        self._late: list[tuple[Operation, Mapping[str, Any]]] = []

    def available(self, _: UUID) -> bool:
        """Whether a call would be tried."""
        self.left_alone -= 1
        return self.left_alone < 0

    def call(self, _: Wallet, operation: Operation, body: Mapping[str, Any]) -> Reply:
        """Asks once."""
        with self._lock:
            if operation is Operation.BALANCE:
                return Reply(Verdict.DONE, self.balances[body["player"]])
            return self.before(operation) or self._call(operation, body)

    def _call(self, operation: Operation, body: Mapping[str, Any]) -> Reply:
        course = self.courses.pop(0) if self.courses else Course.DONE
        match course:
            case Course.REFUSED if operation is Operation.DEBIT:
                self.states.setdefault(body["transaction_id"], "refused")
                return self._do(operation, body)
            case Course.DONE:
                done = self._do(operation, body)
                return self.after(operation) or done
            case Course.UNHEARD:
                self._do(operation, body)
            case Course.LATE:
                self._late.append((operation, body))
            case Course.KILLED_BEFORE:
                raise Killed
            case Course.KILLED_AFTER:
                self._do(operation, body)
                raise Killed
            case Course.NEVER_SENT:
                return Reply(Verdict.UNKNOWN, problem="The model is not there.", sent=False)
        return UNKNOWN

    def deliver(self) -> None:
        """What is late arrives."""
        for operation, body in self._late:
            self._do(operation, body)
        self._late.clear()

    def _do(self, operation: Operation, body: Mapping[str, Any]) -> Reply:
        known, key, player, amount = None, body["transaction_id"], body["player"], body["amount_minor"]
        known = self.states.get(key)
        if operation is Operation.CANCEL:
            if known == "done":
                self.balances[player] += amount
            self.states[key] = {"done": "cancelled", None: "unseen"}.get(known, known or "")
            verdict = Verdict.DONE if known in ("done", "cancelled") else Verdict.NOT_FOUND
            return Reply(verdict, self.balances[player])
        if known is None:
            change = amount if operation is Operation.CREDIT else -amount
            self.states[key] = "done" if self.balances[player] + change >= 0 else "refused"
            self.balances[player] += change if self.states[key] == "done" else 0
        if self.states[key] == "done":
            return Reply(Verdict.DONE, self.balances[player])
        return Reply(Verdict.REFUSED, self.balances[player], "insufficient_funds")


def unanswered(*operations: str, after: int = 0) -> Rule:
    """A rule by which calls of these operations get no answer, but for the first few."""
    left = after

    def rule(operation: Operation) -> Reply | None:
        nonlocal left
        if operation not in operations:
            return None
        left -= 1
        return None if left >= 0 else UNKNOWN

    return rule


@contextmanager
def wallet_in(app_house: AppHouse, wallets: ModelWallets, funding: str = "two_debits") -> Iterator[Operator]:
    """An operator whose players' money is in this wallet; the application asks it for the length of the block."""
    operator = app_house.new_operator()
    with app_house.connect() as conn:
        set_wallet(conn, operator.name, "http://127.0.0.1:1/wallet", Funding(funding), actor="system:tests")
    before = app_house.service
    house = replace(before.house, wallets=cast(Wallets, wallets))
    app_house.app.extensions[EXTENSION] = replace(before, house=house)
    try:
        yield operator
    finally:
        app_house.app.extensions[EXTENSION] = before
