"""A deal that was altered, moved or sealed by an unknown key settles nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from casino_brag.db.embedded import Role
from casino_brag.sealing import Sealer
from casino_brag.web.app import create_app
from casino_brag.web.service import EXTENSION
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.running import Player, code_of


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    """A house in which the table's guards are taken away."""
    with app_house_in(tmp_path_factory.mktemp("sealed")) as house:
        with house.connect(Role.SUPERUSER) as superuser:
            superuser.execute("ALTER TABLE round DISABLE TRIGGER round_settles_what_was_accepted")
        yield house


def sealed(house: AppHouse, round_id: str) -> bytes:
    with house.connect() as conn:
        row = conn.execute("SELECT sealed_deal FROM round WHERE round_id = %s", [round_id]).fetchone()
    assert row is not None
    return bytes(row[0])


def put(house: AppHouse, round_id: str, deal: bytes) -> None:
    with house.connect(Role.SUPERUSER) as superuser:
        superuser.execute("UPDATE round SET sealed_deal = %s WHERE round_id = %s", [deal, round_id])


def opened(player: Player) -> str:
    return str(player.open(100, 50).json()["round_id"])


def settles_nothing(house: AppHouse, player: Player, round_id: str, right: bytes) -> None:
    """The decision fails without effect, and succeeds when the right deal is back."""
    before = player.balance_minor()
    for decision in ("play", "fold"):
        answer = player.decide(round_id, decision, key=f"{decision} {round_id}")
        assert code_of(answer) == "internal_error"
        assert "operator has to be told" in answer.json()["detail"]
    assert player.balance_minor() == before
    assert player.get(f"/v1/rounds/{round_id}").json()["state"] == "awaiting_decision"
    put(house, round_id, right)
    assert player.decide(round_id, "play", key=f"play {round_id}").status_code == 200
    with house.connect() as conn:
        assert broken_laws(conn) == {}


@pytest.mark.parametrize("place", [0, 3, 8, -1])
def test_a_deal_that_was_altered_settles_nothing(house: AppHouse, place: int) -> None:
    player = house.player()
    round_id = opened(player)
    right = sealed(house, round_id)
    altered = bytearray(right)
    altered[place] ^= 1
    put(house, round_id, bytes(altered))
    settles_nothing(house, player, round_id, right)


def test_a_deal_of_another_round_settles_nothing(house: AppHouse) -> None:
    player, other = house.player(), house.player()
    round_id = opened(player)
    right = sealed(house, round_id)
    put(house, round_id, sealed(house, opened(other)))
    settles_nothing(house, player, round_id, right)


def test_a_deal_whose_cards_are_not_those_that_were_shown_settles_nothing(house: AppHouse) -> None:
    """Even one that was sealed for this very round, by somebody who has the key."""
    player = house.player()
    round_id = opened(player)
    right = sealed(house, round_id)
    with house.connect() as conn:
        row = conn.execute("SELECT paytable_version_id FROM round WHERE round_id = %s", [round_id]).fetchone()
    assert row is not None
    context = f"deal of round {round_id} under {row[0]}"
    index = int(house.sealer.open(right, context=context))
    put(
        house,
        round_id,
        house.sealer.seal(str((index + 7_329_067_200) % 14_658_134_400).encode(), context=context),
    )
    settles_nothing(house, player, round_id, right)


def test_a_deal_that_was_sealed_before_the_key_was_replaced_still_settles(house: AppHouse) -> None:
    player = house.player()
    round_id = opened(player)
    keys = {"k2": bytes(32), **house.config.seal_keys}
    headers = {**player.headers("decide"), "Content-Type": "application/json"}
    for config, status in (
        (replace(house.config, seal_keys={"k2": bytes(32)}), 500),
        (replace(house.config, seal_keys=keys), 200),
    ):
        app = create_app(config)
        try:
            answer = app.test_client().post(
                f"/v1/rounds/{round_id}/decision", json={"decision": "play"}, headers=headers
            )
        finally:
            app.extensions[EXTENSION].database.close()
        assert answer.status_code == status
    assert Sealer(keys).seal(b"", context="").startswith(b"k2\0")
