from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Limits, OnFold, PairBonus, Rounding, StakeRange
from casino_brag.game.settlement import Stakes
from casino_brag.odds import pages
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.odds.returns import main_game
from tests.paytables import paytables

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")
GAMES = json.loads((Path(__file__).parents[1] / "data" / "games.json").read_text(encoding="utf-8"))
every_shipped = pytest.mark.parametrize("paytable", [BRAG, DOUBLE_PLAY], ids=lambda paytable: paytable.game)


@every_shipped
def test_the_committed_sheets_are_those_that_are_made_now(paytable: Paytable) -> None:
    """Made anew by: casino-brag par-sheet paytables/GAME.toml --format json (or md) > paytables/GAME.par.json"""
    sheet = par_sheet(paytable)
    committed = PAYTABLES / f"{paytable.game}.par.json"
    assert committed.read_text(encoding="utf-8") == json.dumps(sheet, indent=1) + "\n"
    page = PAYTABLES / f"{paytable.game}.par.md"
    assert page.read_text(encoding="utf-8") == pages.markdown(paytable, sheet)


@every_shipped
def test_the_sheet_holds_the_published_figures(paytable: Paytable) -> None:
    published, main = GAMES[paytable.game], par_sheet(paytable)["main"]
    for key in ("deals", "net_antes", "total_staked_antes", "net_distribution"):
        assert main[key] == published[key]
    assert main["strategy"] == {
        "name": "max_expectation",
        "hands_played": published["optimal_hands_played"],
        "lowest_hand_played": published["lowest_hand_played"],
        "is_rank_threshold": True,
    }
    assert round(100 * main["rtp"], 6) == published["rtp_percent_of_total_staked"]
    assert round(100 * main["house_edge"], 6) == published["house_edge_percent_of_ante"]
    assert round(main["variance"], 6) == published["variance_per_ante"]


def both(sheet: dict[str, Any]) -> list[tuple[float, Fraction]]:
    """Every figure that stands in a sheet as a decimal and exactly."""
    found = []
    for key, value in sheet.items():
        if isinstance(value, dict):
            found += both(value)
        elif isinstance(value, list):
            found += [pair for row in value if isinstance(row, dict) for pair in both(row)]
        elif key.endswith("_exact") and value is not None:
            found.append((sheet[key.removesuffix("_exact")], Fraction(value)))
    return found


@settings(max_examples=25, deadline=None)
@given(paytables())
def test_laws_of_every_sheet(paytable: Paytable) -> None:
    sheet = par_sheet(paytable)
    main = sheet["main"]
    assert json.loads(json.dumps(sheet)) == sheet
    assert all(decimal == round(float(exact), 12) for decimal, exact in both(sheet))

    edge, rtp = Fraction(main["house_edge_exact"]), Fraction(main["rtp_exact"])
    for other in main["alternatives"]:
        assert Fraction(other["house_edge_exact"]) >= edge
    best_rtp = next(other for other in main["alternatives"] if other["name"] == "max_rtp")
    for other in (main, *main["alternatives"]):
        assert Fraction(other["rtp_exact"]) <= Fraction(best_rtp["rtp_exact"])
        assert sum(other["net_distribution"].values()) == 407_170_400
    assert all(Fraction(mistake["cost_exact"]) >= 0 for mistake in main["mistakes"])
    costs = [mistake["cost"] for mistake in main["mistakes"]]
    assert costs == sorted(costs, reverse=True)

    assert sum(Fraction(wager["net"]) for wager in main["wagers"]) == Fraction(main["net_antes"])
    assert sum(Fraction(wager["staked"]) for wager in main["wagers"]) == Fraction(main["total_staked_antes"])
    assert (rtp > 1) == any(warning.startswith("play.pays") for warning in sheet["warnings"])
    bonus = sheet["pair_bonus"]
    if bonus is not None:
        rows = bonus["rows"]
        assert sum(Fraction(row["contribution_exact"]) for row in rows) == Fraction(bonus["rtp_exact"])
        assert sum(row["hands"] for row in rows) == 22_100
        assert -1 <= sheet["combined"]["correlation"] <= 1


