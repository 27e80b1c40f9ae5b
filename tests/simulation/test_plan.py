from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.game.paytable import PAYOUT_MAX_MINOR, Paytable
from casino_brag.game.rules import Rounding
from casino_brag.game.settlement import Stakes
from casino_brag.odds.strategies import DEALER_MIMIC, MAX_EXPECTATION, MAX_RTP, Strategy
from casino_brag.simulation.plan import (
    CHUNK_ROUNDS,
    ROUNDS_MAX,
    ROUNDS_MIN,
    STAKES_MAX,
    VERSION,
    Plan,
    StakePattern,
)

BRAG = Paytable.load("paytables/three-card-brag.toml")
DOUBLE = Paytable.load("paytables/double-play-brag.toml")
SEED = bytes(range(48))
PLAN = Plan(BRAG, MAX_EXPECTATION, StakePattern.parse("100"), 10**6, SEED)

patterns = st.builds(
    StakePattern,
    st.lists(st.builds(Stakes, st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=12).map(tuple),
)
plans = st.builds(
    Plan,
    st.sampled_from([BRAG, DOUBLE]),
    st.sampled_from(
        [
            MAX_EXPECTATION,
            MAX_RTP,
            DEALER_MIMIC,
            *map(Strategy.parse, ["fold_below:pair", "fold_below:Q-6-4"]),
        ]
    ),
    patterns,
    st.integers(ROUNDS_MIN, ROUNDS_MAX),
    st.binary(min_size=48, max_size=48),
)


@given(patterns)
def test_a_pattern_s_text_gives_it_back(pattern: StakePattern) -> None:
    assert StakePattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize(
    ("text", "stakes"),
    [
        ("100", [Stakes(100)]),
        ("100+50", [Stakes(100, 50)]),
        ("100x3", [Stakes(100)] * 3),
        ("100,200+100,500x2", [Stakes(100), Stakes(200, 100), Stakes(500), Stakes(500)]),
        ("7+3x2,7", [Stakes(7, 3), Stakes(7, 3), Stakes(7)]),
    ],
)
def test_a_pattern_as_it_is_written(text: str, stakes: list[Stakes]) -> None:
    assert StakePattern.parse(text).stakes == tuple(stakes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "1.5",
        "100 ",
        "100+",
        "+100",
        "100+0",
        "100x0",
        "100x",
        "x3",
        "100,",
        ",",
        "1,,2",
        "1_000",
    ],
)
def test_what_is_no_pattern_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no stake: write an Ante such as 100"):
        StakePattern.parse(text)


@pytest.mark.parametrize("text", [f"1x{STAKES_MAX + 1}", ",".join(["1x9999"] * 10_000)], ids=["one", "many"])
def test_a_pattern_has_an_end(text: str) -> None:
    with pytest.raises(ValueError, match="a pattern holds 1 to 1000 stakes"):
        StakePattern.parse(text)


def test_the_smallest_stakes_are_paid_in_whole_units_by_all_odds() -> None:
    halves = replace(BRAG, ante_pays=Fraction(3, 2))
    assert StakePattern.smallest(halves).stakes == (Stakes(2, 2),)
    assert BRAG.pair_bonus is not None
    pays = {category: odds / 3 for category, odds in BRAG.pair_bonus.pays.items()}
    both = replace(halves, pair_bonus=replace(BRAG.pair_bonus, pays=pays))
    assert StakePattern.smallest(both).stakes == (Stakes(6, 6),)
    assert StakePattern.smallest(replace(BRAG, pair_bonus=None)).stakes == (Stakes(1),)


@given(plans)
def test_a_plan_s_document_gives_it_back(plan: Plan) -> None:
    again = Plan.from_document(json.loads(json.dumps(plan.document())))
    assert again == plan
    assert again.digest == plan.digest


def test_another_part_makes_another_digest() -> None:
    others = [
        replace(PLAN, paytable=DOUBLE),
        replace(PLAN, strategy=MAX_RTP),
        replace(PLAN, pattern=StakePattern.parse("200")),
        replace(PLAN, rounds=10**6 + 1),
        replace(PLAN, seed=bytes(48)),
    ]
    assert len({plan.digest for plan in [PLAN, *others]}) == 6


def test_a_plan_of_another_version_is_refused() -> None:
    with pytest.raises(
        ValueError, match=rf"made by casino-brag 0\.0\.7 in chunks of .*, and this is casino-brag {VERSION} "
    ):
        Plan.from_document(PLAN.document() | {"casino_brag": "0.0.7"})
    with pytest.raises(ValueError, match="made by casino-brag"):
        Plan.from_document(PLAN.document() | {"chunk_rounds": 1000})


