"""The four calls of the wallet protocol, as the sandbox wallet answers them over HTTP."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
import requests

from casino_brag.catalogue.signing import ACCEPTED_SECONDS
from casino_brag.game.rules import MINOR_MAX
from tests.running import together
from tests.sandbox_wallet import SandboxWallet, payout, sandbox_wallet, stake

FUND = 100_000
OLD, NEW = ("k_old", "sk_old"), ("k_new", "sk:new")


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxWallet]:
    with sandbox_wallet(tmp_path_factory.mktemp("wallet"), OLD, NEW) as running:
        yield running
        running.books()


@pytest.fixture
def player() -> str:
    return "p-" + secrets.token_hex(6)


def done(balance_minor: int) -> dict[str, Any]:
    return {"status": "done", "balance_minor": balance_minor}


def refused(reason: str, balance_minor: int | None = None) -> dict[str, Any]:
    told = {} if balance_minor is None else {"balance_minor": balance_minor}
    return {"status": "refused", "reason": reason} | told


def test_a_player_is_funded_on_first_mention(wallet: SandboxWallet, player: str) -> None:
    assert wallet.answer("balance", {"player": player, "currency": "GBP"}) == done(FUND)


def test_a_round_takes_its_stakes_and_pays_once(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    play = ante | {"transaction_id": str(uuid4()), "wager": "play"}
    assert wallet.answer("debit", ante) == done(FUND - 100)
    assert wallet.answer("debit", play) == done(FUND - 200)
    won = payout(player, 400, round_id=ante["round_id"])
    assert wallet.answer("credit", won) == done(FUND + 200)
    assert wallet.answer("credit", won) == done(FUND + 200)
    assert wallet.answer("debit", play) == done(FUND + 200)


def test_a_credit_of_nothing_closes_a_lost_round(wallet: SandboxWallet, player: str) -> None:
    assert wallet.answer("credit", payout(player, 0)) == done(FUND)


def test_a_debit_that_comes_twenty_times_at_once_is_taken_once(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    assert together([partial(wallet.answer, "debit", ante)] * 20) == [done(FUND - 100)] * 20


def test_debits_at_once_do_not_overdraw(wallet: SandboxWallet, player: str) -> None:
    calls = [partial(wallet.answer, "debit", stake(player, FUND // 4)) for _ in range(12)]
    answers = together(calls)
    assert sorted(answer["status"] for answer in answers) == ["done"] * 4 + ["refused"] * 8
    assert refused("insufficient_funds", 0) in answers
    assert wallet.balance_minor(player) == 0


def test_a_refused_debit_stays_refused_when_money_has_come(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, FUND + 1)
    assert wallet.answer("debit", ante) == refused("insufficient_funds", FUND)
    wallet.fund(player, "GBP", 1)
    assert wallet.answer("debit", ante) == refused("insufficient_funds", FUND + 1)
    assert wallet.answer("cancel", ante) == {"status": "not_found", "balance_minor": FUND + 1}
    assert wallet.state(ante["transaction_id"]) == "refused"


OTHERS: dict[str, Any] = {
    "amount_minor": 101,
    "player": "somebody",
    "currency": "EUR",
    "round_id": str(uuid4()),
    "wager": "play",
    "game": "another",
}


@pytest.mark.parametrize("member", OTHERS)
def test_an_id_belongs_to_one_transfer(wallet: SandboxWallet, player: str, member: str) -> None:
    ante = stake(player, 100)
    assert wallet.answer("debit", ante) == done(FUND - 100)
    other = ante | {member: OTHERS[member]}
    assert wallet.answer("debit", other) == refused("transaction_mismatch")
    assert wallet.answer("cancel", other) == refused("transaction_mismatch")
    assert wallet.answer("cancel", ante) == done(FUND)


def test_a_debit_and_a_credit_do_not_share_an_id(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    won = payout(player, 100, transaction_id=ante["transaction_id"], round_id=ante["round_id"])
    wallet.answer("debit", ante)
    assert wallet.answer("credit", won) == refused("transaction_mismatch")
    paid = payout(player, 100)
    wallet.answer("credit", paid)
    assert wallet.answer("cancel", paid | {"wager": "ante", "round_closed": False}) == refused(
        "transaction_mismatch"
    )
    assert wallet.balance_minor(player) == FUND


def test_a_cancel_gives_back_once_and_the_debit_does_not_return(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    wallet.answer("debit", ante)
    assert together([partial(wallet.answer, "cancel", ante)] * 8) == [done(FUND)] * 8
    assert wallet.answer("debit", ante) == refused("cancelled", FUND)
    assert wallet.state(ante["transaction_id"]) == "cancelled"


def test_a_debit_that_comes_after_its_cancel_is_refused(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    for _ in range(2):
        assert wallet.answer("cancel", ante) == {"status": "not_found", "balance_minor": FUND}
        assert wallet.answer("debit", ante) == refused("cancelled", FUND)
    assert wallet.answer("cancel", ante | {"amount_minor": 99}) == refused("transaction_mismatch")


def test_a_debit_and_its_cancel_at_once_leave_the_player_whole(wallet: SandboxWallet, player: str) -> None:
    for _ in range(5):
        ante = stake(player, 100)
        together([partial(wallet.call, operation, ante) for operation in ("debit", "cancel") * 3])
        assert wallet.state(ante["transaction_id"]) == "cancelled"
    assert wallet.balance_minor(player) == FUND


@pytest.mark.parametrize("currency", ["JPY", "GBP", "KWD", "XBT"])
def test_every_currency_has_an_account_of_its_own(wallet: SandboxWallet, player: str, currency: str) -> None:
    assert wallet.answer("debit", stake(player, FUND, currency=currency)) == done(0)
    assert wallet.books()["balances"][player] == {currency: 0}


def test_a_currency_that_nobody_knows_is_refused(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100, currency="???")
    assert wallet.answer("debit", ante) == refused("currency_unknown")
    assert wallet.answer("cancel", ante) == {"status": "not_found"}
    assert wallet.answer("cancel", stake(player, 1, currency="???")) == {"status": "not_found"}
    assert wallet.answer("credit", payout(player, 0, currency="???")) == refused("currency_unknown")
    assert wallet.answer("balance", {"player": player, "currency": "???"}) == refused("currency_unknown")


def test_a_balance_is_never_more_than_json_holds(wallet: SandboxWallet, player: str) -> None:
    wallet.fund(player, "GBP", MINOR_MAX - FUND)
    won = payout(player, 1)
    assert wallet.answer("credit", won) == refused("limit_reached", MINOR_MAX)
    assert wallet.fund(player, "GBP", 1) == refused("limit_reached", MINOR_MAX)
    everything = stake(player, MINOR_MAX)
    assert wallet.answer("debit", everything) == done(0)
    assert wallet.answer("credit", won) == done(1), "a payout that was refused is owed all the same"
    assert wallet.answer("cancel", everything) == refused("limit_reached", 1)
    assert wallet.answer("debit", stake(player, 1)) == done(0)
    assert wallet.answer("cancel", everything) == done(MINOR_MAX)


MALFORMED: dict[str, tuple[Any, ...]] = {
    "amount_minor": (-1, 0, True, None, "100", 1.0, MINOR_MAX + 1, 2**63, []),
    "transaction_id": (None, 7, "", "x", str(uuid4()).upper(), "{" + str(uuid4()) + "}"),
    "round_id": (None, "1"),
    "player": (None, "", "a b", "é", "x" * 129),
    "currency": (None, 1, ""),
    "wager": (None, "payout", "trips"),
    "round_closed": (None, True, 0),
    "game": (None, ""),
}


@pytest.mark.parametrize("member", MALFORMED)
def test_a_member_that_is_wrong_is_named(wallet: SandboxWallet, player: str, member: str) -> None:
    for value in MALFORMED[member]:
        answered = wallet.call("debit", stake(player, 100) | {member: value})
        assert answered.status_code == 422, value
        assert list(answered.json()["errors"]) == [member], value
    without = stake(player, 100)
    del without[member]
    assert wallet.call("debit", without).status_code == 422


def test_members_of_a_later_protocol_are_passed_over(wallet: SandboxWallet, player: str) -> None:
    assert wallet.answer("debit", stake(player, 100, later=1)) == done(FUND - 100)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 422),
        (b'{"player": "a", "player": "b", "currency": "GBP"}', 422),
        (b'{"player": "\xff", "currency": "GBP"}', 400),
        (b" " * (64 * 1024 + 1), 413),
    ],
)
def test_a_body_that_is_no_call_is_not_answered_as_one(
    wallet: SandboxWallet, body: bytes, status: int
) -> None:
    assert wallet.call("balance", body).status_code == status


def asked(wallet: SandboxWallet, **how: Any) -> tuple[int, str | None]:
    answered = wallet.call("balance", {"player": "p", "currency": "GBP"}, **how)
    return answered.status_code, answered.json().get("code")


def test_either_of_two_keys_signs(wallet: SandboxWallet) -> None:
    assert asked(wallet, key=OLD) == asked(wallet, key=NEW) == (200, None)


def test_nobody_else_is_let_in(wallet: SandboxWallet) -> None:
    assert asked(wallet, key=("k_old", "sk_new")) == (401, "signature_invalid")
    assert asked(wallet, key=("k_other", "sk_old")) == (401, "unauthenticated")
    assert requests.post(wallet.url + "/balance", json={}, timeout=5).status_code == 401


@pytest.mark.parametrize("header", ["X-Operator", "X-Key-Id", "X-Timestamp", "X-Nonce", "X-Signature"])
def test_a_header_that_is_malformed_lets_nobody_in(wallet: SandboxWallet, header: str) -> None:
    for value in ("", "a b", "x" * 100):
        assert asked(wallet, headers={header: value}) == (401, "unauthenticated")


def test_a_changed_body_or_address_is_not_what_was_signed(wallet: SandboxWallet, player: str) -> None:
    ante = stake(player, 100)
    seen = wallet.call("debit", ante)
    body = seen.request.body
    assert isinstance(body, bytes)
    for address, sent in (
        ("debit", body.replace(b"100", b"101")),
        ("cancel", body),
        ("debit?a=1", body),
    ):
        again = requests.post(f"{wallet.url}/{address}", data=sent, headers=seen.request.headers, timeout=5)
        assert (again.status_code, again.json()["code"]) == (401, "signature_invalid"), address
    assert wallet.call("balance?a=1", {"player": player, "currency": "GBP"}).status_code == 200
    assert wallet.balance_minor(player) == FUND - 100


def test_an_old_or_early_timestamp_is_refused(wallet: SandboxWallet) -> None:
    now = int(time.time())
    for seconds in (-ACCEPTED_SECONDS - 5, ACCEPTED_SECONDS + 5):
        assert asked(wallet, timestamp=now + seconds) == (401, "signature_invalid")
    for seconds in (-ACCEPTED_SECONDS + 30, ACCEPTED_SECONDS - 30):
        assert asked(wallet, timestamp=now + seconds) == (200, None)


def test_a_replayed_request_is_refused_also_at_once_and_has_no_effect(
    wallet: SandboxWallet, player: str
) -> None:
    call = partial(wallet.call, "debit", stake(player, 100), nonce=secrets.token_hex(16))
    statuses = [answered.status_code for answered in together([call] * 8)]
    assert sorted(statuses) == [200] + [401] * 7
    assert call().json()["code"] == "nonce_reused"
    assert wallet.balance_minor(player) == FUND - 100


def test_two_keys_may_use_the_same_nonce(wallet: SandboxWallet) -> None:
    nonce = secrets.token_hex(16)
    assert asked(wallet, key=OLD, nonce=nonce) == asked(wallet, key=NEW, nonce=nonce) == (200, None)


def test_keys_are_changed_while_it_runs(wallet: SandboxWallet) -> None:
    try:
        wallet.set_keys(NEW, ("k_third", "sk_third"))
        assert asked(wallet, key=OLD) == (401, "unauthenticated")
        assert asked(wallet, key=("k_third", "sk_third")) == (200, None)
    finally:
        wallet.set_keys(OLD, NEW)


def test_the_statement_lists_every_transaction(wallet: SandboxWallet) -> None:
    player = 'a,"b"'
    ante, lost = stake(player, 100), payout(player, 0)
    wallet.answer("debit", ante)
    wallet.answer("credit", lost)
    *_, first, second = wallet.statement()
    assert list(first) == [
        *("transaction_id", "direction", "wager", "round_id", "player", "currency"),
        *("amount_minor", "state", "made_at"),
    ]
    assert first.items() >= {
        ("transaction_id", ante["transaction_id"]),
        ("direction", "debit"),
        ("wager", "ante"),
        ("round_id", ante["round_id"]),
        ("player", player),
        ("currency", "GBP"),
        ("amount_minor", "100"),
        ("state", "done"),
    }
    assert first["made_at"].endswith("Z")
    assert (second["direction"], second["wager"], second["amount_minor"]) == ("credit", "payout", "0")
