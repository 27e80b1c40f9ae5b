"""Rounds whose money is in an operator's own wallet, while everything goes well, and when the wallet says no."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.operators_wallet import Casino, casino
from tests.running import Player, RunningService, code_of


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService.start(tmp_path_factory.mktemp("wallets")) as running:
        yield running


@pytest.fixture(scope="module", params=["two_debits", "reserve"])
def funding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def house(
    service: RunningService, funding: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Casino]:
    with casino(tmp_path_factory.mktemp(funding), service, funding=funding) as found:
        yield found


@pytest.fixture(autouse=True)
def books_agree(house: Casino) -> Iterator[None]:
    yield
    house.wallet.heal()
    house.wait_until_finished()
    house.must_agree()


def moved(house: Casino, player: Player) -> list[tuple[str, str, int]]:
    """What the wallet was asked about a player, as wager, state and amount, in order."""
    return [
        (line["wager"], line["state"], int(line["amount_minor"]))
        for line in house.wallet.statement()
        if line["player"] == player.name
    ]


@pytest.mark.parametrize("decision", ["play", "fold"])
def test_a_round_is_debited_and_credited_at_the_wallet(house: Casino, funding: str, decision: str) -> None:
    player = house.player(10_000)
    assert player.balance_minor() == 10_000
    opened = player.open(100, 50)
    assert opened.status_code == 201, opened.text
    assert opened.json()["balance_minor"] == 10_000 - (150 if funding == "two_debits" else 250)
    settled = player.decide(opened.json()["round_id"], decision).json()
    assert settled["payout_state"] == "paid"
    assert settled["total_staked_minor"] == (250 if decision == "play" else 150)
    assert settled["balance_minor"] == 10_000 + settled["net_minor"] == player.balance_minor()
    paid = settled["total_payout_minor"]
    if funding == "two_debits":
        debits = [("ante", "done", 100), ("pair_bonus", "done", 50)]
        debits += [("play", "done", 100)] if decision == "play" else []
    else:
        debits, paid = [("ante", "done", 250)], paid + (0 if decision == "play" else 100)
    assert moved(house, player) == [*debits, ("payout", "done", paid)]
    assert player.get(f"/v1/rounds/{opened.json()['round_id']}").json()["payout_state"] == "paid"


def test_answers_are_repeated_byte_for_byte(house: Casino) -> None:
    player = house.player()
    opened = player.open(100, key="one")
    assert player.open(100, key="one").content == opened.content
    settled = player.decide(opened.json()["round_id"], "play", key="two")
    again = player.decide(opened.json()["round_id"], "play", key="two")
    assert (again.content, again.headers["Idempotency-Replayed"]) == (settled.content, "true")
    assert player.decide(opened.json()["round_id"], "play", key="three").content == settled.content
    assert code_of(player.decide(opened.json()["round_id"], "fold")) == "already_decided"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("insufficient_funds", "insufficient_funds"),
        ("limit_reached", "limit_reached"),
        ("player_blocked", "player_blocked"),
        ("bad_weather", "wallet_refused"),
    ],
)
def test_a_stake_that_the_wallet_refuses_is_not_dealt(house: Casino, reason: str, code: str) -> None:
    player = house.player()
    house.wallet.faults({"operation": "debit", "kind": "refuse", "reason": reason})
    assert code_of(player.open(100, key="k")) == code
    house.wallet.heal()
    assert player.balance_minor() == 100_000
    assert player.open(100, key="k").status_code == 201


def test_when_the_pair_bonus_is_refused_the_ante_comes_back(house: Casino, funding: str) -> None:
    player = house.player(120 if funding == "two_debits" else 220)
    assert code_of(player.open(100, 50)) == "insufficient_funds"
    house.wait_until_finished()
    assert player.balance_minor() == (120 if funding == "two_debits" else 220)
    assert player.open(100).status_code == 201


def test_a_play_that_is_refused_leaves_the_round_at_the_decision(house: Casino, funding: str) -> None:
    player = house.player(100 if funding == "two_debits" else 200)
    round_id = player.open(100).json()["round_id"]
    played = player.decide(round_id, "play", key="k")
    if funding == "reserve":
        assert played.status_code == 200
        return
    assert code_of(played) == "insufficient_funds"
    assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "awaiting_decision"
    house.wallet.fund(player.name, "GBP", 100)
    assert player.decide(round_id, "play", key="k").status_code == 200


def test_money_of_the_built_in_wallet_is_not_offered(house: Casino) -> None:
    assert code_of(house.operator.deposit("somebody", 100)) == "wallet_external"
    assert code_of(house.operator.withdraw("somebody", 100)) == "wallet_external"
    balance = house.operator.send("GET", "/v1/operator/players/somebody/balance?currency=GBP")
    assert code_of(balance) == "wallet_external"


def test_demonstration_play_does_not_know_the_wallet(house: Casino) -> None:
    player = house.operator.player(player="visitor")
    settled = player.played("play")
    assert settled["balance_minor"] == 100_000 + settled["net_minor"]
    assert not [line for line in house.wallet.statement() if line["player"] == "visitor"]


@pytest.mark.parametrize("currency", ["JPY", "GBP", "KWD", "XBT"])
def test_every_kind_of_currency_is_played(house: Casino, currency: str) -> None:
    player = house.player(10_000_000, currency)
    limits = player.get("/v1/session").json()["limits"]["three-card-brag"]
    opened = player.open(limits["ante"]["min_minor"])
    assert opened.status_code == 201, opened.text
    settled = player.decide(opened.json()["round_id"], "play").json()
    assert settled["balance_minor"] == 10_000_000 + settled["net_minor"] == player.balance_minor()
