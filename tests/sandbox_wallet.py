"""Starts `casino-brag sandbox-wallet` as an integrator would, and calls it as the service does."""

from __future__ import annotations

import csv
import json
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import requests

from casino_brag.catalogue.signing import signature
from tests.forked import Forked
from tests.running import free_port

START_SECONDS = 30
STOP_SECONDS = 30
CALL_SECONDS = 15


def stake(player: str, amount_minor: int, **other: Any) -> dict[str, Any]:
    """The body of a debit, and of its cancel: of an ante of a new round, unless `other` members say otherwise."""
    return _transfer(player, amount_minor, "ante", closes=False) | other


def payout(player: str, amount_minor: int, **other: Any) -> dict[str, Any]:
    """The body of a credit."""
    return _transfer(player, amount_minor, "payout", closes=True) | other


def _transfer(player: str, amount_minor: int, wager: str, *, closes: bool) -> dict[str, Any]:
    return {
        "transaction_id": str(uuid4()),
        "round_id": str(uuid4()),
        "game": "three-card-brag",
        "wager": wager,
        "amount_minor": amount_minor,
        "currency": "GBP",
        "player": player,
        "round_closed": closes,
    }


class SandboxWallet:
    """A wallet in a process of its own, which can be killed and started again with the same books and port."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.keys_file = directory / "sandbox-wallet.keys"
        self.file = directory / "sandbox-wallet.sqlite3"
        self.log_path = directory / "sandbox-wallet.log"
        self.process: Forked | None = None
        self._keys: tuple[tuple[str, str], ...] = ()
        self._options = options

    def set_keys(self, *keys: tuple[str, str]) -> None:
        """Whose signatures hold from now on, as (key id, secret); `call` signs with the first."""
        self._keys = keys
        aside = self.keys_file.with_suffix(".new")
        aside.write_text("".join(f"{key_id}:{secret}\n" for key_id, secret in keys))
        aside.replace(self.keys_file)

    def start(self) -> None:
        """Starts the command and waits until it answers."""
        words = ["sandbox-wallet", "--port", str(self.port), "--file", str(self.file)]
        words += ["--keys", str(self.keys_file), *self._options]
        self.process = Forked(*words, log=self.log_path)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log()
            try:
                if requests.get(self.url + "/faults", timeout=5).status_code == 200:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.05)
        raise AssertionError(f"the wallet did not answer in {START_SECONDS} s:\n{self.log()}")

    def kill(self) -> None:
        """Ends it at once, as a power cut would."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait(timeout=STOP_SECONDS)

    def stop(self) -> int:
        """Ends it in order and returns its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_SECONDS)
            raise

    def log(self) -> str:
        """Everything it has printed."""
        return self.log_path.read_text(errors="replace")

    def call(
        self,
        operation: str,
        body: Any,
        *,
        key: tuple[str, str] | None = None,
        operator: str = "tests",
        timestamp: int | None = None,
        nonce: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = CALL_SECONDS,
    ) -> requests.Response:
        """A signed call; a body of bytes is sent as it is, and `headers` go on top of the signed ones."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        key_id, secret = key or self._keys[0]
        stamp, once = str(timestamp or int(time.time())), nonce or secrets.token_hex(16)
        signed = {
            "Content-Type": "application/json",
            "X-Operator": operator,
            "X-Key-Id": key_id,
            "X-Timestamp": stamp,
            "X-Nonce": once,
            "X-Signature": signature(secret, "POST", f"/{operation}", stamp, once, sent),
        }
        return requests.post(
            f"{self.url}/{operation}", data=sent, headers=signed | (headers or {}), timeout=timeout
        )

    def answer(self, operation: str, body: Any) -> dict[str, Any]:
        """The definite answer to a call."""
        answered = self.call(operation, body)
        assert answered.status_code == 200, answered.text
        return dict(answered.json())

    def faults(self, *rules: dict[str, Any], seed: int | None = None) -> None:
        """Puts these rules in the place of all others."""
        put = requests.put(
            self.url + "/faults", json={"rules": list(rules), "seed": seed}, timeout=CALL_SECONDS
        )
        assert put.status_code == 200, put.text

    def heal(self) -> None:
        """Nothing goes wrong from now on; calls that wait already wait on."""
        requests.delete(self.url + "/faults", timeout=CALL_SECONDS).raise_for_status()

    def struck(self) -> list[int]:
        """How often each rule in force has struck."""
        return [rule["struck"] for rule in self._get("/faults").json()["rules"]]

    def books(self) -> dict[str, Any]:
        """Balances by player and currency, and the sums behind them, which agree."""
        books = dict(self._get("/books").json())
        assert books["broken"] == []
        held = sum(sum(purse.values()) for purse in books["balances"].values())
        assert held == books["funded"] - books["debited_done"] + books["credited"]
        return books

    def balance_minor(self, player: str, currency: str = "GBP") -> int:
        """What a player has."""
        return int(self._get(f"/players/{player}", currency=currency).json()["balance_minor"])

    def fund(self, player: str, currency: str, amount_minor: int) -> dict[str, Any]:
        """Gives a player money from nowhere."""
        body = {"currency": currency, "amount_minor": amount_minor}
        given = requests.post(f"{self.url}/players/{player}/fund", json=body, timeout=CALL_SECONDS)
        assert given.status_code == 200, given.text
        return dict(given.json())

    def statement(self) -> list[dict[str, str]]:
        """Every transaction, in the order in which they first came."""
        return list(csv.DictReader(StringIO(self._get("/statement.csv").text, newline="")))

    def state(self, transaction_id: str) -> str | None:
        """What became of a transaction; None when it was never seen."""
        found = [line["state"] for line in self.statement() if line["transaction_id"] == transaction_id]
        assert len(found) < 2
        return found[0] if found else None

    def _get(self, path: str, **query: str) -> requests.Response:
        got = requests.get(self.url + path, params=query, timeout=CALL_SECONDS)
        assert got.status_code == 200, got.text
        return got


@contextmanager
def sandbox_wallet(
    directory: Path, *keys: tuple[str, str], options: tuple[str, ...] = ()
) -> Iterator[SandboxWallet]:
    """Runs until the block ends.  Without keys nobody is let in until `set_keys`; `options` go to the command."""
    wallet = SandboxWallet(directory, *options)
    wallet.set_keys(*keys)
    try:
        wallet.start()
        yield wallet
    finally:
        wallet.stop()
