"""Evidence is fair: whoever bets against rules that hold has on average what was put in."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from math import comb, exp, factorial, inf, isclose, log, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.watch import Fault, settled
from casino_brag.game.cards import Card
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.odds.outcomes import HANDS, Integers, hand_cards
from casino_brag.odds.payoffs import whole_stakes
from casino_brag.watch.bands import BANDS
from casino_brag.watch.bets import (
    SHIFTS,
    UNIT,
    Bets,
    Floats,
    log_mean,
    log_sum,
    main_gains,
    other_rankings,
    ranking_gains,
)
from casino_brag.watch.card_bets import CardBets, card_evidence, dirichlet
from casino_brag.watch.dealt import Dealt
from casino_brag.watch.evidence import CHANCES, SHARES, Batch, Evidence, Level, level, together
from casino_brag.watch.expectation import SCALE, Rounds, Rules
from tests.paytables import paytables

BRAG = Paytable.load("paytables/three-card-brag.toml")
DOUBLE = Paytable.load("paytables/double-play-brag.toml")
RULES = Rules.of(BRAG)
PLAYED = np.ones(HANDS, dtype=bool)
ROUNDED_OFF = 1e-9
"""Each factor is rounded down by less than a part in 2^32."""


def one_of_each_kind(paytable: Paytable, ante_minor: int) -> tuple[Rules, Rounds]:
    rules = Rules.of(paytable)
    hands = np.unique(rules.kind, return_index=True)[1]
    antes, none = np.full(len(hands), ante_minor), np.zeros(len(hands), dtype=np.int64)
    return rules, rules.rounds(hand_cards()[hands], np.ones(len(hands), dtype=bool), antes, none)


def mean_factors(rounds: Rounds, gains: list[Integers]) -> Floats:
    """The mean of each bet's factor in each round, of its gains by result."""
    factors = np.exp(np.stack(gains) / UNIT)
    means: Floats = np.einsum("kr,rkb->kb", rounds.ways / SCALE, factors)
    return means


@pytest.mark.parametrize("paytable", [BRAG, DOUBLE], ids=lambda paytable: paytable.game)
def test_every_bet_on_the_main_game_is_fair_whatever_the_hand(paytable: Paytable) -> None:
    _, rounds = one_of_each_kind(paytable, whole_stakes(paytable).ante_minor)
    means = mean_factors(rounds, [main_gains(rounds, rounds.payouts[:, result]) for result in range(5)])
    assert means.shape[1] == len(SHIFTS)
    assert (means <= 1 + 1e-13).all()
    assert (means > 1 - ROUNDED_OFF).all()


@settings(max_examples=10, deadline=None)
@given(paytable=paytables(), ante_minor=st.integers(1, 10**6))
def test_so_it_is_under_any_rules_and_at_stakes_that_round(paytable: Paytable, ante_minor: int) -> None:
    _, rounds = one_of_each_kind(paytable, ante_minor)
    means = mean_factors(rounds, [main_gains(rounds, rounds.payouts[:, result]) for result in range(5)])
    assert (means <= 1 + 1e-12).all()
    assert (means > 1 - ROUNDED_OFF).all()


@pytest.mark.parametrize("paytable", [BRAG, DOUBLE], ids=lambda paytable: paytable.game)
def test_every_bet_on_another_ranking_is_fair_whatever_the_hand(paytable: Paytable) -> None:
    """Or worse than fair, where the other order leads to payouts that are impossible under the rules: on these it
    loses its stake."""
    rules, rounds = one_of_each_kind(paytable, whole_stakes(paytable).ante_minor)
    gains = [ranking_gains(rules, rounds, rounds.payouts[:, result]) for result in range(5)]
    means = mean_factors(rounds, gains)
    assert means.shape[1] == len(other_rankings(paytable.ranking))
    assert (means <= 1 + 1e-13).all()
    assert (abs(means - 1) < ROUNDED_OFF).mean() > 0.99


