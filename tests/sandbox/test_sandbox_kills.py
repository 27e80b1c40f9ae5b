"""The wallet killed under load: what it answered is in its books, and its books balance."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.sandbox_wallet import SandboxWallet, payout, sandbox_wallet, stake

PLAYERS = [f"p{number}" for number in range(6)]
KILLS = 2


@dataclass
class Caller:
    """One player's round after round; what was answered is noted, what was not is left."""

    wallet: SandboxWallet
    player: str
    until: threading.Event
    answered: list[tuple[str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    unanswered: int = 0

    def run(self) -> None:
        chance = random.Random(self.player)
        while not self.until.is_set():
            ante = stake(self.player, chance.randint(1, 300))
            self.call("debit", ante)
            if chance.random() < 0.4:
                self.call("cancel", ante)
            else:
                self.call("credit", payout(self.player, chance.randint(0, 600), round_id=ante["round_id"]))

    def call(self, operation: str, body: dict[str, Any]) -> None:
        try:
            response = self.wallet.call(operation, body, timeout=10)
        except requests.RequestException:
            self.unanswered += 1
            time.sleep(0.01)
            return
        assert response.status_code == 200, response.text
        self.answered.append((operation, body, response.json()))


def expected(operation: str, status: str) -> set[str]:
    if operation == "cancel":
        return {"cancelled"} if status == "done" else {"cancelled", "refused"}
    # A debit that was done may have been cancelled since.
    return {"done", "cancelled"} if status == "done" else {"refused", "cancelled"}


def test_what_was_answered_outlives_every_kill(tmp_path: Path) -> None:
    chance = random.Random(5)
    with sandbox_wallet(tmp_path, ("k", "sk"), options=("--fund", "2000")) as wallet:
        until = threading.Event()
        callers = [Caller(wallet, player, until) for player in PLAYERS]
        threads = [threading.Thread(target=caller.run) for caller in callers]
        for thread in threads:
            thread.start()
        try:
            for _ in range(KILLS):
                time.sleep(0.5 + chance.random() / 2)
                wallet.kill()
                wallet.start()
        finally:
            until.set()
            for thread in threads:
                thread.join(timeout=30)

        assert sum(caller.unanswered for caller in callers) > 0, "no kill hit a call"
        books = wallet.books()
        assert all(balance >= 0 for purse in books["balances"].values() for balance in purse.values())
        states = {line["transaction_id"]: line["state"] for line in wallet.statement()}
        answered = [call for caller in callers for call in caller.answered]
        assert len(answered) > 100
        for operation, body, answer in answered:
            assert states.get(body["transaction_id"]) in expected(operation, answer["status"])
        for operation, body, answer in answered[::20]:
            if operation != "debit":  # sent again, it is answered as before
                assert wallet.answer(operation, body)["status"] == answer["status"]
        assert wallet.books()["balances"] == books["balances"]
