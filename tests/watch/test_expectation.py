"""The expected payout of a round, against settling it with every hand the dealer can hold."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casino_brag.game.cards import PACK
from casino_brag.game.hands import Hand, all_hands
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Deal, Decision, Spot, Stakes, settle
from casino_brag.odds.outcomes import DEALS, HANDS, Integers, hand_cards, hand_places
from casino_brag.odds.payoffs import whole_stakes
from casino_brag.odds.returns import main_game, pair_bonus_game
from casino_brag.odds.strategies import ALWAYS_PLAY, MAX_EXPECTATION, Strategy
from casino_brag.watch.expectation import SCALE, Bools, Exact, Rounds, Rules
from tests.paytables import paytables

BRAG = Paytable.load("paytables/three-card-brag.toml")
DOUBLE = Paytable.load("paytables/double-play-brag.toml")
SAMPLE = ["3c 3d 3h", "Ac 2d 3h", "Kc Qc Jc", "Qc 6d 4h", "7c 7d 2h", "Ts 8s 3s", "5c 3d 2h"]


def brute_force(
    paytable: Paytable, stakes: Stakes, hand: Hand, decision: Decision, dealers: list[Hand]
) -> tuple[Counter[int], Counter[int]]:
    """What the main game and the Pair Bonus pay, counted over the dealer's hands."""
    main: Counter[int] = Counter()
    bonus: Counter[int] = Counter()
    for dealer in dealers:
        wagers = settle(paytable, stakes, Deal(hand, dealer), decision).wagers
        main[sum(w.payout_minor for w in wagers if w.spot is not Spot.PAIR_BONUS)] += 1
        bonus[sum(w.payout_minor for w in wagers if w.spot is Spot.PAIR_BONUS)] += 1
    return main, bonus


def dealers_against(hand: Hand) -> list[Hand]:
    left = [card for card in PACK if card not in hand.cards]
    return [Hand(cards) for cards in combinations(left, 3)]


def one_round(paytable: Paytable, hand: Hand, decision: Decision, stakes: Stakes) -> Rounds:
    cards, plays = np.array([[card.index for card in hand]]), np.array([decision is Decision.PLAY])
    antes, bonuses = np.array([stakes.ante_minor]), np.array([stakes.pair_bonus_minor])
    return Rules.of(paytable).rounds(cards, plays, antes, bonuses)


def possible(rounds: Rounds) -> set[int]:
    """What the main game can pay."""
    return set(rounds.payouts[rounds.ways > 0].tolist())


def agrees(paytable: Paytable, stakes: Stakes, hand: Hand, decision: Decision) -> None:
    main, bonus = brute_force(paytable, stakes, hand, decision, dealers_against(hand))
    found = one_round(paytable, hand, decision, stakes)
    first = sum(paid * times for paid, times in main.items())
    second = sum(paid**2 * times for paid, times in main.items())
    assert possible(found) == set(main)
    assert found.expected.tolist() == [first]
    assert found.variance.tolist() == [SCALE * second - first**2]
    assert found.bonus_due_minor.tolist() == list(bonus)


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("paytable", [BRAG, DOUBLE], ids=lambda paytable: paytable.game)
@pytest.mark.parametrize("text", SAMPLE)
def test_a_round_is_expected_to_pay_what_every_dealers_hand_makes_it_pay(
    text: str, paytable: Paytable, decision: Decision
) -> None:
    agrees(paytable, Stakes(100, 35), Hand.parse(text), decision)


@settings(max_examples=12, deadline=None)
@given(
    paytable=paytables(),
    hand=st.sampled_from(all_hands()),
    decision=st.sampled_from(Decision),
    ante_minor=st.integers(1, 10**7),
    bonus_minor=st.integers(0, 10**7),
)
def test_so_it_is_under_any_rules_and_at_stakes_that_round(
    paytable: Paytable, hand: Hand, decision: Decision, ante_minor: int, bonus_minor: int
) -> None:
    agrees(paytable, Stakes(ante_minor, bonus_minor if paytable.pair_bonus else 0), hand, decision)


def every_hand(paytable: Paytable, plays: Bools, stakes: Stakes) -> tuple[Exact, Exact, Integers]:
    ante, bonus = np.full(HANDS, stakes.ante_minor), np.full(HANDS, stakes.pair_bonus_minor)
    rounds = Rules.of(paytable).rounds(hand_cards(), plays, ante, bonus)
    return rounds.expected, rounds.variance, rounds.bonus_due_minor


