"""A paytable that changes: open rounds are settled by the version they were dealt under, new ones by the new."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from casino_brag.config import shipped
from casino_brag.game.cards import Card
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Deal, Decision, Stakes, settle
from tests.running import Player, RunningService, code_of

PLAYERS = 12
ANTE, PAIR_BONUS = 100, 50


def hand(cards: list[str]) -> Hand:
    first, second, third = map(Card.parse, cards)
    return Hand.of(first, second, third)


def payouts_minor(paytable: Paytable, rounds: list[dict[str, Any]]) -> list[int]:
    """What rounds pay by a paytable."""
    return [
        settle(
            paytable,
            Stakes(ANTE, PAIR_BONUS),
            Deal(player=hand(round_["player_cards"]), dealer=hand(round_["dealer_cards"])),
            Decision(round_["decision"]),
        ).total_payout_minor
        for round_ in rounds
    ]


def opened_by(players: list[Player]) -> list[dict[str, Any]]:
    return [player.again().open(ANTE, PAIR_BONUS).json() for player in players]


def played_by(players: list[Player], rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        player.again().decide(round_["round_id"], "play").json()
        for player, round_ in zip(players, rounds, strict=True)
    ]


def versions(rounds: list[dict[str, Any]]) -> set[tuple[int, str]]:
    return {(round_["paytable"]["version"], round_["paytable"]["digest"]) for round_ in rounds}


@pytest.fixture
def paytables(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shipped("paytables"), tmp_path / "paytables"))


def test_a_round_is_settled_by_the_version_it_was_dealt_under(tmp_path: Path, paytables: Path) -> None:
    file = paytables / "three-card-brag.toml"
    original = file.read_text()
    with RunningService.start(tmp_path, workers=2, paytables=paytables) as service:
        operator = service.operator()
        players = [operator.player() for _ in range(PLAYERS)]
        waiting = opened_by(players)
        old = Paytable.load(file)
        assert versions(waiting) == {(1, old.digest)}

        halved = original.replace("[ante]\npays = 1\n", '[ante]\npays = "1/2"\n')
        file.write_text('rounding = "down"\n' + halved)
        new = Paytable.load(file)
        assert service.stop() == 0
        service.launch()
        assert code_of(players[0].again().open(ANTE)) == "round_open"
        ends = played_by(players, waiting)
        assert versions(ends) == {(1, old.digest)}
        paid = [end["total_payout_minor"] for end in ends]
        assert paid == payouts_minor(old, ends)
        assert paid != payouts_minor(new, ends), "so that it can be told which one paid"

        later = played_by(players, opened_by(players))
        assert versions(later) == {(2, new.digest)}
        assert [end["total_payout_minor"] for end in later] == payouts_minor(new, later)

        # The first rules again are the first version again; what was played by the second remains so.
        file.write_text(original)
        assert service.stop() == 0
        service.launch()
        assert versions(opened_by(players)) == {(1, old.digest)}
        read = players[0].again().get(f"/v1/rounds/{later[0]['round_id']}").json()
        assert versions([read]) == {(2, new.digest)}
        assert read["total_payout_minor"] == later[0]["total_payout_minor"]
        assert service.broken_laws() == {}
