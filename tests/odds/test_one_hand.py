from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from casino_brag.game.hands import Category, Hand
from casino_brag.game.paytable import Paytable
from casino_brag.odds.one_hand import one_hand

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DATA = Path(__file__).parents[1] / "data" / "hands.json"
PUBLISHED = json.loads(DATA.read_text(encoding="utf-8"))["hands"]


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: "".join(published["cards"]))
def test_published_hands(published: dict[str, Any]) -> None:
    found = one_hand(BRAG, Hand.parse(" ".join(published["cards"])))
    assert {key: found[key] for key in published if key != "cards"} == {
        key: value for key, value in published.items() if key != "cards"
    }


def test_expectation_is_the_sum_over_the_dealer_hands() -> None:
    """Q-6-4 in three suits: 5,758 pay the Ante, 305 pay both, 26 neither, 12,335 take both."""
    found = one_hand(BRAG, Hand.parse("Qs 6d 4c"))
    assert found["expectation"] == {"play": 5_758 + 2 * 305 - 2 * 12_335, "fold": -18_424}
    assert found["decision"] == "play"


def test_fractional_odds_give_fractional_expectations() -> None:
    pays = {**BRAG.play_pays, Category.HIGH_CARD: Fraction(3, 2)}
    found = one_hand(replace(BRAG, play_pays=pays), Hand.parse("Qs 6d 4c"))
    assert found["expectation"]["play"] == "-36299/2"
