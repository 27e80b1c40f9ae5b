"""Interrupted rounds: they wait for their time, and are then ended by their operator's rule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from casino_brag.catalogue.operators import InterruptionPolicy, set_interruption
from casino_brag.db import clock as real
from casino_brag.rounds import expiry
from tests.books import broken_laws
from tests.inprocess import AppHouse
from tests.running import Operator, code_of, together


@pytest.fixture(params=list(InterruptionPolicy))
def policy(request: pytest.FixtureRequest) -> InterruptionPolicy:
    return InterruptionPolicy(request.param)


@pytest.fixture
def operator(app_house: AppHouse, policy: InterruptionPolicy) -> Iterator[Operator]:
    """An operator whose rounds wait for a day."""
    found = app_house.new_operator()
    with app_house.connect() as conn:
        set_interruption(conn, found.name, 24, policy, actor="system:tests")
    yield found
    with app_house.connect() as conn:
        assert broken_laws(conn) == {}


def pass_hours(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    """Has so many hours gone by, as those see it who look for rounds that are over their time."""
    monkeypatch.setattr(expiry, "clock", lambda conn: real.clock(conn) + timedelta(hours=hours))


def attend(app_house: AppHouse) -> int:
    return expiry.attend(app_house.service.database.connection, app_house.service.house)


def test_a_round_waits_for_its_time_and_is_then_ended(
    app_house: AppHouse, operator: Operator, policy: InterruptionPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = operator.real_player(1_000)
    assert player.get("/v1/session").json()["interruption"] == {"hours": 24, "policy": policy}
    round_id = player.open(100, 50).json()["round_id"]
    pass_hours(monkeypatch, 23.9)
    assert attend(app_house) == 0
    resumed = operator.player(player=_name(app_house, round_id), currency="GBP", mode="real")
    assert resumed.get("/v1/session").json()["open_round"]["round_id"] == round_id
    pass_hours(monkeypatch, 24.1)
    assert attend(app_house) == 1
    assert attend(app_house) == 0
    ended = resumed.get(f"/v1/rounds/{round_id}").json()
    if policy is InterruptionPolicy.VOID:
        assert (ended["state"], ended["refund_minor"]) == ("voided", 150)
        assert resumed.balance_minor() == 1_000
        assert code_of(resumed.decide(round_id, "fold")) == "round_voided"
    else:
        assert (ended["state"], ended["decision"], ended["total_staked_minor"]) == ("settled", "fold", 150)
        assert resumed.balance_minor() == 1_000 - 150 + ended["total_payout_minor"]
        answer = resumed.decide(round_id, "fold", key="k")
        assert answer.json()["total_payout_minor"] == ended["total_payout_minor"]
        assert resumed.decide(round_id, "fold", key="k").content == answer.content
        assert code_of(resumed.decide(round_id, "play")) == "already_decided"
    assert player.played()["state"] == "settled"


def test_of_a_decision_and_the_end_of_the_time_one_wins(
    app_house: AppHouse, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_hours(monkeypatch, 25)
    for _ in range(5):
        player = operator.real_player(1_000)
        round_id = player.open(100).json()["round_id"]
        together([lambda: player.decide(round_id, "play"), lambda: attend(app_house)])  # noqa: B023
        ended = player.get(f"/v1/rounds/{round_id}").json()
        if ended["state"] == "voided":
            assert ended["refund_minor"] == (0 if "decision" in ended else 100)
        else:
            assert ended["state"] == "settled"


def test_one_that_cannot_be_ended_holds_up_no_other(
    app_house: AppHouse, operator: Operator, policy: InterruptionPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    players = [operator.real_player(1_000) for _ in range(4)]
    rounds = [player.open(100).json()["round_id"] for player in players]
    with app_house.connect() as conn:
        broken = conn.execute("SELECT sealed_deal FROM round WHERE round_id = %s", [rounds[0]]).fetchone()
    assert broken is not None
    pass_hours(monkeypatch, 25)
    monkeypatch.setattr(expiry, "BATCH", 1)
    opened = app_house.service.house.sealer.open

    def damaged(sealed: bytes, *, context: str) -> bytes:
        if sealed == broken[0]:
            raise expiry.SealBroken("damaged")
        return opened(sealed, context=context)

    monkeypatch.setattr(
        type(app_house.service.house.sealer),
        "open",
        lambda _, sealed, *, context: damaged(sealed, context=context),
    )
    # A void needs no cards; a fold does, and is made when they can be had again.
    assert attend(app_house) == (4 if policy is InterruptionPolicy.VOID else 3)
    monkeypatch.undo()
    pass_hours(monkeypatch, 25)
    assert attend(app_house) == (0 if policy is InterruptionPolicy.VOID else 1)


def _name(app_house: AppHouse, round_id: str) -> str:
    with app_house.connect() as conn:
        row = conn.execute(
            "SELECT reference FROM player JOIN round USING (player_id) WHERE round_id = %s", [round_id]
        ).fetchone()
    assert row is not None
    return str(row[0])
