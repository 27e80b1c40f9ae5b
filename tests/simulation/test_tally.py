from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.simulation.tally import Tally

counts = st.integers(0, 10**15)


@st.composite
def tallies(draw: st.DrawFn, slots: int = 2) -> Tally:
    outcomes = np.array(draw(st.lists(counts, min_size=30 * slots, max_size=30 * slots)), dtype=np.int64)
    rounds = int(outcomes.sum())
    dealers = np.zeros(6, dtype=np.int64)
    dealers[draw(st.integers(0, 5))] = rounds
    return Tally(rounds, outcomes.reshape(slots, 6, 5), dealers, draw(counts))


@given(tallies(), tallies(), tallies())
def test_tallies_add_up_in_any_order(a: Tally, b: Tally, c: Tally) -> None:
    assert (a + b) + c == a + (c + b)
    assert a + Tally.empty(2) == a


@given(tallies())
def test_a_document_gives_the_tally_back(tally: Tally) -> None:
    assert Tally.from_document(json.loads(json.dumps(tally.document()))) == tally


def test_tallies_of_other_stakes_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="do not add up"):
        Tally.empty(1) + Tally.empty(2)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 1},
        {"rounds": "0"},
        {"rounds": True},
        {"discards": -1},
        {"discards": 0.5},
        {"outcomes": [[[0] * 5] * 5]},
        {"outcomes": [[[0.0] * 5] * 6]},
        {"outcomes": []},
        {"dealer_categories": [0] * 5},
        {"dealer_categories": [2**64] * 6},
    ],
)
def test_what_is_no_tally_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Tally.from_document(Tally.empty(1).document() | change)


def test_what_was_counted_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Tally.empty(1).outcomes[0, 0, 0] = 1
