from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from hypothesis import given, settings

from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Claim, ClaimFigure, ClaimWager
from casino_brag.odds.differences import _changes, differences
from tests.paytables import paytables

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")


@settings(max_examples=5, deadline=None)
@given(paytables())
def test_nothing_differs_from_itself(paytable: Paytable) -> None:
    found = differences(paytable, paytable)
    assert (found["rules"], found["figures"], found["hands_reordered"]) == ([], [], 0)
    assert found["strategy"]["now_played"] == found["strategy"]["now_folded"] == {"hands": 0, "shapes": []}


@given(paytables(), paytables())
def test_paytables_of_two_digests_differ_in_a_rule(one: Paytable, other: Paytable) -> None:
    for new in (other, replace(one, claims=other.claims), replace(one, limits=other.limits)):
        assert bool(_changes(one.document(), new.document())) == (one.digest != new.digest)


def test_each_of_several_claims_is_compared_with_its_own() -> None:
    claims = tuple(Claim(ClaimFigure.RTP, wager, "98 %", "a leaflet") for wager in ClaimWager)
    changed = (replace(claims[0], value="95 %"), claims[1])
    found = differences(replace(BRAG, claims=claims), replace(BRAG, claims=changed))
    assert found["rules"] == [{"key": "claims.0.value", "old": "98 %", "new": "95 %"}]


def test_the_figures_of_other_strategies_are_compared_too() -> None:
    changed = {change["key"]: change for change in differences(BRAG, DOUBLE_PLAY)["figures"]}
    assert changed["main.alternatives.max_rtp.rtp_exact"]["old"] == "16755531/17097472"
    assert changed["main.alternatives.always_play.house_edge"]["new"] > 0.32


def test_one_changed_pay_is_one_changed_rule_and_all_the_figures_it_moves() -> None:
    assert BRAG.ante_bonus is not None
    bonus = replace(BRAG.ante_bonus, pays={**BRAG.ante_bonus.pays, Category.PRIAL: Fraction(11, 2)})
    found = differences(BRAG, replace(BRAG, ante_bonus=bonus))
    assert found["rules"] == [{"key": "ante_bonus.pays.prial", "old": 5, "new": "11/2"}]
    moved = {change["key"] for change in found["figures"]}
    assert {"main.rtp", "main.rtp_exact", "main.house_edge", "combined.rtp"} <= moved
    assert not any(key.startswith(("pair_bonus.", "main.strategy", "main.total_staked")) for key in moved)


def test_hands_that_are_now_folded_are_counted_and_named_weakest_first() -> None:
    strategy = differences(BRAG, DOUBLE_PLAY)["strategy"]
    assert strategy["now_folded"]["hands"] == 14_900 - 12_740
    assert strategy["now_folded"]["shapes"][0] == "Q-6-4"
    assert strategy["now_folded"]["shapes"][-1] == "Q-J-9"
    back = differences(DOUBLE_PLAY, BRAG)["strategy"]
    assert back["now_played"] == strategy["now_folded"]


def test_another_ranking_is_told_by_the_hands_it_moves() -> None:
    natural = replace(BRAG, ranking=replace(BRAG.ranking, best_prial=None))
    found = differences(BRAG, natural)
    # Threes come down, and the prials above them in natural order go up: 4 to A, and no others.
    assert found["hands_reordered"] == 4 * 12
    assert found["rules"] == [{"key": "ranking.best_prial", "old": "3", "new": None}]


def test_a_table_that_cannot_be_published_is_told_with_its_warning() -> None:
    found = differences(DOUBLE_PLAY, replace(DOUBLE_PLAY, ante_bonus=BRAG.ante_bonus))
    assert len(found["warnings"]) == 1
    assert json.loads(json.dumps(found)) == found
