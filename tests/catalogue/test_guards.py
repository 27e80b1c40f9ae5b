"""What keeps a paytable from being approved: too high or too low a return, by wager, or a missing certificate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casino_brag.catalogue.guards import broken_guards
from casino_brag.catalogue.paytables import published_figures
from casino_brag.config import Config, read_config, shipped
from casino_brag.errors import SetUpError
from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.odds.returns import main_game, pair_bonus_game
from tests.paytables import paytables

BRAG = Paytable.load(shipped("paytables") / "three-card-brag.toml")
DOUBLE = Paytable.load(shipped("paytables") / "double-play-brag.toml")
ONE = Fraction(1)


def test_the_shipped_games_will_do_everywhere_with_a_certificate() -> None:
    for paytable in (BRAG, DOUBLE):
        assert broken_guards(paytable, ["gb", "mga", "nj"], "TL-1", ONE) == {}


def test_each_wager_has_to_stay_strictly_below_the_ceiling() -> None:
    main, pair_bonus = main_game(BRAG).rtp, Fraction(5407, 5525)
    assert broken_guards(BRAG, ["none"], None, main).keys() == {"play.pays"}
    assert broken_guards(BRAG, ["none"], None, main + Fraction(1, 10**12)) == {}
    assert broken_guards(BRAG, ["none"], None, pair_bonus).keys() == {"play.pays", "pair_bonus.pays"}
    assert broken_guards(DOUBLE, ["none"], None, Fraction(979, 1000)).keys() == {"play.pays"}


def test_a_pair_bonus_that_gives_all_back_is_above_any_ceiling() -> None:
    assert BRAG.pair_bonus is not None
    fair = replace(
        BRAG.pair_bonus, pays=dict(BRAG.pair_bonus.pays) | {Category.PRIAL: Fraction(40) + Fraction(118, 13)}
    )
    paytable = replace(BRAG, pair_bonus=fair)
    game = pair_bonus_game(paytable)
    assert game is not None
    assert game.rtp == 1
    assert broken_guards(paytable, [], None, ONE).keys() == {"pair_bonus.pays"}


def test_floors_are_those_of_each_jurisdiction_by_wager() -> None:
    assert BRAG.pair_bonus is not None
    pays = dict(BRAG.pair_bonus.pays) | {Category.FLUSH: Fraction(5, 4)}
    paytable = replace(BRAG, pair_bonus=replace(BRAG.pair_bonus, pays=pays))
    broken = broken_guards(paytable, ["none", "mga", "nj"], None, ONE)
    assert broken.keys() == {"jurisdictions"}
    assert [sentence.partition(" the Pair")[0] for sentence in broken["jurisdictions"]] == ["In Malta"]


def test_a_certificate_is_asked_for_where_it_is_demanded() -> None:
    assert broken_guards(BRAG, ["none", "gb"], None, ONE).keys() == {"certificate"}
    assert "Great Britain" in broken_guards(BRAG, ["none", "gb"], None, ONE)["certificate"][0]
    assert broken_guards(BRAG, ["none", "mga"], None, ONE) == {}


def test_a_jurisdiction_that_there_is_not_is_named_beside_what_the_others_ask() -> None:
    broken = broken_guards(BRAG, ["atlantis", "gb"], None, ONE)
    assert broken.keys() == {"jurisdictions", "certificate"}
    assert broken["jurisdictions"][0].startswith("'atlantis': name one or more of gb, ")


@settings(max_examples=30, deadline=None)
@given(paytables(), st.fractions(Fraction(1, 2), 1))
def test_a_guard_is_broken_exactly_where_a_published_figure_breaks_it(
    paytable: Paytable, ceiling: Fraction
) -> None:
    returns = {f["wager"]: Fraction(f["exact"]) for f in published_figures(paytable) if f["figure"] == "rtp"}
    broken = broken_guards(paytable, ["mga"], None, ceiling)
    assert ("play.pays" in broken) == (returns["main"] >= ceiling)
    assert ("pair_bonus.pays" in broken) == (returns.get("pair_bonus", Fraction(0)) >= ceiling)
    assert ("jurisdictions" in broken) == any(rtp < Fraction(17, 20) for rtp in returns.values())


def configured() -> Config:
    return read_config(database_url="postgresql://", seal_keys={"k1": bytes(32)})


@pytest.mark.parametrize("text", ["1", "999/1000", "1/1", "000001/2"])
def test_a_ceiling_is_one_or_a_fraction_below_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CASINO_BRAG_RTP_CEILING", text)
    assert configured().rtp_ceiling == Fraction(text)


@pytest.mark.parametrize("text", ["0", "0/1", "1/0", "101/100", "99 %", "0.99", "-1/2", "x", "2"])
def test_another_ceiling_stops_the_process_at_its_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CASINO_BRAG_RTP_CEILING", text)
    with pytest.raises(SetUpError, match="CASINO_BRAG_RTP_CEILING"):
        configured()
