from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import OnFold, PairBonus, Rounding
from casino_brag.game.settlement import Result, Spot, Stakes, settle_outcome
from casino_brag.odds.outcomes import outcomes
from casino_brag.odds.returns import hands_by_category, main_game, pair_bonus_game
from casino_brag.odds.strategies import MAX_EXPECTATION, Strategy, count_endings
from casino_brag.odds.tails import EXPECTED_MIN, chi_square_p, normal_p
from casino_brag.simulation.plan import Plan, StakePattern
from casino_brag.simulation.tally import Counts, Tally
from casino_brag.simulation.verdict import (
    AGREES_FROM,
    DISAGREES_BELOW,
    Conclusion,
    Figure,
    Fit,
    Verdict,
    holm,
    judge,
)

BRAG = Paytable.load("paytables/three-card-brag.toml")
DOUBLE = Paytable.load("paytables/double-play-brag.toml")
MIXED = StakePattern.parse("100+50,200x2,7+3")
PLAN = Plan(BRAG, MAX_EXPECTATION, MIXED, 10**6, bytes(48))
FOLD, NOT_QUALIFIED, WIN, TIE, LOSE = range(5)


def theory(plan: Plan) -> Counts:
    return count_endings(outcomes(plan.paytable.ranking, plan.paytable.qualifier), plan.decisions)


def drawn(plan: Plan, generator: np.random.Generator, endings: Counts | None = None) -> Tally:
    """A tally as chance makes it, without dealing a card: a multinomial number of each ending."""
    chances = (theory(plan) if endings is None else endings).ravel()
    dealer = np.array(hands_by_category(plan.paytable))
    outcomes_seen = [
        generator.multinomial(rounds, chances / chances.sum()).reshape(6, 5)
        for rounds in plan.rounds_by_slot(0, plan.chunks - 1)
    ]
    return Tally(
        plan.rounds, np.stack(outcomes_seen), generator.multinomial(plan.rounds, dealer / dealer.sum()), 0
    )


def named(verdict: Verdict) -> tuple[dict[str, Figure], dict[str, Fit]]:
    return {figure.name: figure for figure in verdict.figures}, {fit.name: fit for fit in verdict.fits}


# The published upper 10, 5, 1 and 0.1 % points, to the digits printed: NIST/SEMATECH e-Handbook of Statistical
# Methods, section 1.3.6.7.4.
CHI_SQUARE_TABLE = {
    1: (2.706, 3.841, 6.635, 10.828),
    2: (4.605, 5.991, 9.210, 13.816),
    3: (6.251, 7.815, 11.345, 16.266),
    4: (7.779, 9.488, 13.277, 18.467),
    5: (9.236, 11.070, 15.086, 20.515),
    10: (15.987, 18.307, 23.209, 29.588),
    21: (29.615, 32.671, 38.932, 46.797),
    29: (39.087, 42.557, 49.588, 58.301),
}


@pytest.mark.parametrize("degrees", CHI_SQUARE_TABLE)
def test_chi_square_gives_the_published_points(degrees: int) -> None:
    for point, p in zip(CHI_SQUARE_TABLE[degrees], (0.10, 0.05, 0.01, 0.001), strict=True):
        assert chi_square_p(point + 0.0005, degrees) <= p <= chi_square_p(point - 0.0005, degrees)


@given(st.floats(0.5, 60), st.integers(3, 40))
def test_chi_square_falls_by_its_density(statistic: float, degrees: int) -> None:
    # Abramowitz and Stegun 26.4.8: the tails of v and of v - 2 degrees differ by twice the density of v degrees.
    density = (chi_square_p(statistic, degrees) - chi_square_p(statistic, degrees - 2)) / 2
    step = 1e-3
    fall = chi_square_p(statistic - step, degrees) - chi_square_p(statistic + step, degrees)
    assert fall / (2 * step) == pytest.approx(density, abs=1e-6)


def test_chi_square_at_its_ends() -> None:
    assert chi_square_p(0, 7) == 1
    assert chi_square_p(12.5, 0) == 1
    assert chi_square_p(1e30, 29) == 0
    assert chi_square_p(1e30, 28) == 0
    assert 0 < chi_square_p(1400, 29) < 1e-200


