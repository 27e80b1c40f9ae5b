"""What a player is told and paid over HTTP is what the rules' one function says of the same cards."""

from __future__ import annotations

import random
from typing import Any

import pytest

from casino_brag.config import shipped
from casino_brag.game.cards import PACK
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Deal, Decision, Stakes, settle
from casino_brag.rng import MODULE_DIGEST, unrank
from tests.books import broken_laws
from tests.inprocess import AppHouse, deal_next

GAMES = ["three-card-brag", "double-play-brag"]


def paytable(game: str) -> Paytable:
    return Paytable.load(shipped("paytables") / f"{game}.toml")


CASES = [
    # game, player, dealer, decision, result, payouts by spot
    ("three-card-brag", "2c 4d 9h", "As Kd Qc", "fold", "fold", {"ante": 0, "pair_bonus": 0}),
    (
        "three-card-brag",
        "As Kd 2c",
        "Jh 9d 7c",
        "play",
        "not_qualified",
        {"ante": 200, "play": 100, "pair_bonus": 0},
    ),
    (
        "three-card-brag",
        "2c 2d 2h",
        "Jh 9d 7c",
        "play",
        "not_qualified",
        {"ante": 200, "play": 100, "ante_bonus": 500, "pair_bonus": 2050},
    ),
    ("three-card-brag", "Qs 6d 5c", "Qh 6c 4c", "play", "win", {"ante": 200, "play": 200, "pair_bonus": 0}),
    ("three-card-brag", "Qs 6d 4c", "Qh 6c 4d", "play", "tie", {"ante": 100, "play": 100, "pair_bonus": 0}),
    ("three-card-brag", "Qs 6d 3c", "Qh 6c 4d", "play", "lose", {"ante": 0, "play": 0, "pair_bonus": 0}),
    (
        "three-card-brag",
        "Ks Kd Kc",
        "3s 3d 3c",
        "play",
        "lose",
        {"ante": 0, "play": 0, "ante_bonus": 500, "pair_bonus": 2050},
    ),
    (
        "three-card-brag",
        "4s 3s 2s",
        "As 2d 3h",
        "play",
        "win",
        {"ante": 200, "play": 200, "ante_bonus": 400, "pair_bonus": 1550},
    ),
    (
        "double-play-brag",
        "3s 3d 3c",
        "Ah As Ad",
        "play",
        "win",
        {"ante": 200, "play": 1200, "pair_bonus": 2050},
    ),
    (
        "double-play-brag",
        "Ah 2h 3h",
        "Ac Kc Qc",
        "play",
        "win",
        {"ante": 200, "play": 1000, "pair_bonus": 1550},
    ),
    (
        "double-play-brag",
        "As Kd 2c",
        "Jh 9d 7c",
        "play",
        "not_qualified",
        {"ante": 200, "play": 200, "pair_bonus": 0},
    ),
]


@pytest.mark.parametrize(("game", "player", "dealer", "decision", "result", "payouts"), CASES)
def test_these_cards_pay_this(
    app_house: AppHouse,
    monkeypatch: pytest.MonkeyPatch,
    game: str,
    player: str,
    dealer: str,
    decision: str,
    result: str,
    payouts: dict[str, int],
) -> None:
    deal_next(monkeypatch, player, dealer)
    caller = app_house.player(game=game)
    opened = caller.open(100, 50).json()
    assert opened["player_cards"] == player.split()
    settled = caller.decide(opened["round_id"], decision).json()
    assert (settled["result"], settled["dealer_cards"]) == (result, dealer.split())
    assert {wager["spot"]: wager["payout_minor"] for wager in settled["wagers"]} == payouts
    stakes = {wager["spot"]: wager["stake_minor"] for wager in settled["wagers"]}
    play = 100 * (2 if game == "double-play-brag" else 1)
    expected = {"ante": 100, "play": play, "ante_bonus": 0, "pair_bonus": 50}
    assert stakes == {spot: expected[spot] for spot in payouts}
    assert settled["total_payout_minor"] == sum(payouts.values())
    assert settled["celebrate"] == (settled["net_minor"] > 0)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("seed", range(12))
def test_any_cards_pay_what_the_rules_say(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch, game: str, seed: int
) -> None:
    chosen = random.Random(f"{game} {seed}")
    dealt = [str(PACK[number]) for number in unrank(chosen.randrange(14_658_134_400))]
    player, dealer = " ".join(dealt[:3]), " ".join(dealt[3:])
    stakes = Stakes(ante_minor=5 * chosen.randint(1, 200), pair_bonus_minor=5 * chosen.randint(0, 100))
    decision = chosen.choice(list(Decision))
    deal_next(monkeypatch, player, dealer)
    caller = app_house.player(game=game)
    opened = caller.open(stakes.ante_minor, stakes.pair_bonus_minor).json()
    told = caller.decide(opened["round_id"], decision.value).json()
    truth = settle(
        paytable(game), stakes, Deal(player=Hand.parse(player), dealer=Hand.parse(dealer)), decision
    )
    assert told["wagers"] == [
        {
            "spot": wager.spot.value,
            "stake_minor": wager.stake_minor,
            "payout_minor": wager.payout_minor,
            "reason": wager.reason.value,
        }
        for wager in truth.wagers
    ]
    assert comparable(told) == {
        "result": truth.result.value,
        "player_category": truth.player_category.value,
        "dealer_category": truth.dealer_category.value,
        "dealer_qualified": truth.dealer_qualified,
        "total_staked_minor": truth.total_staked_minor,
        "total_payout_minor": truth.total_payout_minor,
        "net_minor": truth.total_payout_minor - truth.total_staked_minor,
        "celebrate": truth.celebrate,
        "balance_minor": 100_000 + truth.total_payout_minor - truth.total_staked_minor,
    }


def comparable(told: dict[str, Any]) -> dict[str, Any]:
    names = (
        "result",
        "player_category",
        "dealer_category",
        "dealer_qualified",
        "total_staked_minor",
        "total_payout_minor",
        "net_minor",
        "celebrate",
        "balance_minor",
    )
    return {name: told[name] for name in names}


def test_a_round_remembers_which_module_dealt_it_and_which_rules_it_was_dealt_under(
    app_house: AppHouse,
) -> None:
    opened = app_house.player().open(100).json()
    with app_house.connect() as conn:
        row = conn.execute(
            "SELECT r.rng_digest, v.digest, e.payload ->> 'rng_digest' FROM round AS r"
            " JOIN paytable_version AS v ON v.version_id = r.paytable_version_id"
            " JOIN audit_entry AS e USING (round_id) WHERE r.round_id = %s",
            [opened["round_id"]],
        ).fetchone()
        assert broken_laws(conn) == {}
    assert row == (MODULE_DIGEST, opened["paytable"]["digest"], MODULE_DIGEST)


def test_the_index_that_is_recorded_deals_the_cards_that_were_shown(app_house: AppHouse) -> None:
    player = app_house.player()
    settled = player.decide(player.open(100).json()["round_id"], "fold").json()
    with app_house.connect() as conn:
        row = conn.execute(
            "SELECT payload ->> 'deal_index' FROM audit_entry WHERE round_id = %s AND type = 'round.settled'",
            [settled["round_id"]],
        ).fetchone()
    assert row is not None
    dealt = [str(PACK[number]) for number in unrank(int(row[0]))]
    assert dealt == settled["player_cards"] + settled["dealer_cards"]
