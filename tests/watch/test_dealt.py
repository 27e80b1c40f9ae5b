"""Counts of dealt cards and their tests."""

from __future__ import annotations

import json
from math import exp

import numpy as np
import pytest

from benchmarks.watch import Fault, deals
from casino_brag.game.cards import PACK
from casino_brag.game.hands import Category, Hand
from casino_brag.game.paytable import Paytable
from casino_brag.odds.returns import hands_by_category
from casino_brag.odds.tails import poisson_p
from casino_brag.watch.dealt import DEALS, POISSON_MAX, Dealt, category_chances, duplicates_p, fits
from casino_brag.watch.expectation import Rules

BRAG = Paytable.load("paytables/three-card-brag.toml")
RULES = Rules.of(BRAG)
CATEGORIES = tuple(Category)


def test_cards_and_categories_are_counted_one_by_one() -> None:
    cards = deals(np.random.default_rng(1), 200)
    dealt = Dealt.of(RULES, cards)
    hands = [
        [Hand.of(*(PACK[card] for card in three)) for three in (row[:3], row[3:])] for row in cards.tolist()
    ]
    for side, counts in enumerate((dealt.player, dealt.dealer)):
        held = [BRAG.ranking.category(pair[side]) for pair in hands]
        assert counts.tolist() == [held.count(category) for category in CATEGORIES]
    for place in range(6):
        assert dealt.cards[place].tolist() == [cards[:, place].tolist().count(card) for card in range(52)]
    assert dealt.rounds == 200


def test_counts_add_up_and_are_read_again() -> None:
    rng = np.random.default_rng(2)
    one, other = deals(rng, 50), deals(rng, 70)
    both = Dealt.of(RULES, one) + Dealt.of(RULES, other)
    assert both.document() == Dealt.of(RULES, np.concatenate((other, one))).document()
    assert Dealt.from_document(json.loads(json.dumps(both.document()))).document() == both.document()
    assert (both + Dealt.none()).document() == both.document()


def test_categories_have_their_chances() -> None:
    assert category_chances(RULES).tolist() == pytest.approx([n / 22_100 for n in hands_by_category(BRAG)])


def test_fair_deals_fit() -> None:
    found = fits(Dealt.of(RULES, deals(np.random.default_rng(3), 50_000)), RULES)
    assert [fit.degrees for fit in found] == [5, 5, *[51] * 6]
    assert min(fit.p for fit in found) > 1e-4


def test_no_deals_are_not_tested() -> None:
    assert fits(Dealt.none(), RULES) == ()


def test_too_many_prials_do_not_fit() -> None:
    cards = deals(np.random.default_rng(4), 20_000)
    cards[:200, :3] = [0, 1, 2]
    cards[:200, 3:] = [10, 20, 30]
    found = {fit.name: fit.p for fit in fits(Dealt.of(RULES, cards), RULES)}
    assert found["player's category"] < 1e-12
    assert found["card in position 1"] < 1e-12
    assert found["dealer's category"] > 1e-9


def test_a_card_dealt_more_often_is_dealt_more_often() -> None:
    cards = deals(np.random.default_rng(5), 400_000, Fault.ONE_CARD)
    share = (cards == 51).any(axis=1).mean()
    assert share == pytest.approx(1.05 * 6 / 52, abs=5 * 0.0005)


def test_duplicate_deals_are_expected_by_the_pair() -> None:
    assert DEALS == 14_658_134_400
    deals_ = 171_218  # one pair is due
    assert duplicates_p(0, deals_) == pytest.approx(2 * exp(-1), rel=1e-4)
    assert duplicates_p(1, deals_) == 1
    assert duplicates_p(9, deals_) < 1e-5


def test_the_normal_law_takes_over_where_both_agree() -> None:
    few = int((2 * DEALS * POISSON_MAX) ** 0.5)
    mean = few * (few - 1) / 2 / DEALS
    for pairs in (9_800, 10_000, 10_250):
        assert duplicates_p(pairs, few + 200) == pytest.approx(poisson_p(pairs, mean), abs=0.02)