def test_a_bet_is_the_ratio_that_it_says() -> None:
    rounds = RULES.rounds(np.array([[40, 16, 9]]), np.array([True]), np.array([5]), np.array([0]))
    for paid in (0, 10, 15, 20):
        gains = main_gains(rounds, np.array([paid]))[0]
        for bet, shift in enumerate(SHIFTS):
            mean = sum(
                ways * exp(shift * payout / 5)
                for ways, payout in zip(rounds.ways[0].tolist(), rounds.payouts[0].tolist(), strict=True)
            )
            assert gains[bet] / UNIT == pytest.approx(shift * paid / 5 - log(mean / SCALE), abs=2 / UNIT)


def test_a_fold_moves_no_money() -> None:
    none = np.zeros(HANDS, dtype=np.int64)
    rounds = RULES.rounds(hand_cards(), ~PLAYED, none + 5, none)
    assert not main_gains(rounds, none).any()
    assert not ranking_gains(RULES, rounds, none).any()


def test_money_divided_among_days_stays_fair() -> None:
    """Over every course of two rounds, on the same day or on days apart."""
    rounds = RULES.rounds(np.array([[40, 16, 9]]), np.array([True]), np.array([5]), np.array([0]))
    results = [result for result in range(5) if rounds.ways[0, result]]
    gains = {result: main_gains(rounds, rounds.payouts[:, result])[0] for result in results}
    for days in ((0, 0), (0, 1), (3, 40)):
        mean = 0.0
        for course in product(results, repeat=2):
            bets = Bets.none(len(SHIFTS))
            for day, result in zip(days, course, strict=True):
                bets = bets.after(day, gains[result])
            chance = prod(rounds.ways[0, result] / SCALE for result in course)
            mean += chance * exp(bets.log_e)
        assert mean == pytest.approx(1, abs=2 * ROUNDED_OFF)


def test_days_without_a_round_change_nothing() -> None:
    gains = np.array([3 * UNIT, -2 * UNIT])
    assert Bets.none(2).after(9, gains * 0).log_e == pytest.approx(0, abs=1e-12)
    idle = Bets.none(2).after(0, gains).after(30, gains * 0)
    assert idle.log_e == pytest.approx(Bets.none(2).after(0, gains).log_e)


def test_rounds_that_come_late_are_of_the_last_day() -> None:
    evidence = Evidence.none().after(RULES, some_rounds(1), 40)
    late, today = (evidence.after(RULES, some_rounds(2), day) for day in (39, 40))
    assert late.document() == today.document()


def test_a_bet_begun_late_is_not_held_back_by_what_was_lost_before() -> None:
    lost = Bets.none(1).after(0, np.array([-10_000 * UNIT]))
    assert lost.after(1, np.array([20 * UNIT])).log_e == pytest.approx(20 + log(1 / 6), abs=1e-6)


def test_several_histories_are_kept_as_each_would_be_by_itself() -> None:
    rng = np.random.default_rng(3)
    gains = rng.integers(-UNIT, UNIT, (4, 3, 5))
    together_ = Bets.none(3, 5)
    alone = [Bets.none(5) for _ in range(3)]
    for day, of_day in enumerate(gains):
        together_ = together_.after(day, of_day)
        alone = [bets.after(day, gained) for bets, gained in zip(alone, of_day, strict=True)]
    assert together_.log_e.tolist() == pytest.approx([bets.log_e for bets in alone])


def test_dirichlet_evidence_is_fair() -> None:
    """Over all counts of five things of three kinds, each as likely as its orders make it."""
    chances = np.array([0.7, 0.25, 0.05])
    mean = 0.0
    for counts in product(range(6), repeat=3):
        if sum(counts) == 5:
            orders = factorial(5) / prod(map(factorial, counts))
            chance = orders * float(np.prod(chances**counts))
            mean += chance * exp(dirichlet(np.array(counts), chances))
    assert mean == pytest.approx(1, abs=1e-9)


