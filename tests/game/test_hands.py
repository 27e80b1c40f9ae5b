from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from casino_brag.game.cards import PACK, RANKS
from casino_brag.game.hands import (
    AceLowRun,
    Category,
    Hand,
    Ranking,
    all_hands,
    all_shapes,
    order_digest,
    order_lines,
    places,
)

BRAG = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
NATURAL = Ranking(tuple(Category), best_prial=None, ace_low_run=AceLowRun.LOWEST)
DATA = Path(__file__).parents[1] / "data"
PUBLISHED = json.loads((DATA / "hands.json").read_text(encoding="utf-8"))["hands"]

ORDER_DIGEST = "8571a40c55bc0a2444359ff3e7d9179285cab8068edcc21f9ccd14ce1dacbc4f"
"""Of the Brag order of all 22,100 hands; it changes exactly when the order does."""


def category_counts(ranking: Ranking) -> dict[str, int]:
    return dict(Counter(ranking.category(hand).value for hand in all_hands()))


def best_first(ranking: Ranking, hands: str) -> list[str]:
    return sorted(hands.split(), key=lambda text: -ranking.rank_class(spaced(text)))


def spaced(text: str) -> Hand:
    return Hand.parse(" ".join(text[position : position + 2] for position in (0, 2, 4)))


def test_a_hand_is_the_same_in_any_order() -> None:
    cards = (PACK[51], PACK[46], PACK[0])
    assert {Hand.of(*order) for order in permutations(cards)} == {Hand.parse("As Kh 2c")}


def test_a_hand_is_written_highest_first_and_suits_c_d_h_s_within_a_rank() -> None:
    assert str(Hand.parse("2s Kd 2c")) == "Kd 2c 2s"


def test_every_hand_reads_back_from_its_text() -> None:
    assert all(Hand.parse(str(hand)) == hand for hand in all_hands())


@pytest.mark.parametrize("text", ["", "As Kd", "As Kd 2c 3c", "AsKd2c", "As Kd Xx", "As As 2c", "2c As As"])
def test_other_text_is_no_hand(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|a hand is three different cards"):
        Hand.parse(text)


def test_there_are_22_100_different_hands() -> None:
    assert len(set(all_hands())) == len(all_hands()) == 22_100


def test_shapes_and_hands_cover_each_other() -> None:
    assert {hand.shape for hand in all_hands()} == set(all_shapes())


def test_categories_have_their_counts() -> None:
    assert category_counts(BRAG) == {
        "high_card": 16_440,
        "pair": 3_744,
        "flush": 1_096,
        "run": 720,
        "running_flush": 48,
        "prial": 52,
    }


def test_the_741_classes_split_among_the_categories() -> None:
    assert len(places(BRAG)) == 741
    assert Counter(place.category.value for place in places(BRAG).values()) == {
        "prial": 13,
        "running_flush": 12,
        "run": 12,
        "flush": 274,
        "pair": 156,
        "high_card": 274,
    }


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: "".join(published["cards"]))
def test_published_rank_classes(published: dict[str, Any]) -> None:
    hand = Hand.parse(" ".join(published["cards"]))
    assert BRAG.rank_class(hand) == published["rank_class"]
    assert BRAG.category(hand) == published["category"]


def test_the_whole_order_has_its_digest() -> None:
    assert order_digest(BRAG) == ORDER_DIGEST


def test_the_order_lists_every_hand_once_weakest_first() -> None:
    lines = [line.split(" ", maxsplit=2) for line in order_lines(BRAG)]
    assert [int(rank_class) for rank_class, _, _ in lines] == sorted(int(line[0]) for line in lines)
    assert {Hand.parse(cards) for _, _, cards in lines} == set(all_hands())
    assert lines[0] == ["1", "high_card", "5c 3c 2d"]


