"""The package against the auditors' scripts, over paytables nobody has seen: two computations that share no code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from casino_brag.game.hands import AceLowRun, Category, Ranking, order_digest
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import qualifying_class
from casino_brag.odds.outcomes import outcomes
from casino_brag.odds.par_sheet import par_sheet
from casino_brag.odds.returns import main_game

PAYTABLES = Path(__file__).parents[2] / "paytables"
CATEGORIES = ("high_card", "pair", "flush", "run", "running_flush", "prial")

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example takes a quarter of a second, and a second more for a new ranking: shrinking one would take minutes."""

ODDS = st.integers(0, 12) | st.builds("{}/{}".format, st.integers(0, 40), st.integers(1, 12))
WINNING_ODDS = st.integers(1, 40) | st.builds("{}/{}".format, st.integers(1, 40), st.integers(1, 12))
BONUS_PAYS = st.dictionaries(st.sampled_from(CATEGORIES), WINNING_ODDS, min_size=1)
UNQUALIFIED = st.sampled_from(("wins", "push"))
QUALIFIERS = st.sampled_from(("T", "J", "Q", "K", "A", "pair", "any"))
RANKINGS = st.fixed_dictionaries(
    {
        "categories": st.permutations(CATEGORIES),
        "ace_low_run": st.sampled_from(("highest", "second", "lowest", "not_a_run")),
    },
    optional={"best_prial": st.sampled_from("23456789TJQKA")},
)
ENUMERATED = st.sampled_from(
    (
        ({"categories": list(CATEGORIES), "best_prial": "3", "ace_low_run": "highest"}, "Q"),
        ({"categories": list(reversed(CATEGORIES)), "ace_low_run": "not_a_run"}, "any"),
    )
)
"""Rankings and qualifiers that are enumerated once for all pays."""


def claims(*wagers: str) -> st.SearchStrategy[list[dict[str, str]]]:
    claim = st.fixed_dictionaries(
        {
            "figure": st.sampled_from(("rtp", "house_edge", "element_of_risk")),
            "wager": st.sampled_from(wagers),
            "value": st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,3})? ?%", fullmatch=True, alphabet="0123456789. %"),
            "source": st.just("Spielregeln, gedruckt in Köln"),
        }
    )
    return st.lists(claim, max_size=2)


@st.composite
def paytables(draw: st.DrawFn, rules: st.SearchStrategy[tuple[dict[str, Any], str]]) -> dict[str, Any]:
    """A paytable as a document, in which all but stakes and names is drawn."""
    ranking, qualifier = draw(rules)
    stakes = {"min": 1, "max": 1000, "step": 1}
    document: dict[str, Any] = {
        "game": "drawn-brag",
        "title": "Drawn Brag",
        "ranking": ranking,
        "dealer": {
            "qualifies_with": qualifier,
            "not_qualified": {"ante": draw(UNQUALIFIED), "play": draw(UNQUALIFIED)},
        },
        "play": {"multiple": draw(st.integers(1, 3)), "pays": {name: draw(ODDS) for name in CATEGORIES}},
        "ante": {"pays": draw(ODDS)},
        "tie": {"result": draw(st.sampled_from(("push", "dealer", "player")))},
        "limits": {"GBP": {"ante": stakes}},
        "rounding": "down",  # so that any odds will do; the figures are those without rounding
    }
    if draw(st.booleans()):
        paid = draw(st.sampled_from(("always", "not_beaten", "win")))
        document["ante_bonus"] = {"paid": paid, "pays": draw(BONUS_PAYS)}
    if draw(st.booleans()):
        on_fold = draw(st.sampled_from(("lost", "settled")))
        document["pair_bonus"] = {"on_fold": on_fold, "pays": draw(BONUS_PAYS)}
        document["limits"]["GBP"]["pair_bonus"] = stakes
    document["claims"] = draw(claims("main", "pair_bonus") if "pair_bonus" in document else claims("main"))
    return document


def assert_package_agrees(scripts: SimpleNamespace, document: dict[str, Any]) -> None:
    paytable = Paytable.from_document(document)
    sheet = par_sheet(paytable)
    names = [other["name"] for other in sheet["main"]["alternatives"]]
    computed = scripts.figures.par_sheet(document, names)
    scripts.check_paytables.take_at_stakes(computed, sheet)
    distribution = {str(net): deals for net, deals in main_game(paytable).net_distribution.items()}
    assert distribution == computed["main"]["net_distribution"]
    assert list(scripts.check_paytables.differences(computed, sheet)) == []


@settings(max_examples=40, deadline=None, phases=UNSHRUNK)
@given(document=paytables(ENUMERATED))
def test_package_and_brute_force_agree_on_any_pays(
    scripts: SimpleNamespace, document: dict[str, Any]
) -> None:
    assert_package_agrees(scripts, document)


def test_package_and_brute_force_fold_a_hand_that_is_worth_the_same_either_way(
    scripts: SimpleNamespace,
) -> None:
    """Q-6-3 in three suits meets 5,747 dealers who do not qualify, beats 271 and loses to 12,380."""
    document = dict(scripts.rules.read_paytable(PAYTABLES / "three-card-brag.toml")) | {"rounding": "down"}
    del document["ante_bonus"]
    hands = []
    for pays in ("6065/6018", "6066/6018"):  # of the Ante: what wins back what playing Q-6-3 risks, and more
        assert_package_agrees(scripts, document | {"ante": {"pays": pays}})
        game = scripts.figures.Game.of(document | {"ante": {"pays": pays}})
        hands.append(int(game.strategy("max_expectation").sum()))
    assert hands[1] - hands[0] == 24


@settings(max_examples=25, deadline=None, phases=UNSHRUNK)
@given(drawn=RANKINGS)
def test_package_and_scripts_put_all_hands_in_one_order(
    scripts: SimpleNamespace, drawn: dict[str, Any]
) -> None:
    ranking = Ranking(
        tuple(map(Category, drawn["categories"])), drawn.get("best_prial"), AceLowRun(drawn["ace_low_run"])
    )
    own = scripts.enumeration.Ranking.of({"ranking": drawn})
    assert scripts.enumeration.ranking_digest(own) == order_digest(ranking)
    ranked = scripts.enumeration.rank_hands(own)
    for qualifier in Qualifier:
        lowest = scripts.enumeration.lowest_class(ranked, qualifier.value)
        assert lowest == qualifying_class(ranking, qualifier)


@settings(max_examples=6, deadline=None, phases=UNSHRUNK)
@given(document=paytables(st.tuples(RANKINGS, QUALIFIERS)))
def test_package_and_brute_force_agree_on_any_ranking_and_qualifier(
    scripts: SimpleNamespace, document: dict[str, Any]
) -> None:
    assert_package_agrees(scripts, document)
    paytable = Paytable.from_document(document)
    counted = outcomes(paytable.ranking, paytable.qualifier)
    game = scripts.figures.Game.of(document)
    assert np.array_equal(game.counts, counted.counts[counted.kind])
