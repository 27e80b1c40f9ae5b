from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casino_brag.game.hands import AceLowRun, Category, Hand, Ranking, all_hands
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import (
    AnteBonus,
    BonusPaid,
    OnFold,
    PairBonus,
    Rounding,
)
from casino_brag.game.settlement import Deal, Decision, Stakes, settle
from casino_brag.odds.outcomes import DEALS, outcomes
from casino_brag.odds.payoffs import whole_stakes
from casino_brag.odds.returns import (
    Played,
    combined_game,
    main_game,
    pair_bonus_game,
    played,
    player_favouring,
)
from casino_brag.odds.strategies import ALWAYS_PLAY, MAX_EXPECTATION, MAX_RTP, Decisions, Strategy

PAYTABLES = Path(__file__).parents[2] / "paytables"
DATA = Path(__file__).parents[1] / "data"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")
GAMES = json.loads((DATA / "games.json").read_text(encoding="utf-8"))
PAIR_PLUS = json.loads((DATA / "pair_plus_three_card_poker.json").read_text(encoding="utf-8"))["tables"]

POKER_RANKING = Ranking(
    (
        Category.HIGH_CARD,
        Category.PAIR,
        Category.FLUSH,
        Category.RUN,
        Category.PRIAL,
        Category.RUNNING_FLUSH,
    ),
    best_prial=None,
    ace_low_run=AceLowRun.LOWEST,
)


def pays(**by_category: int) -> dict[Category, Fraction]:
    return {Category(category): Fraction(odds) for category, odds in by_category.items()}


THREE_CARD_POKER = replace(
    BRAG,
    ranking=POKER_RANKING,
    ante_bonus=AnteBonus(BonusPaid.ALWAYS, pays(**GAMES["three-card-poker"]["ante_bonus"])),
)
PUBLISHED = [
    pytest.param(paytable, GAMES[name], id=name)
    for name, paytable in (
        ("three-card-brag", BRAG),
        ("double-play-brag", DOUBLE_PLAY),
        ("three-card-poker", THREE_CARD_POKER),
    )
]


@pytest.mark.parametrize(("paytable", "published"), PUBLISHED)
def test_published_main_game(paytable: Paytable, published: dict[str, Any]) -> None:
    game = main_game(paytable)
    assert game.deals == published["deals"] == DEALS
    assert game.net == published["net_antes"]
    assert game.staked == published["total_staked_antes"]
    hands = played(paytable, MAX_EXPECTATION.decisions(paytable))
    assert hands.hands == published["optimal_hands_played"]
    assert hands.lowest == published["lowest_hand_played"]
    assert hands.is_rank_threshold
    distribution = {Fraction(net): deals for net, deals in published["net_distribution"].items()}
    assert game.net_distribution == distribution


@pytest.mark.parametrize(("paytable", "published"), PUBLISHED[:2])
def test_published_percentages(paytable: Paytable, published: dict[str, Any]) -> None:
    game = main_game(paytable)
    assert round(100 * float(game.rtp), 6) == published["rtp_percent_of_total_staked"]
    assert round(100 * float(game.house_edge), 6) == published["house_edge_percent_of_ante"]
    assert round(float(game.variance), 6) == published["variance_per_ante"]
    assert round(float(game.variance) ** 0.5, 6) == published["sd_per_ante"]


def test_three_card_poker_has_the_published_edge_and_risk() -> None:
    game = main_game(THREE_CARD_POKER)
    assert f"{float(game.house_edge):.4%} {float(game.element_of_risk):.4%}" == "3.3730% 2.0147%"


def test_exact_fractions_of_the_shipped_games() -> None:
    assert main_game(BRAG).house_edge == Fraction(3_415_021, 101_792_600)
    assert main_game(DOUBLE_PLAY).house_edge == Fraction(3_586, 363_545)
    for paytable in (BRAG, DOUBLE_PLAY):
        game = main_game(paytable)
        assert game.rtp == 1 - game.element_of_risk != 1 - game.house_edge


def test_the_first_claim_holds_and_the_second_does_not() -> None:
    assert [claim.holds(main_game(BRAG).rtp) for claim in BRAG.claims] == [True]
    assert [claim.holds(main_game(DOUBLE_PLAY).rtp) for claim in DOUBLE_PLAY.claims] == [False]