@pytest.mark.parametrize(
    ("z", "p"), [(0, 1), (1, 0.317311), (-1.959964, 0.05), (2.575829, 0.01), (4.891638, 1e-6)]
)
def test_the_normal_law_gives_the_published_points(z: float, p: float) -> None:
    assert normal_p(z) == pytest.approx(p, rel=1e-5)


def test_holm_by_hand() -> None:
    # Five tests: 5 x 0.005, 4 x 0.011, then 3 x 0.02 = 0.06, 2 x 0.04 = 0.08, and 1 x 0.13.
    assert holm([0.04, 0.005, 0.13, 0.011, 0.02]) == pytest.approx([0.08, 0.025, 0.13, 0.044, 0.06])
    # 3 x 0.01 = 0.03 and 2 x 0.014 = 0.028, which may not be less than the one before.
    assert holm([0.014, 0.01, 0.9]) == pytest.approx([0.03, 0.03, 0.9])
    assert holm([0.6, 0.7]) == (1, 1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_lies_between_the_raw_p_and_bonferroni_s(raw: Sequence[float]) -> None:
    adjusted = holm(raw)
    assert all(p <= q <= min(1, len(raw) * p) for p, q in zip(raw, adjusted, strict=True))
    by_raw = [adjusted[i] for i in sorted(range(len(raw)), key=raw.__getitem__)]
    assert by_raw == sorted(by_raw)


@pytest.mark.parametrize("paytable", [BRAG, DOUBLE], ids=lambda paytable: paytable.game)
@pytest.mark.parametrize("strategy", ["max_expectation", "max_rtp", "always_play", "fold_below:pair"])
def test_the_expected_figures_are_the_exact_ones_of_the_same_strategy(
    paytable: Paytable, strategy: str
) -> None:
    plan = Plan(paytable, Strategy.parse(strategy), StakePattern.parse("100+100"), 10**6, bytes(48))
    figures, fits = named(judge(plan, drawn(plan, np.random.default_rng(1))))
    game, pair_bonus = main_game(paytable, plan.decisions), pair_bonus_game(paytable)
    assert pair_bonus is not None
    assert figures["main_rtp"].expected == game.rtp
    assert figures["main_house_edge"].expected == game.house_edge
    bonus_lost_by_folds = sum(
        Fraction(deals * (1 + BRAG.pair_bonus.pays.get(category, 0)), 407_170_400)
        for category, deals in zip(Category, theory(plan)[:, FOLD].tolist(), strict=True)
        if BRAG.pair_bonus is not None and category in BRAG.pair_bonus.pays
    )
    assert figures["pair_bonus_rtp"].expected == pair_bonus.rtp - bonus_lost_by_folds
    assert [cell.expected for cell in fits["results"].cells] == [
        Fraction(10**6 * deals, 407_170_400) for deals in theory(plan).sum(axis=0).tolist()
    ]
    for of in ("player_categories", "dealer_categories"):
        assert [cell.expected for cell in fits[of].cells] == [
            Fraction(10**6 * hands, 22_100) for hands in (16_440, 3_744, 1_096, 720, 48, 52)
        ]


def test_stakes_weigh_by_the_rounds_played_for_them() -> None:
    plan = replace(PLAN, pattern=StakePattern.parse("100+100,200x5"))
    figures, _ = named(judge(plan, drawn(plan, np.random.default_rng(15))))
    main, pair_bonus = main_game(BRAG), pair_bonus_game(BRAG)
    assert pair_bonus is not None
    # Of 10^6 rounds every sixth is the pattern's first, beginning with the first of all.
    first = -(-(10**6) // 6)
    antes, bonuses = first * 100 + (10**6 - first) * 200, first * 100
    staked = antes * main.staked / main.deals
    assert figures["total_rtp"].expected == (staked * main.rtp + bonuses * pair_bonus.rtp) / (
        staked + bonuses
    )


def test_sums_and_ratios_are_those_of_settling_every_round_by_itself() -> None:
    tally = drawn(PLAN, np.random.default_rng(2))
    rounds = [
        (int(count), settle_outcome(BRAG, stakes, category, result))
        for stakes, of_slot in zip(MIXED.stakes, tally.outcomes, strict=True)
        for category, of_category in zip(Category, of_slot, strict=True)
        for result, count in zip(Result, of_category, strict=True)
    ]

    def summed(*spots: Spot) -> tuple[int, int]:
        wagers = [(count, wager) for count, wagers in rounds for wager in wagers if wager.spot in spots]
        return (
            sum(count * wager.stake_minor for count, wager in wagers),
            sum(count * wager.payout_minor for count, wager in wagers),
        )

    verdict = judge(PLAN, tally)
    figures, _ = named(verdict)
    assert (verdict.staked_minor, verdict.returned_minor) == summed(*Spot)
    main = (Spot.ANTE, Spot.PLAY, Spot.ANTE_BONUS)
    for name, spots in {
        "main_rtp": main,
        "pair_bonus_rtp": (Spot.PAIR_BONUS,),
        "total_rtp": tuple(Spot),
    }.items():
        staked, returned = summed(*spots)
        assert figures[name].simulated == Fraction(returned, staked)
    staked, returned = summed(*main)
    assert figures["main_house_edge"].simulated == Fraction(staked - returned, summed(Spot.ANTE)[0])


def test_intervals_and_z_at_one_stake_are_those_of_the_exact_variance() -> None:
    plan = replace(PLAN, pattern=StakePattern.parse("1+1"))
    figures, _ = named(judge(plan, drawn(plan, np.random.default_rng(3)), 0.95))
    for name, exact in {
        "main_house_edge": main_game(BRAG),
        "pair_bonus_rtp": pair_bonus_game(BRAG),
    }.items():
        assert exact is not None
        figure = figures[name]
        error = exact.sd / sqrt(plan.rounds)
        assert figure.z == pytest.approx(float(figure.simulated - figure.expected) / error)
        assert figure.p == normal_p(figure.z)
        # The interval's width comes from the sample, so it is near the exact one and no more.
        assert figure.high - figure.low == pytest.approx(2 * 1.959964 * error, rel=0.02)
        assert figure.low + figure.high == pytest.approx(2 * float(figure.simulated))


def test_a_wager_that_is_not_staked_has_no_figure() -> None:
    plan = replace(PLAN, pattern=StakePattern.parse("100"))
    assert set(named(judge(plan, drawn(plan, np.random.default_rng(4))))[0]) == {
        "main_rtp",
        "main_house_edge",
    }


def test_intervals_hold_the_exact_figure_as_often_as_they_say_and_z_is_standard_normal() -> None:
    plan = replace(PLAN, rounds=100_000)
    generator = np.random.default_rng(20)
    times = 400
    verdicts = [judge(plan, drawn(plan, generator), 0.9) for _ in range(times)]
    for figures in zip(*(verdict.figures for verdict in verdicts), strict=True):
        held = sum(figure.low <= float(figure.expected) <= figure.high for figure in figures)
        # Four standard deviations of a binomial number.
        assert abs(held - 0.9 * times) < 4 * sqrt(times * 0.9 * 0.1), figures[0].name
        z = np.array([figure.z for figure in figures])
        assert abs(z.mean()) < 4 / sqrt(times), figures[0].name
        assert abs(z.std() - 1) < 4 / sqrt(2 * times), figures[0].name
    for fits in zip(*(verdict.fits for verdict in verdicts), strict=True):
        unusual = sum(fit.p < 0.1 for fit in fits)
        assert abs(unusual - 0.1 * times) < 4 * sqrt(times * 0.9 * 0.1), fits[0].name
    # By Holm at most one in a hundred asks for another run, and none of them condemns.
    conclusions = [verdict.conclusion for verdict in verdicts]
    assert conclusions.count(Conclusion.AGREES) >= times - 12
    assert Conclusion.DISAGREES not in conclusions


def test_a_greater_confidence_widens_the_interval_and_changes_nothing_else() -> None:
    tally = drawn(PLAN, np.random.default_rng(5))
    narrow, wide = judge(PLAN, tally, 0.9), judge(PLAN, tally, 0.999)
    for a, b in zip(narrow.figures, wide.figures, strict=True):
        assert (b.high - b.low) / (a.high - a.low) == pytest.approx(3.290527 / 1.644854, rel=1e-6)
    assert (narrow.adjusted, narrow.fits) == (wide.adjusted, wide.fits)


def test_an_ending_that_cannot_occur_is_a_failure_if_it_occurs_once() -> None:
    tally = drawn(PLAN, np.random.default_rng(6))
    outcomes_seen = tally.outcomes.copy()
    # A pair is never folded.
    outcomes_seen[0, 1, FOLD] += 1
    outcomes_seen[0, 1, WIN] -= 1
    verdict = judge(PLAN, Tally(tally.rounds, outcomes_seen, tally.dealer_categories, 0))
    assert verdict.impossible == ("pair.fold",)
    assert verdict.conclusion is Conclusion.DISAGREES
    assert min(verdict.adjusted) >= AGREES_FROM
    assert judge(PLAN, tally).conclusion is Conclusion.AGREES


def shifted(fault: str) -> Counts:
    """The endings of a game with something wrong with it."""
    endings = theory(PLAN).astype(np.float64)
    match fault:
        case "two per cent too many pairs":
            endings[1] *= 1.02
        case "prials deal themselves half as often":
            endings[5] *= 0.5
        case "one tie in five is a win":
            endings[:, WIN] += 0.2 * endings[:, TIE]
            endings[:, TIE] *= 0.8
        case "the dealer wins one round in two hundred more":
            endings[:, LOSE] += 0.01 * endings[:, WIN]
            endings[:, WIN] *= 0.99
    return endings.astype(np.int64)


@pytest.mark.parametrize(
    "fault",
    [
        "two per cent too many pairs",
        "prials deal themselves half as often",
        "one tie in five is a win",
        "the dealer wins one round in two hundred more",
    ],
)
def test_a_fault_is_found(fault: str) -> None:
    plan = replace(PLAN, rounds=10**8)
    tally = drawn(plan, np.random.default_rng(7), shifted(fault))
    verdict = judge(plan, tally)
    assert verdict.conclusion is Conclusion.DISAGREES
    assert verdict.impossible == ()


def test_a_fault_at_one_stake_only_is_found_in_the_money() -> None:
    # Every ending as often as it should be, but the winners are the rounds at the largest stake.
    tally = drawn(replace(PLAN, rounds=10**7), np.random.default_rng(8))
    outcomes_seen = tally.outcomes.copy()
    moved = np.minimum(outcomes_seen[3, :, WIN], outcomes_seen[1, :, LOSE]) // 20
    for slot, sign in ((3, -1), (1, 1)):
        outcomes_seen[slot, :, WIN] += sign * moved
        outcomes_seen[slot, :, LOSE] -= sign * moved
    verdict = judge(replace(PLAN, rounds=10**7), Tally(10**7, outcomes_seen, tally.dealer_categories, 0))
    figures, fits = named(verdict)
    assert figures["main_rtp"].p < DISAGREES_BELOW / 10
    assert all(fit.p > AGREES_FROM for fit in fits.values())
    assert verdict.conclusion is Conclusion.DISAGREES


def test_wrong_dealer_s_hands_are_found_by_themselves() -> None:
    tally = drawn(PLAN, np.random.default_rng(9))
    dealer = tally.dealer_categories.copy()
    dealer[:2] += (-4000, 4000)
    verdict = judge(PLAN, Tally(tally.rounds, tally.outcomes, dealer, 0))
    _, fits = named(verdict)
    assert fits["dealer_categories"].p < 1e-10
    assert verdict.conclusion is Conclusion.DISAGREES


@pytest.mark.parametrize(
    ("p", "conclusion"),
    [
        (1.0, Conclusion.AGREES),
        (AGREES_FROM, Conclusion.AGREES),
        (0.00999, Conclusion.REPEAT),
        (DISAGREES_BELOW, Conclusion.REPEAT),
        (0.99e-6, Conclusion.DISAGREES),
        (0.0, Conclusion.DISAGREES),
    ],
)
def test_the_smallest_adjusted_p_decides(p: float, conclusion: Conclusion) -> None:
    verdict = judge(PLAN, drawn(PLAN, np.random.default_rng(10)))
    assert replace(verdict, adjusted=(1.0, p, 0.5)).conclusion is conclusion


# At 110,000 rounds five rare endings together are expected 5 times, and yet the sixth, 4.94 times, belongs to them;
# at 1,000,000 the two rare ones are too few together, so that the next one is added.
@pytest.mark.parametrize("rounds", [100_000, 110_000, 1_000_000])
def test_cells_with_few_expected_are_counted_as_one(rounds: int) -> None:
    plan = replace(PLAN, rounds=rounds)
    tally = drawn(plan, np.random.default_rng(11))
    _, fits = named(judge(plan, tally))
    fit = fits["endings"]
    possible = [cell for cell in fit.cells if cell.expected]
    rare = [cell for cell in possible if cell.expected < EXPECTED_MIN]
    assert len(rare) > 1
    pooled = [cell for cell in possible if cell not in rare]
    counted, expected = sum(cell.counted for cell in rare), sum(cell.expected for cell in rare)
    if expected < EXPECTED_MIN:
        least = min(pooled, key=lambda cell: cell.expected)
        pooled.remove(least)
        counted, expected = counted + least.counted, expected + least.expected
    by_hand = float((counted - expected) ** 2 / expected) + sum(
        (cell.counted - float(cell.expected)) ** 2 / float(cell.expected) for cell in pooled
    )
    assert fit.chi_square == pytest.approx(by_hand)
    assert fit.degrees == len(pooled)
    assert fit.p == chi_square_p(fit.chi_square, fit.degrees)


def test_a_figure_that_cannot_vary_is_not_tested() -> None:
    always_returned = PairBonus(OnFold.SETTLED, dict.fromkeys(Category, Fraction(0)))
    plan = replace(PLAN, paytable=replace(BRAG, pair_bonus=always_returned))
    figures, _ = named(judge(plan, drawn(plan, np.random.default_rng(13))))
    assert figures["pair_bonus_rtp"] == Figure("pair_bonus_rtp", Fraction(1), 1, 1, Fraction(1), 0, 1)


def test_figures_at_rounded_stakes_are_those_of_these_stakes() -> None:
    rounded = replace(BRAG, ante_pays=Fraction(3, 2), rounding=Rounding.DOWN)
    plan = replace(PLAN, paytable=rounded, pattern=StakePattern.parse("3"))
    figures, _ = named(judge(plan, drawn(plan, np.random.default_rng(14))))
    assert figures["main_rtp"].expected == main_game(rounded, plan.decisions, Stakes(3)).rtp
    assert figures["main_rtp"].expected < main_game(rounded, plan.decisions).rtp


def test_a_played_tally_agrees_and_says_the_same_in_json() -> None:
    plan = replace(PLAN, rounds=2_000_000)
    verdict = judge(plan, plan.play(0))
    assert verdict.conclusion is Conclusion.AGREES
    document = json.loads(json.dumps(verdict.document(), allow_nan=False))
    assert document["conclusion"] == "agrees"
    assert document["plan"] == plan.document()
    assert sum(cell["counted"] for cell in document["fits"]["endings"]["cells"].values()) == 2_000_000
    assert Fraction(document["figures"]["main_rtp"]["expected_exact"]) == verdict.figures[0].expected
    adjusted = [*document["figures"].values(), *document["fits"].values()]
    assert [test["p_adjusted"] for test in adjusted] == list(verdict.adjusted)


def test_rounds_played_under_another_ranking_are_found() -> None:
    high_card, pair, flush, run, *better = BRAG.ranking.categories
    swapped = replace(BRAG, ranking=replace(BRAG.ranking, categories=(high_card, pair, run, flush, *better)))
    played = Plan(swapped, MAX_EXPECTATION, StakePattern.parse("1"), 2_000_000, bytes(48))
    verdict = judge(replace(played, paytable=BRAG), played.play(0))
    figures, fits = named(verdict)
    assert verdict.conclusion is Conclusion.DISAGREES
    assert fits["endings"].p < DISAGREES_BELOW
    # Only the endings tell: as many rounds are won and lost, and as many hands dealt of every category.
    assert min(figures["main_rtp"].p, fits["results"].p, fits["player_categories"].p) > AGREES_FROM