def test_evidence_of_single_cards_is_fair() -> None:
    """Over all that two deals can have in common.  What one deal says is 1, whichever it is."""
    first = list(range(6))
    assert card_evidence(RULES, Dealt.of(RULES, np.array([first])))["single cards"] == pytest.approx(
        0, abs=1e-9
    )
    mean, deals = 0.0, comb(52, 3) * comb(49, 3)
    for a, b in product(
        range(4), repeat=2
    ):  # of the player's second three, so many of the first player's and dealer's
        for c, d in product(range(4 - a), range(4 - b)):  # of the dealer's second three
            if a + b > 3 or c + d > 3:
                continue
            new_p, new_d = 3 - a - b, 3 - c - d
            ways = comb(3, a) * comb(3, b) * comb(46, new_p)
            ways *= comb(3 - a, c) * comb(3 - b, d) * comb(46 - new_p, new_d)
            player = [*range(a), *range(3, 3 + b), *range(6, 6 + new_p)]
            dealer = [*range(a, a + c), *range(3 + b, 3 + b + d), *range(9, 9 + new_d)]
            dealt = Dealt.of(RULES, np.array([first, player + dealer]))
            mean += ways / deals * exp(card_evidence(RULES, dealt)["single cards"])
    assert mean == pytest.approx(1, abs=1e-9)


def test_months_of_cards_divide_their_money() -> None:
    """A month that comes to e makes half the life's e and a half of the months', each by its share."""
    rng = np.random.default_rng(8)
    dealt = Dealt.of(RULES, np.array([rng.permutation(52)[:6] for _ in range(300)]))
    e = {stream: exp(value) for stream, value in card_evidence(RULES, dealt).items()}
    first = CardBets.none().after(RULES, 0, dealt)
    for stream, value in first.log_e(RULES).items():
        assert exp(value) == pytest.approx(e[stream] / 2 + (e[stream] / 2 + 1 / 2) / 2)
    second = first.after(RULES, 59, dealt)
    both = {stream: exp(value) for stream, value in card_evidence(RULES, dealt + dealt).items()}
    for stream, value in second.log_e(RULES).items():
        months = e[stream] / 2 + e[stream] / 6 + 1 / 3
        assert exp(value) == pytest.approx(both[stream] / 2 + months / 2)
    skipped = first.after(RULES, 90, dealt)
    for stream, value in skipped.log_e(RULES).items():
        months = e[stream] / 2 + e[stream] * (1 / 2 - 1 / 5) + 1 / 5
        assert exp(value) == pytest.approx(both[stream] / 2 + months / 2)


def some_rounds(seed: int, rounds: int = 300, fault: Fault = Fault.NONE) -> Batch:
    return settled(np.random.default_rng(seed), rounds, PLAYED, fault)


def test_rounds_may_come_in_any_order_and_in_any_parts() -> None:
    batch = some_rounds(1)
    whole = Evidence.none().after(RULES, batch, 4)
    order = np.random.default_rng(2).permutation(300)
    parts = Evidence.none()
    for part in np.array_split(order, 7):
        parts = parts.after(RULES, rows(batch, part), 4)
    documents = whole.document(), parts.document()
    for document in documents:
        del document["log_highest"]  # more looks, more heights
    assert documents[0] == documents[1]


def rows(batch: Batch, which: Integers) -> Batch:
    rounds = batch.rounds
    some = RULES.rounds(
        batch.cards[which, :3],
        rounds.plays[which],
        rounds.ante_minor[which],
        np.zeros(len(which), dtype=np.int64),
    )
    some = replace(some, bonus_due_minor=rounds.bonus_due_minor[which])
    return Batch(
        some,
        batch.main_paid_minor[which],
        batch.bonus_paid_minor[which],
        batch.bands[which],
        batch.cards[which],
    )


