from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Claim, ClaimFigure, ClaimWager, Limits, Rounding, StakeRange
from casino_brag.game.settlement import Stakes
from casino_brag.odds.claims import judge_claims
from casino_brag.odds.returns import main_game

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")


def test_98_percent_holds_for_one_game_and_not_for_the_other() -> None:
    (brag,), (double_play,) = judge_claims(BRAG), judge_claims(DOUBLE_PLAY)
    assert brag.holds
    assert not double_play.holds
    assert f"{float(double_play.exact):.6%}" == "99.541837%"


def test_each_figure_of_each_wager_is_judged_by_its_own_exact_figure() -> None:
    main, bonus = ClaimWager.MAIN, ClaimWager.PAIR_BONUS
    true = (
        Claim(ClaimFigure.RTP, main, "97.996138 %", "a"),
        Claim(ClaimFigure.HOUSE_EDGE, main, "3.354881 %", "b"),
        Claim(ClaimFigure.ELEMENT_OF_RISK, main, "2.003862 %", "c"),
        Claim(ClaimFigure.RTP, bonus, "97.864253 %", "d"),
        Claim(ClaimFigure.HOUSE_EDGE, bonus, "2.135747 %", "e"),
        Claim(ClaimFigure.ELEMENT_OF_RISK, bonus, "2.135747 %", "f"),
    )
    judged = judge_claims(replace(BRAG, claims=true))
    assert [each.holds for each in judged] == [True] * 6
    assert judged[1].exact == Fraction(3_415_021, 101_792_600)
    off_by_one = tuple(replace(claim, value=f"{claim.value[:-3]}0 %") for claim in true)
    assert not any(each.holds for each in judge_claims(replace(BRAG, claims=off_by_one)))


def test_the_document_has_the_claim_s_keys_and_the_exact_figure() -> None:
    (judged,) = judge_claims(DOUBLE_PLAY)
    assert judged.document() == {
        **DOUBLE_PLAY.claims[0].document(),
        "exact": 0.995418370724,
        "exact_fraction": "779105/782691",
        "holds": False,
    }


def test_a_claim_about_a_game_that_rounds_has_to_hold_at_the_smallest_stakes_too() -> None:
    """The only stake is 1, at which an Ante of 1 to 2 wins nothing."""
    only_one = {"GBP": Limits(StakeRange(1, 1, 1), None, None)}
    rounding = replace(
        BRAG, ante_pays=Fraction(1, 2), pair_bonus=None, rounding=Rounding.DOWN, limits=only_one, claims=()
    )
    exact = main_game(rounding).rtp
    claimed = Claim(ClaimFigure.RTP, ClaimWager.MAIN, f"{float(exact):.2%}", "a leaflet")
    (judged,) = judge_claims(replace(rounding, claims=(claimed,)))
    assert judged.exact == exact
    assert claimed.holds(exact)
    assert judged.at_stakes == ((1, main_game(rounding, stakes=Stakes(1)).rtp),)
    assert not judged.holds
