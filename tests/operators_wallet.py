"""A service with an operator whose players' money is in a wallet of its own: the sandbox wallet, over HTTP."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import requests

from casino_brag.catalogue.operators import Funding, add_operator, set_wallet
from casino_brag.cli.installation import seal_keys
from casino_brag.sealing import Sealer
from tests.running import Operator, Player, RunningService, code_of
from tests.sandbox_wallet import SandboxWallet, sandbox_wallet

HEALED_SECONDS = 60
PASSING = {"wallet_unavailable", "request_in_progress", "payout_pending", "busy", "database_unavailable"}


@dataclass
class Casino:
    """An operator, its wallet, and the service that both belong to."""

    service: RunningService
    wallet: SandboxWallet
    operator: Operator

    def player(self, amount_minor: int = 100_000, currency: str = "GBP", **wanted: Any) -> Player:
        """A session of a new player, who has that much at the wallet.

        Asked for as a back end does it, again while the answer says so: a database may have been killed just now.
        """
        name = wanted.pop("player", "") or secrets.token_hex(6)
        self.wallet.fund(name, currency, amount_minor)
        ask = partial(self.operator.open_session, player=name, currency=currency, mode="real", **wanted)
        answer = insisted(ask)[-1]
        assert answer.status_code == 201, answer.text
        return Player(self.operator.base, answer.json()["token"], name=name)

    def void(self, round_id: str, key: str = "") -> requests.Response:
        """Has a round voided by the operator."""
        return self.operator.send(
            "POST",
            f"/v1/operator/rounds/{round_id}/void",
            {"reason": "a trial", "approver": "a lead"},
            headers={"Idempotency-Key": key or secrets.token_hex(8)},
        )

    def unfinished(self) -> int:
        """How many transactions the wallet has not given its word on."""
        with self.service.connect() as conn:
            row = conn.execute(
                "SELECT count(*) FROM wallet_transaction JOIN operator USING (operator_id)"
                " WHERE name = %s AND ended_at IS NULL",
                [self.operator.name],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def wait_until_finished(self) -> None:
        """Waits, for a bounded time, until nothing is unfinished."""
        wait_until(lambda: self.unfinished() == 0)

    def statement(self) -> dict[str, tuple[str, int]]:
        """What the wallet has on record of our transactions: state and amount by id."""
        return {
            line["transaction_id"]: (line["state"], int(line["amount_minor"]))
            for line in self.wallet.statement()
        }

    def moved(self, player: Player) -> list[tuple[str, str, int]]:
        """What the wallet was asked about a player, as wager, state and amount, in order."""
        return [
            (line["wager"], line["state"], int(line["amount_minor"]))
            for line in self.wallet.statement()
            if line["player"] == player.name
        ]

    def recorded(self) -> dict[str, tuple[str, int]]:
        """What we have on record of them, and of those of other operators with the same wallet."""
        with self.service.connect() as conn:
            rows = conn.execute(
                "SELECT transaction_id::text, t.state, amount_minor FROM wallet_transaction AS t"
                " JOIN operator USING (operator_id) WHERE wallet_url = %s",
                [self.wallet.url],
            ).fetchall()
        return {transaction_id: (state, amount) for transaction_id, state, amount in rows}

    def must_agree(self) -> None:
        """Both books say the same of everything that moved money, and the laws of ours hold."""
        ours, theirs = self.recorded(), self.statement()
        assert {key: said for key, said in ours.items() if said[0] == "done"} == {
            key: said for key, said in theirs.items() if said[0] == "done"
        }
        assert self.service.broken_laws() == {}
        self.wallet.books()


def insisted(
    send: Callable[[], requests.Response], seconds: float = HEALED_SECONDS
) -> list[requests.Response]:
    """Sends a request until its answer is not that it should be sent again: all answers, the definite one last.

    An answer that never came, as its connection broke, is none of them.
    """
    answers: list[requests.Response] = []
    deadline = time.monotonic() + seconds
    while True:
        try:
            answers.append(send())
            if answers[-1].status_code < 400 or code_of(answers[-1]) not in PASSING:
                return answers
        except requests.ConnectionError:
            pass
        assert time.monotonic() < deadline, (
            f"no definite answer in {seconds} s: {answers and answers[-1].text}"
        )
        time.sleep(0.2)


def wait_until(holds: Callable[[], bool], seconds: float = HEALED_SECONDS) -> None:
    """Waits until something holds; fails when it does not within the time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about in {seconds} s"
        time.sleep(0.1)


@contextmanager
def casino(directory: Path, service: RunningService, *, funding: str = "two_debits") -> Iterator[Casino]:
    """An operator with a sandbox wallet, at a service that runs."""
    directory.mkdir(parents=True, exist_ok=True)
    with sandbox_wallet(directory, options=("--fund", "0")) as wallet:
        operator = service.operator(None, "--wallet", wallet.url, "--funding", funding)
        wallet.set_keys((operator.key_id, operator.secret))
        yield Casino(service, wallet, operator)


@contextmanager
def casinos(directory: Path, service: RunningService, fundings: Sequence[str]) -> Iterator[list[Casino]]:
    """Operators that share one wallet, so that many tales of it can be played at the same time."""
    directory.mkdir(parents=True, exist_ok=True)
    sealer = Sealer(seal_keys(service.data_dir))
    with sandbox_wallet(directory, options=("--fund", "0")) as wallet:
        operators = []
        with service.connect() as conn, conn.transaction():
            for funding in fundings:
                made = add_operator(conn, sealer, "op-" + secrets.token_hex(4), actor="system:tests")
                set_wallet(conn, made.operator, wallet.url, Funding(funding), actor="system:tests")
                operators.append(Operator(service.base, made.operator, made.key_id, made.secret))
        wallet.set_keys(*((operator.key_id, operator.secret) for operator in operators))
        yield [Casino(service, wallet, operator) for operator in operators]