def test_what_is_kept_is_read_again_as_it_was() -> None:
    evidence = Evidence.none().after(RULES, some_rounds(1), 0).after(RULES, some_rounds(2), 31)
    again = Evidence.from_document(json.loads(json.dumps(evidence.document(), allow_nan=False)))
    assert again.document() == evidence.document()
    assert again.log_e == evidence.log_e
    after = [each.after(RULES, some_rounds(3), 62).document() for each in (evidence, again)]
    assert after[0] == after[1]


@pytest.mark.parametrize("wager", ["main", "pair_bonus"])
def test_a_payout_that_cannot_be_is_proof(wager: str) -> None:
    batch = some_rounds(1)
    wrong = np.zeros(300, dtype=np.int64)
    wrong[7] = 1
    if wager == "main":
        batch = replace(batch, main_paid_minor=batch.main_paid_minor + wrong)
    else:
        batch = replace(batch, bonus_paid_minor=batch.bonus_paid_minor - wrong)
    evidence = Evidence.none().after(RULES, batch, 0)
    assert np.flatnonzero(~batch.possible).tolist() == [7]
    assert (evidence.impossible, evidence.log_e, evidence.level) == (1, inf, Level.SUSPEND)
    again = Evidence.from_document(json.loads(json.dumps(evidence.document(), allow_nan=False)))
    assert again.after(RULES, some_rounds(2), 0).level is Level.SUSPEND


def test_a_tie_paid_to_a_hand_that_cannot_tie_is_impossible() -> None:
    threes = [card.index for card in Hand.parse("3c 3d 3h")]
    cards = np.array([threes + [Card.parse(text).index for text in ("Ac", "Ad", "Ah")]])
    rounds = RULES.rounds(cards[:, :3], np.array([True]), np.array([5]), np.array([0]))
    none = np.zeros(1, dtype=np.int64)
    paid = {result: np.array([rounds.payouts[0, result]]) for result in range(1, 5)}
    possible = [Batch(rounds, paid[result], none, none, cards).possible[0] for result in range(1, 5)]
    assert possible == [True, True, False, False]


def test_a_level_once_reached_stays() -> None:
    evidence = replace(Evidence.none(), log_highest=log(150))
    later = evidence.after(RULES, some_rounds(4), 1)
    assert later.log_e < log(20)
    assert later.level is Level.ALERT


def test_the_levels_are_reached_at_what_they_say() -> None:
    assert [level(log(e)) for e in (19.99, 20, 99.9, 100, 9_999, 10_000)] == [
        Level.NONE,
        Level.WARN,
        Level.WARN,
        Level.ALERT,
        Level.ALERT,
        Level.SUSPEND,
    ]
    assert [str(CHANCES[each]) for each in list(Level)[1:]] == ["1/20", "1/100", "1/10000"]
    assert level(inf) is Level.SUSPEND


def test_the_shares_of_all_streams_are_one() -> None:
    assert isclose(sum(SHARES.values()), 1)
    everything = dict.fromkeys(SHARES, log(7))
    assert together(everything) == pytest.approx(log(7))
    assert {stream for stream in SHARES if stream.startswith("band")} == {
        f"band {band}" for band in range(BANDS)
    }


def test_every_stream_that_is_counted_has_a_share() -> None:
    evidence = Evidence.none().after(RULES, some_rounds(1), 0)
    assert set(evidence.streams) < set(SHARES)
    assert {"main", "rankings", "single cards", "cards by position"} < set(evidence.streams)


def test_other_rankings_are_others_and_differ_in_one_thing() -> None:
    for paytable in (BRAG, DOUBLE):
        others = other_rankings(paytable.ranking)
        assert len(others) == 3 + 1 + 5
        assert len({*others.values(), paytable.ranking}) == len(others) + 1


def test_sums_of_logarithms() -> None:
    assert exp(log_sum([log(2), log(3), -inf])) == pytest.approx(5)
    assert exp(log_mean([log(2), log(4)])) == pytest.approx(3)
    assert log_sum([800.0, 0.0]) == 800
