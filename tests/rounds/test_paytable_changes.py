"""A paytable that changes between the reading and the writing of a deal is noticed, and the deal made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from casino_brag.catalogue.paytables import publish
from casino_brag.config import shipped
from casino_brag.rounds import opening
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.running import code_of

GAME = "three-card-brag"
ORIGINAL = (shipped("paytables") / f"{GAME}.toml").read_text()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("changes")) as house:
        yield house


class Publisher:
    """Publishes another version after each of the next readings."""

    def __init__(self, house: AppHouse, file: Path, times: int) -> None:
        self._house, self._file, self._times = house, file, times
        self._read = opening.read_for_opening
        self.readings = 0

    def __call__(
        self, conn: psycopg.Connection[Any], asks: Sequence[opening.Ask]
    ) -> list[opening.Seen | None]:
        seen = self._read(conn, asks)
        self.readings += 1
        if self.readings <= self._times:
            self._file.write_text(ORIGINAL.replace("max = 300000", f"max = {300_000 - 5 * self.readings}", 1))
            with self._house.connect() as owner:
                assert publish(owner, self._file, actor="system:tests").changed
        return seen


@pytest.fixture(autouse=True)
def original_rules(house: AppHouse) -> Iterator[None]:
    yield
    with house.connect() as owner:
        publish(owner, shipped("paytables") / f"{GAME}.toml", actor="system:tests")


@pytest.mark.parametrize("times", [1, 2])
def test_a_round_is_dealt_under_the_rules_in_force_when_it_is_written(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int
) -> None:
    player = house.player()
    shown = player.next_commitment()
    publisher = Publisher(house, tmp_path / f"{GAME}.toml", times)
    monkeypatch.setattr(opening, "read_for_opening", publisher)
    opened = player.open(100)
    assert opened.status_code == 201
    assert publisher.readings == times + 2, "rules that are new want a commitment that is"
    assert opened.json()["paytable"] == player.get(f"/v1/games/{GAME}").json()["paytable"]
    assert opened.json()["commitment"]["number"] == times + 1
    assert len(player.get("/v1/rounds").json()["items"]) == 1
    # What was committed to under the rules before is revealed, and nothing was dealt from it.
    assert player.proof(shown["round_id"]).json()["state"] == "expired"
    with house.connect() as conn:
        assert broken_laws(conn) == {}


def test_rules_that_never_stand_still_are_waited_for_in_vain(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    player = house.player()
    publisher = Publisher(house, tmp_path / f"{GAME}.toml", 100)
    monkeypatch.setattr(opening, "read_for_opening", publisher)
    refused = player.open(100)
    assert (code_of(refused), refused.json()["retryable"]) == ("busy", True)
    assert publisher.readings == opening.ATTEMPTS_MAX
    assert player.balance_minor() == 100_000


def test_a_round_is_settled_by_the_rules_it_was_dealt_under(
    house: AppHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deal_next(monkeypatch, "2c 2d 2h", "As Kd Qc")
    player = house.player()
    opened = player.open(100, 50).json()
    file = tmp_path / f"{GAME}.toml"
    file.write_text(ORIGINAL.replace("prial = 40", "prial = 20"))
    with house.connect() as owner:
        assert publish(owner, file, actor="system:tests").changed
    settled = player.decide(opened["round_id"], "play").json()
    later = player.decide(player.open(100, 50).json()["round_id"], "play").json()
    assert settled["paytable"] == opened["paytable"] != later["paytable"]
    assert [round_["wagers"][-1]["payout_minor"] for round_ in (settled, later)] == [50 * 41, 50 * 21]