def test_aggregate_return_cannot_see_the_ranking() -> None:
    """The reason why rankings are proven by counts and a digest, and not by the return."""
    plain = replace(BRAG, ranking=replace(BRAG.ranking, best_prial=None, ace_low_run=AceLowRun.LOWEST))
    assert main_game(plain).net == main_game(BRAG).net


def test_published_pair_bonus() -> None:
    published = GAMES["pair-bonus 40-30-6-4-1 (brag order)"]
    for paytable in (BRAG, DOUBLE_PLAY):
        game = pair_bonus_game(paytable)
        assert game is not None
        assert (game.net, game.deals) == (published["net"], published["hands"])
        assert game.hit_frequency == Fraction(published["winning_hands"], published["hands"])
        assert game.variance + game.house_edge**2 == Fraction(
            published["sum_of_squared_net"], published["hands"]
        )
        assert game.rtp == 1 - Fraction(118, 5525)
        assert f"{float(game.variance) ** 0.5:.6f} {float(game.hit_frequency):.6%}" == "2.932344 25.610860%"


@pytest.mark.parametrize(("table", "net"), PAIR_PLUS.items())
def test_published_pair_plus_tables(table: str, net: int) -> None:
    odds = [Fraction(odds) for odds in table.split("-")]
    order = (Category.RUNNING_FLUSH, Category.PRIAL, Category.RUN, Category.FLUSH, Category.PAIR)
    bonus = PairBonus(BRAG.pair_bonus.on_fold, dict(zip(order, odds, strict=True)))  # type: ignore[union-attr]
    game = pair_bonus_game(replace(THREE_CARD_POKER, pair_bonus=bonus))
    assert game is not None
    assert game.net == net


def test_a_game_without_pair_bonus_has_no_figures_of_one() -> None:
    assert pair_bonus_game(replace(BRAG, pair_bonus=None)) is None
    assert player_favouring(replace(BRAG, pair_bonus=None)) == {}


def decisions(paytable: Paytable, strategy: str = "max_expectation") -> Decisions:
    return Strategy.parse(strategy).decisions(paytable)


def test_always_playing_stakes_two_antes_and_does_worse() -> None:
    always = main_game(BRAG, ALWAYS_PLAY.decisions(BRAG))
    assert always.staked == 2 * DEALS
    assert played(BRAG, ALWAYS_PLAY.decisions(BRAG)).hands == 22_100
    assert always.net < main_game(BRAG).net


def test_always_folding_loses_the_ante() -> None:
    folds = np.zeros_like(decisions(BRAG))
    never = main_game(BRAG, folds)
    assert never.net_distribution == {Fraction(-1): DEALS}
    assert [never.house_edge, never.element_of_risk, never.rtp] == [Fraction(1), Fraction(1), Fraction(0)]
    assert played(BRAG, folds) == Played(0, None, is_rank_threshold=True)


@pytest.mark.parametrize(
    "paytable", [BRAG, DOUBLE_PLAY, THREE_CARD_POKER], ids=lambda paytable: paytable.title
)
def test_no_single_other_decision_is_better(paytable: Paytable) -> None:
    best, best_ratio = decisions(paytable), decisions(paytable, "max_rtp")
    worth, ratio = main_game(paytable).net, main_game(paytable, best_ratio).rtp
    for kind in range(0, len(best), 17):
        other, other_ratio = best.copy(), best_ratio.copy()
        other[kind], other_ratio[kind] = not other[kind], not other_ratio[kind]
        assert main_game(paytable, other).net < worth
        assert main_game(paytable, other_ratio).rtp < ratio


def test_the_highest_return_on_all_money_staked_plays_on_to_queen_six_two() -> None:
    plays = MAX_RTP.decisions(BRAG)
    assert played(BRAG, plays) == Played(15_020, "Q-6-2", is_rank_threshold=True)
    assert f"{float(main_game(BRAG, plays).rtp):.6%}" == "98.000049%"


def test_a_strategy_with_a_gap_is_no_rank_threshold() -> None:
    plays = decisions(BRAG).copy()
    plays[outcomes(BRAG.ranking, BRAG.qualifier).kind_of(Hand.parse("Ac Ad Ah"))] = False
    assert played(BRAG, plays) == Played(14_900 - 4, "Q-6-4", is_rank_threshold=False)