def test_hands_tie_exactly_when_they_differ_in_suits_only() -> None:
    by_class: dict[int, set[tuple[Any, ...]]] = {}
    for hand in all_hands():
        by_class.setdefault(BRAG.rank_class(hand), set()).add(hand.shape)
    assert all(len(shapes) == 1 for shapes in by_class.values())
    assert sorted(by_class) == list(range(1, 742))


def test_no_two_shapes_are_equally_strong() -> None:
    """Or their order would be left to the sorting."""
    for ace_low_run in AceLowRun:
        for best_prial in (None, *RANKS):
            ranking = Ranking(tuple(Category), best_prial, ace_low_run)
            assert len({ranking.strength(shape) for shape in all_shapes()}) == 741


def test_prials_with_threes_on_top() -> None:
    assert best_first(BRAG, "2c2d2h 3c3d3h 4c4d4h KcKdKh AcAdAh") == [
        "3c3d3h",
        "AcAdAh",
        "KcKdKh",
        "4c4d4h",
        "2c2d2h",
    ]


def test_prials_in_natural_order() -> None:
    assert best_first(NATURAL, "2c2d2h 3c3d3h AcAdAh") == ["AcAdAh", "3c3d3h", "2c2d2h"]


@pytest.mark.parametrize(
    ("ace_low_run", "expected"),
    [
        (AceLowRun.HIGHEST, ["Ac2d3h", "AcKdQh", "KcQdJh", "4c3d2h"]),
        (AceLowRun.SECOND, ["AcKdQh", "Ac2d3h", "KcQdJh", "4c3d2h"]),
        (AceLowRun.LOWEST, ["AcKdQh", "KcQdJh", "4c3d2h", "Ac2d3h"]),
    ],
)
def test_ace_two_three_stands_where_the_ranking_says(ace_low_run: AceLowRun, expected: list[str]) -> None:
    ranking = Ranking(tuple(Category), best_prial="3", ace_low_run=ace_low_run)
    assert best_first(ranking, "4c3d2h Ac2d3h KcQdJh AcKdQh") == expected
    suited = [text.replace("d", "c").replace("h", "c") for text in expected]
    assert best_first(ranking, "4c3c2c Ac2c3c KcQcJc AcKcQc") == suited


def test_without_ace_two_three_there_are_fewer_runs() -> None:
    ranking = Ranking(tuple(Category), best_prial=None, ace_low_run=AceLowRun.NOT_A_RUN)
    assert category_counts(ranking) == {
        "high_card": 16_500,
        "pair": 3_744,
        "flush": 1_100,
        "run": 660,
        "running_flush": 44,
        "prial": 52,
    }
    assert best_first(ranking, "Ac2d3h Ac4d2h KcQdTh") == ["Ac4d2h", "Ac2d3h", "KcQdTh"]


def test_a_ranking_may_put_the_running_flush_above_the_prial() -> None:
    order = tuple(Category(name) for name in ["high_card", "pair", "flush", "run", "prial", "running_flush"])
    ranking = Ranking(order, best_prial=None, ace_low_run=AceLowRun.LOWEST)
    assert best_first(ranking, "AcAdAh Ac2c3c AcKdQh") == ["Ac2c3c", "AcAdAh", "AcKdQh"]
    assert category_counts(ranking) == category_counts(NATURAL)


def test_king_ace_two_is_no_run_under_any_ranking() -> None:
    for ace_low_run in AceLowRun:
        ranking = Ranking(tuple(Category), best_prial=None, ace_low_run=ace_low_run)
        assert ranking.category(spaced("AcKd2h")) is Category.HIGH_CARD


def test_every_option_changes_the_digest() -> None:
    rankings = [
        Ranking(tuple(Category), best_prial=best, ace_low_run=ace_low_run)
        for best in (None, "2", "3")
        for ace_low_run in AceLowRun
    ]
    assert len({order_digest(ranking) for ranking in rankings}) == len(rankings)


def test_a_ranking_names_each_category_once() -> None:
    with pytest.raises(AssertionError, match="each category once"):
        Ranking((Category.PAIR,) * 6, best_prial=None, ace_low_run=AceLowRun.HIGHEST)
