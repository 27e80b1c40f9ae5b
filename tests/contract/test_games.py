"""What anybody may know of a game before staking: rules in words, pays, limits and exact figures."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import requests

from casino_brag.config import shipped
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules_text import rules_in_words
from casino_brag.game.settlement import Stakes, maximum_payout_minor
from tests.running import CALL_SECONDS, RunningService

GAMES = ["double-play-brag", "three-card-brag"]
every_game = pytest.mark.parametrize("game", GAMES)
ORACLE = json.loads((Path(__file__).parents[1] / "data" / "games.json").read_text())

FIGURES = {
    "three-card-brag": {
        ("main", "rtp", "total_staked"): (Fraction(167006979, 170422000), "0.97996138"),
        ("main", "house_edge", "ante"): (Fraction(3415021, 101792600), "0.03354881"),
        ("pair_bonus", "rtp", "pair_bonus"): (1 - Fraction(118, 5525), "0.97864253"),
    },
    "double-play-brag": {
        ("main", "rtp", "total_staked"): (1 - Fraction(4016320, 876613920), "0.99541837"),
        ("main", "house_edge", "ante"): (Fraction(3586, 363545), "0.00986398"),
        ("pair_bonus", "rtp", "pair_bonus"): (1 - Fraction(118, 5525), "0.97864253"),
    },
}
"""By wager, figure and denominator: the exact value, and what it is to eight places."""


def read(service: RunningService, path: str) -> Any:
    answer = requests.get(service.base + path, timeout=CALL_SECONDS)
    assert answer.status_code == 200
    assert answer.headers["Content-Language"] == "en"
    return answer.json()


def paytable(game: str) -> Paytable:
    return Paytable.load(shipped("paytables") / f"{game}.toml")


def test_the_list_is_of_every_published_game_as_it_is_described_alone(service: RunningService) -> None:
    page = read(service, "/v1/games")
    assert page["next_cursor"] is None
    assert [game["game"] for game in page["items"]] == GAMES
    assert page["items"] == [read(service, f"/v1/games/{game}") for game in GAMES]


@every_game
def test_a_game_tells_the_rules_it_settles_by(service: RunningService, game: str) -> None:
    told, rules = read(service, f"/v1/games/{game}"), paytable(game)
    assert told["paytable"] == {"version": 1, "digest": rules.digest}
    assert (told["game"], told["title"], told["state"]) == (game, rules.title, "enabled")
    assert told["ranking"] == ["prial", "running_flush", "run", "flush", "pair", "high_card"]
    assert told["rules"] == [
        {"title": section.title, "paragraphs": list(section.paragraphs)} for section in rules_in_words(rules)
    ]
    assert told["interruption_policy"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", told["change"]["changed_at"])


@every_game
def test_the_pays_are_those_of_the_paytable_file(service: RunningService, game: str) -> None:
    pays = read(service, f"/v1/games/{game}")["pays"]
    pair_bonus = {"pair": "1", "flush": "4", "run": "6", "running_flush": "30", "prial": "40"}
    assert pays["pair_bonus"] == pair_bonus
    if game == "three-card-brag":
        assert set(pays["play"].values()) == {"1"}
        assert pays["ante_bonus"] == {"run": "1", "running_flush": "4", "prial": "5"}
    else:
        assert (pays["play"]["running_flush"], pays["play"]["prial"], pays["play"]["run"]) == ("4", "5", "1")
        assert "ante_bonus" not in pays


@every_game
def test_the_figures_are_the_exact_ones_each_with_its_own_denominator(
    service: RunningService, game: str
) -> None:
    told = read(service, f"/v1/games/{game}")["rtp"]
    assert FIGURES[game] == {
        (one["wager"], one["figure"], one["denominator"]): (Fraction(one["exact"]), one["value"])
        for one in told
    }
    assert all(one["strategy"] for one in told)
    figures = {(wager, figure): exact for (wager, figure, _), (exact, _) in FIGURES[game].items()}
    known = ORACLE[game]
    assert figures["main", "rtp"] == 1 + Fraction(known["net_antes"], known["total_staked_antes"])
    assert figures["main", "house_edge"] == -Fraction(known["net_antes"], known["deals"])


@every_game
def test_limits_are_told_for_every_currency_with_the_most_that_can_be_won(
    service: RunningService, game: str
) -> None:
    told, rules = read(service, f"/v1/games/{game}")["limits"], paytable(game)
    assert set(told) == set(rules.limits) == {"GBP", "EUR", "USD", "JPY", "KWD", "XBT"}
    assert told["GBP"]["ante"] == {"min_minor": 5, "max_minor": 300_000, "step_minor": 5}
    assert told["GBP"]["pair_bonus"] == {"min_minor": 5, "max_minor": 100_000, "step_minor": 5}
    assert told["GBP"]["payout_max_minor"] == 5_000_000
    most = maximum_payout_minor(rules, Stakes(300_000, 100_000))
    assert told["GBP"]["maximum_win_minor"] == min(most, 5_000_000)


def test_games_are_told_the_same_with_and_without_a_session(service: RunningService) -> None:
    player = service.operator().player()
    assert player.get("/v1/games").json() == read(service, "/v1/games")