def test_the_strategies_compared_are_named_and_the_dealers_own_stands_once() -> None:
    names = [other["name"] for other in par_sheet(BRAG)["main"]["alternatives"]]
    assert names == [
        "max_rtp",
        "dealer_mimic",
        "always_play",
        "fold_below:T",
        "fold_below:J",
        "fold_below:K",
        "fold_below:A",
        "fold_below:pair",
    ]


def test_a_mistake_costs_what_the_house_edge_rises_by() -> None:
    main = par_sheet(BRAG)["main"]
    costs = {mistake["mistake"]: mistake for mistake in main["mistakes"]}
    always = next(other for other in main["alternatives"] if other["name"] == "always_play")
    rise = Fraction(always["house_edge_exact"]) - Fraction(main["house_edge_exact"])
    assert Fraction(costs["plays every hand"]["cost_exact"]) == rise
    assert costs["plays every hand"]["hands"] == 22_100 - 14_900
    # Q-6-4 in three suits is worth -18,302 of 18,424 Antes, and 122 are given away on each of its deals.
    assert (costs["folds Q-6-4"]["hands"], costs["plays Q-6-3"]["hands"]) == (60, 60)
    assert Fraction(costs["folds Q-6-4"]["cost_exact"]) > Fraction(costs["plays Q-6-3"]["cost_exact"]) > 0


def test_the_side_bet_s_spread_does_not_add_to_the_main_game_s() -> None:
    sheet = par_sheet(BRAG)
    combined = sheet["combined"]
    assert round(combined["covariance"], 6) == 2.357491
    alone = Fraction(sheet["main"]["variance_exact"]) + Fraction(sheet["pair_bonus"]["variance_exact"])
    assert Fraction(combined["variance_exact"]) == alone + 2 * Fraction(combined["covariance_exact"])


def test_rounds_needed_grow_with_the_square_of_the_precision() -> None:
    sheet = par_sheet(BRAG)
    rounds = sheet["rounds_for_half_width"]["house_edge"]
    assert rounds["0.001"] == ceil((1.959963984540054 * sheet["main"]["sd"] / 0.001) ** 2)
    assert rounds["0.0001"] == pytest.approx(100 * rounds["0.001"], rel=1e-6)


def test_a_favouring_sheet_is_given_with_its_warning() -> None:
    sheet = par_sheet(replace(DOUBLE_PLAY, ante_bonus=BRAG.ante_bonus))
    assert f"{sheet['main']['rtp']:.3%}" == "102.005%"
    (warning,) = sheet["warnings"]
    assert warning.startswith("play.pays: the main game returns 102.005")
    assert warning.endswith("cannot be published")


ROUNDED = replace(
    BRAG,
    play_pays={**BRAG.play_pays, Category.RUN: Fraction(3, 2)},
    pair_bonus=PairBonus(OnFold.LOST, {Category.PAIR: Fraction(7, 4)}),
    rounding=Rounding.DOWN,
    limits={"GBP": Limits(StakeRange(1, 60, 1), StakeRange(5, 65, 5), None)},
)


def test_where_winnings_are_rounded_small_stakes_have_their_own_figures() -> None:
    sheet = par_sheet(ROUNDED)
    stakes = sheet["per_stake"]
    assert [row["stake_minor"] for row in stakes["ante"]] == [1, 2, 60]
    assert [row["stake_minor"] for row in stakes["pair_bonus"]] == [5, 10, 15, 20, 65]
    assert stakes["complete"]
    assert stakes["ante"][1]["rtp_exact"] == sheet["main"]["rtp_exact"]
    assert stakes["ante"][0]["rtp"] < sheet["main"]["rtp"]
    assert par_sheet(BRAG)["per_stake"] is None


def test_no_stake_has_a_higher_house_edge_than_the_highest_shown() -> None:
    shown = max(Fraction(row["house_edge_exact"]) for row in par_sheet(ROUNDED)["per_stake"]["ante"])
    assert shown == max(main_game(ROUNDED, stakes=Stakes(ante)).house_edge for ante in range(1, 61))


def test_stakes_that_would_be_too_many_to_show_are_said_to_be_cut() -> None:
    fine = replace(ROUNDED, ante_pays=Fraction(99_991, 99_989))
    assert not par_sheet(fine)["per_stake"]["complete"]