@pytest.mark.parametrize("strategy", [MAX_EXPECTATION, ALWAYS_PLAY], ids=str)
@pytest.mark.parametrize("paytable", [BRAG, DOUBLE], ids=lambda paytable: paytable.game)
def test_over_all_hands_the_expected_payouts_are_the_par_sheets_return(
    paytable: Paytable, strategy: Strategy
) -> None:
    stakes = whole_stakes(paytable)
    decisions = strategy.decisions(paytable)
    plays = decisions[Rules.of(paytable).kind]
    expected, variance, _ = every_hand(paytable, plays, stakes)
    game = main_game(paytable, decisions)
    staked = (1 + paytable.play_multiple * plays.astype(object)) * stakes.ante_minor
    assert Fraction(int(expected.sum()), int(staked.sum()) * SCALE) == game.rtp
    # The variance of a round is that given its hand, on average, and that of what hands are worth.
    nets = expected - SCALE * staked
    within = Fraction(int(variance.sum()), HANDS)
    between = Fraction(int((nets**2).sum()), HANDS) - Fraction(int(nets.sum()), HANDS) ** 2
    assert (within + between) / (SCALE * stakes.ante_minor) ** 2 == game.variance


@pytest.mark.parametrize("paytable", [BRAG, DOUBLE], ids=lambda paytable: paytable.game)
def test_over_all_hands_the_pair_bonus_is_the_par_sheets(paytable: Paytable) -> None:
    stakes = whole_stakes(paytable)
    _, _, due = every_hand(paytable, np.ones(HANDS, dtype=bool), stakes)
    game = pair_bonus_game(paytable)
    assert game is not None
    assert Fraction(int(due.sum()), HANDS * stakes.pair_bonus_minor) == game.rtp


def test_the_ways_of_every_hand_are_all_the_deals() -> None:
    ones = np.ones(HANDS, dtype=np.int64)
    for plays in (True, False):
        rounds = Rules.of(BRAG).rounds(hand_cards(), np.full(HANDS, plays), ones, ones)
        assert rounds.ways.sum() == DEALS


def test_a_folded_round_pays_nothing_for_certain() -> None:
    found = one_round(BRAG, Hand.parse("3c 3d 3h"), Decision.FOLD, Stakes(100))
    assert (found.expected.tolist(), found.variance.tolist(), possible(found)) == ([0], [0], {0})


def test_a_round_among_many_is_as_it_is_alone() -> None:
    hands = all_hands()[::487]
    rng = np.random.default_rng(5)
    plays, antes = rng.random(len(hands)) < 0.6, rng.integers(1, 2000, len(hands)) * 5
    bonuses = rng.integers(0, 200, len(hands)) * 5
    cards = rng.permuted([[card.index for card in hand] for hand in hands], axis=1)
    rounds = Rules.of(BRAG).rounds(cards, plays, antes, bonuses)
    for row, hand in enumerate(hands):
        decision = Decision.PLAY if plays[row] else Decision.FOLD
        stakes = Stakes(int(antes[row]), int(bonuses[row]))
        alone = one_round(BRAG, hand, decision, stakes)
        assert (rounds.expected[row], rounds.variance[row]) == (alone.expected[0], alone.variance[0])
        assert rounds.bonus_due_minor[row] == alone.bonus_due_minor[0]
        payouts = possible(alone)
        for paid in (*payouts, max(payouts) + 1):
            is_possible = rounds.ways_to(np.full(len(hands), paid))[row] > 0
            assert is_possible == (paid in payouts)


def test_amounts_as_large_as_any_are_exact() -> None:
    ante = 2**49 // 5 * 5
    found = one_round(BRAG, Hand.parse("Qc 6d 4h"), Decision.PLAY, Stakes(ante))
    unit = one_round(BRAG, Hand.parse("Qc 6d 4h"), Decision.PLAY, Stakes(5))
    assert found.expected[0] * 5 == unit.expected[0] * ante
    assert found.variance[0] * 25 == unit.variance[0] * ante**2


def test_hands_have_their_places_however_they_are_dealt() -> None:
    rng = np.random.default_rng(6)
    dealt = rng.permuted(hand_cards(), axis=1)
    assert np.array_equal(hand_places(dealt), np.arange(HANDS))