def test_a_hand_worth_the_same_either_way_is_folded() -> None:
    """Q-6-3 in three suits meets 5,747 unqualified dealers, beats 271 and loses to 12,380, so that Ante odds of
    6065/6018 would win back exactly what playing it risks.
    """
    kind = outcomes(BRAG.ranking, BRAG.qualifier).kind_of(Hand.parse("Qc 6d 3h"))
    bare = replace(BRAG, ante_bonus=None)
    assert not decisions(replace(bare, ante_pays=Fraction(6_065, 6_018)))[kind]
    assert decisions(replace(bare, ante_pays=Fraction(6_066, 6_018)))[kind]


def test_double_play_with_an_ante_bonus_favours_the_player() -> None:
    for rounding in (None, Rounding.DOWN):
        paytable = replace(DOUBLE_PLAY, ante_bonus=BRAG.ante_bonus, rounding=rounding)
        assert player_favouring(paytable) == {
            "play.pays": "the main game returns 102.005057% of the money staked (3991922/3913455): "
            "it must not exceed 100 %"
        }


def test_a_generous_pair_bonus_favours_the_player() -> None:
    assert BRAG.pair_bonus is not None
    bonus = replace(BRAG.pair_bonus, pays={**BRAG.pair_bonus.pays, Category.FLUSH: Fraction(5)})
    favours = player_favouring(replace(BRAG, pair_bonus=bonus))
    assert list(favours) == ["pair_bonus.pays"]
    assert favours["pair_bonus.pays"].startswith("the Pair Bonus returns 102.8235")


def test_an_even_game_does_not_favour_the_player() -> None:
    """A Pair Bonus that pays pair and better at just what they are worth."""
    better = 3_744 + 1_096 + 720 + 48 + 52
    even = dict.fromkeys(list(Category)[1:], Fraction(16_440, better))
    paytable = replace(BRAG, pair_bonus=PairBonus(BRAG.pair_bonus.on_fold, even))  # type: ignore[union-attr]
    game = pair_bonus_game(paytable)
    assert game is not None
    assert game.rtp == 1
    assert player_favouring(paytable) == {}


def test_the_shipped_games_do_not_favour_the_player() -> None:
    assert player_favouring(BRAG) == player_favouring(DOUBLE_PLAY) == {}


def test_fractional_odds_are_exact() -> None:
    paytable = replace(
        BRAG, ante_pays=Fraction(6, 5), play_pays={**BRAG.play_pays, Category.RUN: Fraction(3, 7)}
    )
    assert whole_stakes(paytable).ante_minor == 35
    game = main_game(paytable)
    assert Fraction(6, 5) in game.net_distribution
    assert game.deals == DEALS


@pytest.mark.parametrize("denominators", [(999_979, 999_961, 999_953), tuple(range(999_980, 999_986))])
def test_denominators_too_large_for_64_bits_do_not_overflow(denominators: tuple[int, ...]) -> None:
    """Odds within 0.005 % of 1 to 1 must leave the game all but unchanged."""
    odds = {
        category: Fraction(999_999, denominator)
        for category, denominator in zip(Category, denominators, strict=False)
    }
    paytable = replace(BRAG, play_pays={**BRAG.play_pays, **odds})
    assert whole_stakes(paytable).ante_minor * 18_424 > 2**63
    game = main_game(paytable)
    assert played(paytable, decisions(paytable)).hands == 14_900
    assert abs(game.net - main_game(BRAG).net) < Fraction(5, 100_000) * DEALS


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([BRAG, DOUBLE_PLAY]), st.integers(1, 1000))
def test_no_round_ends_outside_the_distribution(random: Any, paytable: Paytable, ante_minor: int) -> None:
    """Cards settled one round at a time land on the nets that the exact figures count."""
    player = random.choice(all_hands())
    dealer = random.choice([hand for hand in all_hands()[::50] if not set(hand) & set(player)])
    plays = decisions(paytable)[outcomes(paytable.ranking, paytable.qualifier).kind_of(player)]
    decision = Decision.PLAY if plays else Decision.FOLD
    settlement = settle(paytable, Stakes(ante_minor), Deal(player, dealer), decision)
    assert Fraction(settlement.net_minor, ante_minor) in main_game(paytable).net_distribution


