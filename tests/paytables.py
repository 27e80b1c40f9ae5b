"""Paytables at random, for laws that hold for every one."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from casino_brag.game.cards import RANKS
from casino_brag.game.hands import AceLowRun, Category, Ranking
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import (
    AnteBonus,
    BonusPaid,
    Claim,
    ClaimFigure,
    ClaimWager,
    Limits,
    NotQualified,
    OnFold,
    PairBonus,
    Qualifier,
    Rounding,
    StakeRange,
    TieResult,
    Unqualified,
)

odds = st.builds(Fraction, st.integers(0, 200), st.integers(1, 9))
paying = st.dictionaries(st.sampled_from(Category), odds.filter(bool), min_size=1)
stake_ranges = st.builds(
    lambda least, step, steps: StakeRange(least, least + step * steps, step),
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.integers(0, 10**6),
)


@st.composite
def paytables(draw: st.DrawFn) -> Paytable:
    """Any paytable a file can hold, but for those with exact odds, which need stakes to fit."""
    pair_bonus = draw(st.none() | st.builds(PairBonus, st.sampled_from(OnFold), paying))
    limits = st.builds(
        Limits,
        ante=stake_ranges,
        pair_bonus=st.none() if pair_bonus is None else stake_ranges,
        payout_max_minor=st.none() | st.integers(10**9, 2**53 - 1),
    )
    wagers = [ClaimWager.MAIN] if pair_bonus is None else list(ClaimWager)
    claims = st.builds(
        Claim,
        st.sampled_from(ClaimFigure),
        st.sampled_from(wagers),
        value=st.sampled_from(["98 %", "97.996138%", "3.35 %"]),
        source=st.sampled_from(["leaflet", "Hausregeln, § 3", "規則"]),
    )
    return Paytable(
        game=draw(st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,3}", fullmatch=True)),
        title=draw(st.sampled_from(["3 Card Brag", "Crème de la Brag"])),
        ranking=Ranking(
            tuple(draw(st.permutations(list(Category)))),
            draw(st.none() | st.sampled_from(RANKS)),
            draw(st.sampled_from(AceLowRun)),
        ),
        qualifier=draw(st.sampled_from(Qualifier)),
        not_qualified=NotQualified(draw(st.sampled_from(Unqualified)), draw(st.sampled_from(Unqualified))),
        play_multiple=draw(st.integers(1, 10)),
        play_pays={category: draw(odds) for category in Category},
        ante_pays=draw(odds),
        tie=draw(st.sampled_from(TieResult)),
        ante_bonus=draw(st.none() | st.builds(AnteBonus, st.sampled_from(BonusPaid), paying)),
        pair_bonus=pair_bonus,
        limits=draw(st.dictionaries(st.sampled_from(["GBP", "JPY", "USDT20"]), limits, min_size=1)),
        rounding=Rounding.DOWN,
        claims=tuple(draw(st.lists(claims, max_size=2))),
    )