@pytest.mark.parametrize("key", PLAN.document())
@pytest.mark.parametrize("value", [None, [], "x", -1, 1e6, {"game": "x"}], ids=repr)
def test_a_document_with_something_else_in_it_is_refused(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        Plan.from_document(PLAN.document() | {key: value})


@pytest.mark.parametrize("key", PLAN.document())
def test_a_document_with_something_missing_is_refused(key: str) -> None:
    document = PLAN.document()
    del document[key]
    with pytest.raises(ValueError, match="no plan of a simulation"):
        Plan.from_document(document)


@pytest.mark.parametrize("rounds", [0, ROUNDS_MIN - 1, ROUNDS_MAX + 1])
def test_rounds_have_bounds(rounds: int) -> None:
    with pytest.raises(ValueError, match="a simulation has 100,000 to"):
        replace(PLAN, rounds=rounds)


@pytest.mark.parametrize("length", [0, 47, 49])
def test_a_seed_has_48_bytes(length: int) -> None:
    with pytest.raises(ValueError, match=f"a seed has 48 bytes, not {length}"):
        replace(PLAN, seed=bytes(length))


def test_stakes_that_win_parts_of_a_unit_are_refused_unless_the_rules_round() -> None:
    halves = replace(BRAG, ante_pays=Fraction(3, 2))
    with pytest.raises(ValueError, match=r"an Ante of 3 does not win whole minor units.*a multiple of 2"):
        replace(PLAN, paytable=halves, pattern=StakePattern.parse("2,3"))
    replace(PLAN, paytable=halves, pattern=StakePattern.parse("2,4+3"))
    replace(PLAN, paytable=replace(halves, rounding=Rounding.DOWN), pattern=StakePattern.parse("3"))
    assert BRAG.pair_bonus is not None
    pays = {category: odds / 2 for category, odds in BRAG.pair_bonus.pays.items()}
    pair_bonus = replace(BRAG, pair_bonus=replace(BRAG.pair_bonus, pays=pays))
    with pytest.raises(ValueError, match=r"a Pair Bonus of 5 does not win whole minor units"):
        replace(PLAN, paytable=pair_bonus, pattern=StakePattern.parse("3+5"))


def test_a_pair_bonus_needs_a_game_that_has_one() -> None:
    with pytest.raises(ValueError, match=r"three-card-brag has no Pair Bonus: leave \+50 out"):
        replace(PLAN, paytable=replace(BRAG, pair_bonus=None), pattern=StakePattern.parse("100+50"))


def test_stakes_that_could_pay_more_than_any_game_may_are_refused() -> None:
    with pytest.raises(ValueError, match="could pay more than"):
        replace(PLAN, pattern=StakePattern((Stakes(PAYOUT_MAX_MINOR),)))


def test_stakes_at_which_rounding_changes_the_decisions_are_simulated_one_by_one() -> None:
    rounded = replace(BRAG, ante_pays=Fraction(1, 2), rounding=Rounding.DOWN)
    with pytest.raises(ValueError, match="decide differently at 1 and 2: simulate these stakes one by one"):
        replace(PLAN, paytable=rounded, pattern=StakePattern.parse("2,1"))
    one, two = (
        replace(PLAN, paytable=rounded, pattern=StakePattern.parse(text)).decisions for text in ("1", "2")
    )
    assert one.sum() < two.sum()
    always = replace(PLAN, paytable=rounded, strategy=DEALER_MIMIC, pattern=StakePattern.parse("2,1"))
    assert np.array_equal(always.decisions, DEALER_MIMIC.decisions(rounded))


@given(st.integers(1, 12), st.integers(ROUNDS_MIN, 6 * CHUNK_ROUNDS), st.data())
def test_rounds_by_slot_are_those_of_counting(slots: int, rounds: int, data: st.DataObject) -> None:
    plan = replace(PLAN, pattern=StakePattern((Stakes(1),) * slots), rounds=rounds)
    first = data.draw(st.integers(0, plan.chunks - 1))
    last = data.draw(st.integers(first, plan.chunks - 1))
    played = range(first * CHUNK_ROUNDS, min((last + 1) * CHUNK_ROUNDS, rounds))
    by_slot = plan.rounds_by_slot(first, last)
    assert by_slot.tolist() == [
        len(range(played.start + (slot - played.start) % slots, played.stop, slots)) for slot in range(slots)
    ]


def test_every_round_is_in_one_chunk() -> None:
    plan = replace(PLAN, rounds=2 * CHUNK_ROUNDS + 1)
    assert [plan.rounds_by_slot(chunk, chunk).sum() for chunk in range(plan.chunks)] == [
        CHUNK_ROUNDS,
        CHUNK_ROUNDS,
        1,
    ]
    assert replace(PLAN, rounds=2 * CHUNK_ROUNDS).chunks == 2


def test_a_chunk_is_played_as_planned_and_the_same_every_time() -> None:
    plan = replace(PLAN, pattern=StakePattern.parse("1x3,2+1,3x3"), rounds=CHUNK_ROUNDS + ROUNDS_MIN)
    tally = plan.play(1)
    assert tally.outcomes.sum(axis=(1, 2)).tolist() == plan.rounds_by_slot(1, 1).tolist()
    assert tally == plan.play(1)
    assert tally != replace(plan, seed=bytes(48)).play(1)


def test_the_player_plays_what_the_strategy_plays() -> None:
    always, mimic = (
        replace(PLAN, strategy=Strategy.parse(name), rounds=ROUNDS_MIN).play(0).outcomes.sum(axis=0)
        for name in ("always_play", "fold_below:pair")
    )
    assert always[:, 0].sum() == 0
    assert mimic[0, 1:].sum() == 0
    assert mimic[1:, 0].sum() == 0
    # The same seed deals the same hands, whatever is done with them.
    assert always.sum(axis=1).tolist() == mimic.sum(axis=1).tolist()
