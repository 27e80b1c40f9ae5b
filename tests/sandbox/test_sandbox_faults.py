"""Every fault, on the running wallet: what the caller sees, and what the books say."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from casino_brag.cli.sandbox import sandbox_wallet as command
from casino_brag.errors import ServiceError, SetUpError
from casino_brag.sandbox.faults import GARBAGE, Faults, Kind, Rule, read_rules
from tests.sandbox_wallet import SandboxWallet, payout, sandbox_wallet, stake

FUND = 100_000
IMPATIENT = 0.3


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxWallet]:
    with sandbox_wallet(tmp_path_factory.mktemp("wallet"), ("k", "sk")) as started:
        yield started
        started.books()


@pytest.fixture
def wallet(running: SandboxWallet) -> Iterator[SandboxWallet]:
    yield running
    running.heal()


@pytest.fixture
def player() -> str:
    return "p-" + secrets.token_hex(6)


def eventually(wallet: SandboxWallet, transaction_id: str) -> str | None:
    """What has become of a transaction as soon as something has, or after some seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if (state := wallet.state(transaction_id)) is not None:
            return state
        time.sleep(0.05)
    return None


def test_a_refusal_has_the_reason_that_was_asked_for_and_is_final(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    wallet.faults({"operation": "debit", "kind": "refuse", "reason": "player_unknown", "times": 1})
    told = {"status": "refused", "reason": "player_unknown", "balance_minor": FUND}
    assert [wallet.answer("debit", ante) for _ in range(2)] == [told, told]
    assert wallet.answer("debit", stake(player, 100))["status"] == "done"


def test_a_refused_credit_is_paid_later(wallet: SandboxWallet, player: str) -> None:
    won = payout(player, 100)
    wallet.faults({"operation": "credit", "kind": "refuse", "times": 1})
    assert wallet.answer("credit", won)["reason"] == "player_blocked"
    assert wallet.state(won["transaction_id"]) == "refused"
    assert wallet.answer("credit", won) == {"status": "done", "balance_minor": FUND + 100}


def test_a_refused_cancel_and_balance_change_nothing(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    wallet.answer("debit", ante)
    wallet.faults({"kind": "refuse"})
    assert wallet.answer("cancel", ante)["status"] == "refused"
    assert wallet.answer("balance", {"player": player, "currency": "GBP"})["status"] == "refused"
    assert wallet.balance_minor(player) == FUND - 100


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [("error_after", 500, "done"), ("error_before", 500, None), ("down", 503, None)],
)
def test_an_error_is_answered_whether_it_is_done_or_not(
    wallet: SandboxWallet, player: str, kind: str, status: int, state: str | None
) -> None:
    ante = stake(player, 100)
    wallet.faults({"kind": kind})
    assert wallet.call("debit", ante).status_code == status
    assert wallet.state(ante["transaction_id"]) == state
    wallet.heal()
    assert wallet.answer("debit", ante) == {"status": "done", "balance_minor": FUND - 100}


@pytest.mark.parametrize(("kind", "state"), [("drop", "done"), ("drop_before", None)])
def test_a_connection_is_dropped_whether_it_is_done_or_not(
    wallet: SandboxWallet, player: str, kind: str, state: str | None
) -> None:
    ante = stake(player, 100)
    wallet.faults({"kind": kind})
    with pytest.raises(requests.ConnectionError):
        wallet.call("debit", ante)
    assert wallet.state(ante["transaction_id"]) == state


@pytest.mark.parametrize(("kind", "state"), [("silent_after", "done"), ("silent", None)])
def test_silence_ends_with_a_closed_connection(
    wallet: SandboxWallet, player: str, kind: str, state: str | None
) -> None:
    ante = stake(player, 100)
    wallet.faults({"kind": kind})
    with pytest.raises(requests.ReadTimeout):
        wallet.call("debit", ante, timeout=IMPATIENT)
    assert wallet.state(ante["transaction_id"]) == state
    wallet.faults({"kind": kind, "seconds": 0.1})
    with pytest.raises(requests.ConnectionError):
        wallet.call("debit", ante)


def test_a_late_answer_is_of_something_done_in_time(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    wallet.faults({"kind": "late", "seconds": 1, "times": 1})
    with pytest.raises(requests.ReadTimeout):
        wallet.call("debit", ante, timeout=IMPATIENT)
    assert wallet.state(ante["transaction_id"]) == "done"
    assert wallet.answer("debit", ante) == {"status": "done", "balance_minor": FUND - 100}


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_late_original_is_applied_unless_it_was_cancelled(
    wallet: SandboxWallet, player: str, cancelled: bool
) -> None:
    ante = stake(player, 100)
    wallet.faults({"operation": "debit", "kind": "late_original", "seconds": 0.8})
    answers: list[Any] = []
    original = threading.Thread(target=lambda: answers.append(wallet.answer("debit", ante)))
    original.start()
    with pytest.raises(requests.ReadTimeout):
        wallet.call("debit", ante, timeout=IMPATIENT)
    assert wallet.state(ante["transaction_id"]) is None
    if cancelled:
        assert wallet.answer("cancel", ante)["status"] == "not_found"
    original.join(timeout=10)
    assert eventually(wallet, ante["transaction_id"]) == ("cancelled" if cancelled else "done")
    refusal = {"status": "refused", "reason": "cancelled", "balance_minor": FUND}
    assert answers == [refusal if cancelled else {"status": "done", "balance_minor": FUND - 100}]


def test_garbage_comes_in_every_variety(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    wallet.faults({"kind": "garbage"})
    bodies = [wallet.call("debit", ante).content for _ in GARBAGE]
    assert tuple(bodies) == GARBAGE
    assert wallet.balance_minor(player) == FUND - 100


def test_a_rule_strikes_only_what_it_fits_and_only_so_often(wallet: SandboxWallet, player: str) -> None:
    wallet.faults(
        {"operation": "debit", "kind": "down", "player": player, "wager": "play", "times": 2},
        {"operation": "credit", "kind": "error_before", "times": 1},
    )
    play = stake(player, 1, wager="play")
    assert wallet.call("debit", stake(player, 1)).status_code == 200
    assert wallet.call("debit", stake("other", 1, wager="play")).status_code == 200
    assert [wallet.call("debit", play).status_code for _ in range(3)] == [503, 503, 200]
    assert [wallet.call("credit", payout(player, 0)).status_code for _ in range(2)] == [500, 200]
    assert wallet.struck() == [2, 1]


def test_a_call_that_is_not_signed_uses_no_fault_up(wallet: SandboxWallet, player: str) -> None:
    wallet.faults({"kind": "down", "times": 1})
    assert wallet.call("debit", stake(player, 1), key=("k", "other")).status_code == 401
    assert wallet.call("debit", stake(player, 1)).status_code == 503


def test_the_same_seed_gives_the_same_chances() -> None:
    faults = Faults()
    rounds = []
    for seed in (1, 1, 2):
        faults.replace([Rule(Kind.DOWN, probability=0.5)], seed)
        rounds.append([faults.strike("debit", "p", "ante") is not None for _ in range(64)])
    assert rounds[0] == rounds[1] != rounds[2]
    assert {True, False} == set(rounds[0])


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"rules": {}},
        {"rules": [], "sede": 1},
        {"rules": [], "seed": "1"},
        {"rules": [{}]},
        {"rules": ["down"]},
        {"rules": [{"kind": "down"}] * 101},
        {"rules": [{"kind": None}]},
        {"rules": [{"kind": "dwon"}]},
        {"rules": [{"kind": "down", "time": 1}]},
        {"rules": [{"kind": "down", "times": 0}]},
        {"rules": [{"kind": "down", "operation": "refund"}]},
        {"rules": [{"kind": "down", "probability": 1.01}]},
        {"rules": [{"kind": "down", "probability": True}]},
        {"rules": [{"kind": "late", "seconds": 121}]},
        {"rules": [{"kind": "late", "seconds": float("nan")}]},
        {"rules": [{"kind": "refuse", "reason": "No!"}]},
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(document: Any) -> None:
    with pytest.raises(ServiceError):
        read_rules(document)


def test_the_rules_in_force_stay_when_others_are_refused(wallet: SandboxWallet) -> None:
    wallet.faults({"kind": "down"})
    assert requests.put(wallet.url + "/faults", json={"rules": [{}]}, timeout=5).status_code == 422
    assert requests.get(wallet.url + "/faults", timeout=5).json()["rules"][0]["kind"] == "down"


def test_the_command_begins_with_faults_and_ends_in_order_while_calls_wait(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    file.write_text(json.dumps({"rules": [{"kind": "silent_after", "seconds": 120}]}))
    options = ("--faults", str(file), "--fund", "500", "--operator", "acme")
    with sandbox_wallet(tmp_path, ("k", "sk"), options=options) as wallet:
        ante = stake("p", 100)
        assert wallet.call("debit", ante, operator="other").status_code == 401
        with pytest.raises(requests.ReadTimeout):
            wallet.call("debit", ante, operator="acme", timeout=IMPATIENT)
        assert wallet.balance_minor("p") == 400
        assert f"ready at {wallet.url}\n" in wallet.log()
        assert wallet.stop() == 0


def test_what_is_wrong_with_the_files_is_said_before_it_starts(tmp_path: Path) -> None:
    keys, faults = tmp_path / "keys", tmp_path / "faults"
    arguments = ["--keys", str(keys), "--file", str(tmp_path / "none" / "books")]
    tried = [CliRunner().invoke(command, arguments)]
    keys.write_text("# mine\n\nk1\n")
    tried.append(CliRunner().invoke(command, arguments))
    keys.write_text("k1:secret\n")
    faults.write_text('{"rules": [{"kind": "dwon"}]}')
    tried.append(CliRunner().invoke(command, [*arguments, "--faults", str(faults)]))
    assert all(isinstance(result.exception, SetUpError) for result in tried)
    said = [str(result.exception) for result in tried]
    assert "cannot be read" in said[0]
    assert "Line 3" in said[1]
    assert "kind: Give one of refuse" in said[2]
