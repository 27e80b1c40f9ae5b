"""What the transcripts do not show one by one: laws of settlement, and the bound on payouts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.game.cards import PACK
from casino_brag.game.hands import AceLowRun, Category, Hand, Ranking
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import (
    AnteBonus,
    BonusPaid,
    NotQualified,
    OnFold,
    PairBonus,
    Qualifier,
    Rounding,
    TieResult,
    Unqualified,
)
from casino_brag.game.settlement import (
    Deal,
    Decision,
    Result,
    Spot,
    Stakes,
    maximum_payout_minor,
    play_stake_minor,
    possible_outcomes,
    qualifying_class,
    settle,
)

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")

odds = st.builds(Fraction, st.integers(0, 50), st.integers(1, 4))
paying = st.dictionaries(st.sampled_from(Category), odds.filter(bool), min_size=1)
rankings = st.builds(
    Ranking,
    st.permutations(list(Category)).map(tuple),
    best_prial=st.sampled_from([None, "2", "3", "K"]),
    ace_low_run=st.sampled_from(AceLowRun),
)
paytables = st.builds(
    replace,
    st.just(BRAG),
    ranking=rankings,
    qualifier=st.sampled_from(Qualifier),
    not_qualified=st.builds(NotQualified, st.sampled_from(Unqualified), st.sampled_from(Unqualified)),
    play_multiple=st.integers(1, 10),
    play_pays=st.fixed_dictionaries(dict.fromkeys(Category, odds)),
    ante_pays=odds,
    tie=st.sampled_from(TieResult),
    ante_bonus=st.none() | st.builds(AnteBonus, st.sampled_from(BonusPaid), paying),
    pair_bonus=st.builds(PairBonus, st.sampled_from(OnFold), paying),
    rounding=st.just(Rounding.DOWN),
)
stakes_taken = st.builds(Stakes, st.integers(1, 10**9), st.integers(0, 10**9))
deals = st.permutations(PACK).map(lambda cards: Deal(Hand.of(*cards[:3]), Hand.of(*cards[3:6])))
decisions = st.sampled_from(Decision)


@given(paytables, stakes_taken, deals, decisions)
def test_totals_are_the_sums_of_the_wagers(
    paytable: Paytable, stakes: Stakes, deal: Deal, decision: Decision
) -> None:
    settlement = settle(paytable, stakes, deal, decision)
    assert settlement.total_staked_minor == sum(wager.stake_minor for wager in settlement.wagers)
    assert settlement.total_payout_minor == sum(wager.payout_minor for wager in settlement.wagers)
    assert settlement.net_minor == settlement.total_payout_minor - settlement.total_staked_minor
    assert settlement.celebrate == (settlement.total_payout_minor > settlement.total_staked_minor)
    assert all(wager.payout_minor >= 0 for wager in settlement.wagers)


@given(paytables, stakes_taken, deals, decisions)
def test_exactly_the_stakes_taken_are_on_the_layout(
    paytable: Paytable, stakes: Stakes, deal: Deal, decision: Decision
) -> None:
    settlement = settle(paytable, stakes, deal, decision)
    staked = {wager.spot: wager.stake_minor for wager in settlement.wagers if wager.stake_minor}
    expected = {Spot.ANTE: stakes.ante_minor}
    if decision is Decision.PLAY:
        expected[Spot.PLAY] = paytable.play_multiple * stakes.ante_minor
    if stakes.pair_bonus_minor:
        expected[Spot.PAIR_BONUS] = stakes.pair_bonus_minor
    assert staked == expected
    assert [wager.spot for wager in settlement.wagers] == sorted(
        {wager.spot for wager in settlement.wagers}, key=list(Spot).index
    )


@given(paytables, stakes_taken, st.permutations(PACK), decisions)
def test_the_dealers_cards_never_matter_to_the_pair_bonus(
    paytable: Paytable, stakes: Stakes, cards: list[object], decision: Decision
) -> None:
    player, one, other = (Hand(tuple(cards[at : at + 3])) for at in (0, 3, 6))  # type: ignore[arg-type]
    wagers = [
        {wager.spot: wager for wager in settle(paytable, stakes, Deal(player, dealer), decision).wagers}
        for dealer in (one, other)
    ]
    assert wagers[0].get(Spot.PAIR_BONUS) == wagers[1].get(Spot.PAIR_BONUS)
    assert (Spot.PAIR_BONUS in wagers[0]) == (stakes.pair_bonus_minor > 0)
    if decision is Decision.FOLD:
        assert wagers[0] == wagers[1]


@given(paytables, stakes_taken, deals)
def test_a_fold_returns_nothing_of_the_ante(paytable: Paytable, stakes: Stakes, deal: Deal) -> None:
    settlement = settle(paytable, stakes, deal, Decision.FOLD)
    assert settlement.result is Result.FOLD
    assert settlement.wagers[0].payout_minor == 0
    assert {wager.spot for wager in settlement.wagers} <= {Spot.ANTE, Spot.PAIR_BONUS}


@given(paytables, stakes_taken, deals, decisions)
def test_no_round_pays_more_than_the_maximum_or_ends_in_an_impossible_way(
    paytable: Paytable, stakes: Stakes, deal: Deal, decision: Decision
) -> None:
    settlement = settle(paytable, stakes, deal, decision)
    assert settlement.total_payout_minor <= maximum_payout_minor(paytable, stakes)
    possible = possible_outcomes(paytable.ranking, paytable.qualifier)
    assert (settlement.player_category, settlement.result) in possible


@given(paytables, stakes_taken, deals)
def test_swapping_the_hands_swaps_win_and_lose(paytable: Paytable, stakes: Stakes, deal: Deal) -> None:
    everyone = replace(paytable, qualifier=Qualifier.ANY)
    results = [
        settle(everyone, stakes, way, Decision.PLAY).result
        for way in (deal, Deal(player=deal.dealer, dealer=deal.player))
    ]
    mirrored = {Result.WIN: Result.LOSE, Result.TIE: Result.TIE, Result.LOSE: Result.WIN}
    assert mirrored[results[0]] is results[1]


@given(paytables, st.integers(1, 10**6), deals, decisions)
def test_rounding_down_takes_less_than_one_unit_a_wager(
    paytable: Paytable, ante_minor: int, deal: Deal, decision: Decision
) -> None:
    rounded = settle(paytable, Stakes(ante_minor, ante_minor), deal, decision)
    exact = settle(paytable, Stakes(12 * ante_minor, 12 * ante_minor), deal, decision)  # 12 = lcm(1, 2, 3, 4)
    exact_payouts = {wager.spot: Fraction(wager.payout_minor, 12) for wager in exact.wagers}
    rounded_payouts = {wager.spot: wager.payout_minor for wager in rounded.wagers}
    for spot, payout in exact_payouts.items():
        assert 0 <= payout - rounded_payouts.get(spot, 0) < 1


@pytest.mark.parametrize(
    ("paytable", "stakes", "expected"),
    [
        (BRAG, Stakes(100), 100 * (2 + 2 + 5)),
        (BRAG, Stakes(100, 50), 100 * (2 + 2 + 5) + 50 * 41),
        (DOUBLE_PLAY, Stakes(100), 100 * 2 + 200 * 6),
        (DOUBLE_PLAY, Stakes(100, 50), 100 * 2 + 200 * 6 + 50 * 41),
    ],
)
def test_the_largest_payout_is_a_prial_that_wins(paytable: Paytable, stakes: Stakes, expected: int) -> None:
    assert maximum_payout_minor(paytable, stakes) == expected


def test_the_largest_payout_leaves_out_what_cannot_happen() -> None:
    """High card cannot beat a dealer who needs a pair to qualify, so its odds are never paid."""
    pays = {**BRAG.play_pays, Category.HIGH_CARD: Fraction(1000)}
    paytable = replace(BRAG, qualifier=Qualifier.PAIR, play_pays=pays)
    assert maximum_payout_minor(paytable, Stakes(100)) == 900
    assert maximum_payout_minor(replace(paytable, qualifier=Qualifier.QUEEN), Stakes(100)) == 100_300


def test_the_largest_payout_may_come_from_a_fold() -> None:
    bonus = PairBonus(OnFold.SETTLED, {Category.HIGH_CARD: Fraction(1)})
    paytable = replace(
        BRAG,
        pair_bonus=bonus,
        ante_pays=Fraction(0),
        play_pays=dict.fromkeys(Category, Fraction(0)),
        ante_bonus=None,
    )
    assert maximum_payout_minor(paytable, Stakes(10, 10)) == 40


def test_playing_costs_the_multiple_of_the_ante() -> None:
    assert play_stake_minor(BRAG, Stakes(100)) == 100
    assert play_stake_minor(DOUBLE_PLAY, Stakes(100)) == 200


@pytest.mark.parametrize(
    ("qualifier", "weakest", "strongest_short"),
    [
        ("T", "Tc 3d 2h", "9c 8d 6h"),
        ("J", "Jc 3d 2h", "Tc 9d 7h"),
        ("Q", "Qc 3d 2h", "Jc Td 8h"),
        ("K", "Kc 3d 2h", "Qc Jd 9h"),
        ("A", "Ac 4d 2h", "Kc Qd Th"),
        ("pair", "3c 2d 2h", "Ac Kd Jh"),
    ],
)
def test_the_dealer_qualifies_from_the_weakest_such_hand_up(
    qualifier: str, weakest: str, strongest_short: str
) -> None:
    threshold = qualifying_class(BRAG.ranking, Qualifier(qualifier))
    assert BRAG.ranking.rank_class(Hand.parse(weakest)) == threshold
    assert BRAG.ranking.rank_class(Hand.parse(strongest_short)) == threshold - 1


def test_an_ace_qualifies_with_three_two_where_that_is_no_run() -> None:
    ranking = replace(BRAG.ranking, ace_low_run=AceLowRun.NOT_A_RUN)
    assert qualifying_class(ranking, Qualifier.ACE) == ranking.rank_class(Hand.parse("Ac 3d 2h"))


def test_a_card_is_not_dealt_twice() -> None:
    with pytest.raises(AssertionError, match="dealt twice"):
        Deal(Hand.parse("As Kd 2c"), Hand.parse("As 7d 4c"))


def test_a_pair_bonus_is_not_settled_where_there_is_none() -> None:
    deal = Deal(Hand.parse("As Kd 2c"), Hand.parse("Ah 7d 4c"))
    with pytest.raises(AssertionError, match="has no pair bonus"):
        settle(replace(BRAG, pair_bonus=None), Stakes(100, 50), deal, Decision.PLAY)


def test_a_part_of_a_minor_unit_is_never_paid_without_rounding() -> None:
    deal = Deal(Hand.parse("As Kd 2c"), Hand.parse("Ah 7d 4c"))
    with pytest.raises(AssertionError, match="not whole"):
        settle(replace(BRAG, ante_pays=Fraction(3, 2)), Stakes(1), deal, Decision.PLAY)


def test_every_possible_outcome_of_the_shipped_games_is_known() -> None:
    everything = set(product(Category, Result))
    assert everything - possible_outcomes(BRAG.ranking, Qualifier.QUEEN) == {(Category.PRIAL, Result.TIE)}