def test_figures_at_a_stake_are_those_of_what_that_stake_is_paid() -> None:
    """At an Ante of 1 an Ante Bonus of 3 to 2 pays 1, at an Ante of 3 it pays 4."""
    bonus = AnteBonus(BonusPaid.ALWAYS, {Category.RUN: Fraction(3, 2)})
    rounded = replace(BRAG, ante_bonus=bonus, rounding=Rounding.DOWN)
    for ante_minor, paid in ((1, Fraction(1)), (2, Fraction(3, 2)), (3, Fraction(4, 3))):
        at_stake = main_game(rounded, stakes=Stakes(ante_minor))
        exact = replace(BRAG, ante_bonus=AnteBonus(BonusPaid.ALWAYS, {Category.RUN: paid}))
        assert at_stake.net_distribution == main_game(exact).net_distribution
    assert main_game(rounded, stakes=Stakes(1)).rtp < main_game(rounded).rtp
    assert main_game(rounded, stakes=Stakes(2)).rtp == main_game(rounded).rtp


def test_published_covariance_of_main_game_and_pair_bonus() -> None:
    both = combined_game(BRAG)
    bonus = pair_bonus_game(BRAG)
    assert both is not None
    assert bonus is not None
    assert f"{float(both.covariance):.6f}" == "2.357491"
    assert both.returns.variance == main_game(BRAG).variance + bonus.variance + 2 * both.covariance
    assert both.returns.net == main_game(BRAG).net + bonus.net * Fraction(DEALS, 22_100)
    assert combined_game(replace(BRAG, pair_bonus=None)) is None


def test_a_pair_bonus_that_a_fold_would_lose_is_played_for() -> None:
    """A Pair Bonus that pays high cards makes folding dear: with it staked, more hands are played."""
    bonus = PairBonus(OnFold.LOST, {Category.HIGH_CARD: Fraction(1, 10)})
    both = combined_game(replace(BRAG, pair_bonus=bonus))
    assert both is not None
    assert played(BRAG, both.plays).hands > 14_900
    settled = combined_game(replace(BRAG, pair_bonus=replace(bonus, on_fold=OnFold.SETTLED)))
    assert settled is not None
    assert played(BRAG, settled.plays).hands == 14_900


@pytest.mark.parametrize(
    "name", ["max_expectation", "dealer_mimic", "fold_below:pair", "fold_below:Q-6-4 suited"]
)
def test_a_strategy_is_read_as_it_is_written(name: str) -> None:
    assert str(Strategy.parse(name)) == name


@pytest.mark.parametrize(
    "name", ["", "fold_below", "fold_below:", "fold_below:4-6-Q", "best", "max_rtp:Q", "any"]
)
def test_what_is_no_strategy_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(ValueError, match="Q-6-4"):
        Strategy.parse(name)


def test_a_rank_threshold_plays_what_a_dealer_of_that_threshold_would() -> None:
    assert (decisions(BRAG, "fold_below:Q") == decisions(BRAG, "dealer_mimic")).all()
    assert (decisions(BRAG, "fold_below:any") == decisions(BRAG, "always_play")).all()
    assert (decisions(BRAG, "fold_below:Q-6-4") == decisions(BRAG)).all()
    assert played(BRAG, decisions(BRAG, "fold_below:pair")).hands == 22_100 - 16_440


def test_variance_and_skewness_are_those_of_the_deals_one_by_one() -> None:
    game = main_game(BRAG)
    nets = [float(net) for net in game.net_distribution]
    weights = [deals / DEALS for deals in game.net_distribution.values()]
    mean = float(np.average(nets, weights=weights))
    moments = [float(np.average((np.array(nets) - mean) ** power, weights=weights)) for power in (2, 3)]
    assert float(game.variance) == pytest.approx(moments[0], rel=1e-12)
    assert game.skewness == pytest.approx(moments[1] / moments[0] ** 1.5, rel=1e-9)


def test_hits_and_pushes_are_counted_apart() -> None:
    game = main_game(BRAG)
    distribution = game.net_distribution
    assert game.hit_frequency == Fraction(sum(n for net, n in distribution.items() if net > 0), DEALS)
    assert game.push_frequency == Fraction(distribution[Fraction(0)], DEALS)
