from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from casino_brag.game.hands import AceLowRun, Category, Hand, Ranking, all_hands
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import Result, possible_outcomes
from casino_brag.odds.outcomes import DEALER_HANDS, DEALS, PLAYED_RESULTS, outcomes, rank_classes

BRAG = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
NATURAL = Ranking(tuple(Category), best_prial=None, ace_low_run=AceLowRun.LOWEST)
NO_LOW_RUN = Ranking(tuple(reversed(Category)), best_prial="7", ace_low_run=AceLowRun.NOT_A_RUN)
DATA = Path(__file__).parents[1] / "data"
PUBLISHED = json.loads((DATA / "hands.json").read_text(encoding="utf-8"))["hands"]
SAMPLE = [
    "3c 3d 3h",
    "Ac 2c 3c",
    "Ac 2d 3h",
    "Qc 6d 4h",
    "Qc 6c 4d",
    "Qs 3s 2s",
    "7c 7d 2h",
    "Jc Td 8h",
    "5c 3d 2h",
]


def brag_value(cards: tuple[int, ...]) -> tuple[int, ...]:
    """Three cards' value in Brag, written down afresh from the rules and sharing nothing with the product."""
    high, middle, low = sorted((card // 4 + 2 for card in cards), reverse=True)
    suited = len({card % 4 for card in cards}) == 1
    if high == low:
        return (6, 99 if high == 3 else high)
    if (high, middle, low) == (14, 3, 2):
        return (5 if suited else 4, 99)
    if high - middle == middle - low == 1:
        return (5 if suited else 4, high)
    if suited:
        return (3, high, middle, low)
    if middle in (high, low):
        return (2, middle, low if middle == high else high)
    return (1, high, middle, low)


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: "".join(published["cards"]))
def test_published_outcome_counts(published: dict[str, Any]) -> None:
    counted = outcomes(BRAG, Qualifier.QUEEN).of(Hand.parse(" ".join(published["cards"])))
    assert counted._asdict() == {
        "not_qualified": published["dealer_not_qualified"],
        "win": published["win"],
        "tie": published["tie"],
        "lose": published["lose"],
    }


@pytest.mark.parametrize("text", SAMPLE)
def test_counts_are_those_of_dealing_every_hand_to_the_dealer(text: str) -> None:
    hand = Hand.parse(text)
    held = tuple(card.index for card in hand)
    own, queen_high = brag_value(held), (1, 12, 3, 2)
    dealers = [brag_value(cards) for cards in combinations(sorted(set(range(52)) - set(held)), 3)]
    qualified = [value for value in dealers if value >= queen_high]
    expected = (
        len(dealers) - len(qualified),
        sum(value < own for value in qualified),
        sum(value == own for value in qualified),
        sum(value > own for value in qualified),
    )
    assert outcomes(BRAG, Qualifier.QUEEN).of(hand) == expected


def test_the_ranking_orders_all_hands_as_the_rules_written_down_afresh() -> None:
    values = [brag_value(tuple(card.index for card in hand)) for hand in all_hands()]
    place = {value: rank_class for rank_class, value in enumerate(sorted(set(values)), start=1)}
    assert [place[value] for value in values] == [BRAG.rank_class(hand) for hand in all_hands()]


@pytest.mark.parametrize("qualifier", Qualifier)
@pytest.mark.parametrize("ranking", [BRAG, NATURAL, NO_LOW_RUN], ids=["brag", "natural", "no low run"])
def test_every_row_counts_every_dealer_hand(ranking: Ranking, qualifier: Qualifier) -> None:
    counted = outcomes(ranking, qualifier)
    assert counted.kind.shape == (22_100,)
    assert (counted.counts >= 0).all()
    assert (counted.counts.sum(axis=1) == DEALER_HANDS).all()
    assert counted.hands.tolist() == np.bincount(counted.kind).tolist()
    assert (counted.hands @ counted.counts).sum() == DEALS


@pytest.mark.parametrize("ranking", [BRAG, NATURAL, NO_LOW_RUN], ids=["brag", "natural", "no low run"])
def test_without_a_qualifier_both_sides_win_equally_often(ranking: Ranking) -> None:
    counted = outcomes(ranking, Qualifier.ANY)
    assert (counted.hands @ counted.counts).tolist() == [0, 203_359_936, 450_528, 203_359_936]


@pytest.mark.parametrize("qualifier", Qualifier)
@pytest.mark.parametrize("ranking", [BRAG, NATURAL, NO_LOW_RUN], ids=["brag", "natural", "no low run"])
def test_an_outcome_is_possible_exactly_when_it_is_counted(ranking: Ranking, qualifier: Qualifier) -> None:
    counted = outcomes(ranking, qualifier)
    seen = {
        (category, result)
        for position, category in enumerate(Category)
        for column, result in enumerate(PLAYED_RESULTS)
        if counted.counts[counted.category == position, column].any()
    }
    assert seen | {(category, Result.FOLD) for category in Category} == possible_outcomes(ranking, qualifier)


def test_a_hand_finds_its_own_row() -> None:
    counted = outcomes(BRAG, Qualifier.QUEEN)
    for row in range(0, 22_100, 97):
        assert counted.of(all_hands()[row]) == tuple(counted.counts[counted.kind[row]].tolist())


def test_the_counts_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        outcomes(BRAG, Qualifier.QUEEN).counts[0, 0] = 1


@pytest.mark.parametrize("ranking", [BRAG, NATURAL, NO_LOW_RUN], ids=["brag", "natural", "no low run"])
def test_classes_and_categories_are_those_of_the_ranking(ranking: Ranking) -> None:
    counted = outcomes(ranking, Qualifier.QUEEN)
    classes = [ranking.rank_class(hand) for hand in all_hands()]
    assert rank_classes(ranking).tolist() == classes
    assert counted.rank_class[counted.kind].tolist() == classes
    members = list(Category)
    assert [members[position] for position in counted.category[counted.kind]] == [
        ranking.category(hand) for hand in all_hands()
    ]
