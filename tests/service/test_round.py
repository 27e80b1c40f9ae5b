"""A whole round over HTTP."""

from __future__ import annotations

import pytest

from tests.books import LAWS, broken_laws
from tests.running import RunningService


@pytest.mark.parametrize("decision", ["play", "fold"])
def test_a_round_is_opened_decided_paid_and_recorded(service: RunningService, decision: str) -> None:
    player = service.operator().player()
    before = player.balance_minor()

    opened = player.open(100, 50)
    assert opened.status_code == 201
    round_ = opened.json()
    assert round_["state"] == "awaiting_decision"
    assert round_["balance_minor"] == before - 150
    assert round_["wagers"] == [
        {"spot": "ante", "stake_minor": 100},
        {"spot": "pair_bonus", "stake_minor": 50},
    ]
    assert len(round_["player_cards"]) == 3
    assert player.get("/v1/session").json()["open_round"]["round_id"] == round_["round_id"]

    settled = player.decide(round_["round_id"], decision)
    assert settled.status_code == 200
    end = settled.json()
    assert end["state"] == "settled"
    assert end["player_cards"] == round_["player_cards"]
    assert len({*end["player_cards"], *end["dealer_cards"]}) == 6
    assert end["total_staked_minor"] == (250 if decision == "play" else 150)
    assert end["total_payout_minor"] == sum(wager["payout_minor"] for wager in end["wagers"])
    assert end["net_minor"] == end["total_payout_minor"] - end["total_staked_minor"]
    assert end["balance_minor"] == before + end["net_minor"] == player.balance_minor()
    assert (end["result"] == "fold") == (decision == "fold")

    read = player.get(f"/v1/rounds/{round_['round_id']}").json()
    later = ("balance_minor", "next_commitment")
    assert read == {name: value for name, value in end.items() if name not in later}
    assert player.get("/v1/rounds").json()["items"] == [read]
    with service.connect() as conn:
        assert broken_laws(conn) == {}, list(LAWS)
