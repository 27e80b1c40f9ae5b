"""The deal that is derived a second time is the one of the random number module."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.replay import dealing
from casino_brag.replay.dealing import deal_index, deals
from casino_brag.rng import DEALS, Draw, seeds, unrank

sources = {
    "seed": st.binary(min_size=48, max_size=48),
    "round_id": st.uuids(),
    "rules_digest": st.binary(min_size=32, max_size=32).map(bytes.hex),
    "client_seed": st.none()
    | st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128),
}


@given(**sources)
def test_the_second_derivation_agrees_with_the_module(
    seed: bytes, round_id: UUID, rules_digest: str, client_seed: str | None
) -> None:
    draw = seeds.deal(seed, round_id, rules_digest, client_seed)
    assert deal_index(seed, round_id, rules_digest, client_seed) == (draw.index, draw.discards)


def test_after_a_word_that_is_discarded_the_module_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No seed is known whose first word is out of range: here every word is."""
    monkeypatch.setattr(dealing, "_WORDS", 0)
    monkeypatch.setattr(seeds, "deal", lambda *_: Draw(index=7, discards=1))
    assert deal_index(bytes(48), UUID(int=1), "00" * 32, None) == (7, 1)


@given(st.lists(st.integers(0, DEALS - 1), max_size=30))
def test_columns_of_indexes_are_dealt_as_single_ones(indexes: list[int]) -> None:
    assert [tuple(cards) for cards in deals(np.array(indexes, dtype=np.int64)).tolist()] == list(
        map(unrank, indexes)
    )
