"""Return to player and its tolerance: z s / sqrt(n) at equal stakes, z s sqrt(sum b^2) / sum b at any."""

from __future__ import annotations

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.watch import Fault, played, settled
from casino_brag.game.paytable import Paytable
from casino_brag.odds.returns import main_game, pair_bonus_game, rtp_sd
from casino_brag.odds.strategies import ALWAYS_PLAY, MAX_EXPECTATION
from casino_brag.watch.bands import (
    BANDS,
    Comparison,
    Sums,
    band_floors,
    conditional,
    raw,
    stake_band,
    stake_bands,
)
from casino_brag.watch.evidence import Batch
from casino_brag.watch.expectation import SCALE, Bools

BRAG = Paytable.load("paytables/three-card-brag.toml")
Z_95, Z_99 = 1.959964, 2.575829
"""The published points of the normal distribution."""


def sums_of(stakes: list[int], returned: int = 0) -> Sums:
    return Sums(len(stakes), sum(stakes), sum(b * b for b in stakes), sum(stakes), returned)


@given(rounds=st.integers(1, 10**9), stake=st.integers(1, 10**6), sd=st.floats(0.1, 10))
def test_at_equal_stakes_the_tolerance_is_z_s_over_the_root_of_n(rounds: int, stake: int, sd: float) -> None:
    sums = Sums(rounds, rounds * stake, rounds * stake**2, rounds * stake, 0)
    found = raw(sums, Fraction(98, 100), sd, 0.0)
    assert found.tolerance(0.95) == pytest.approx(Z_95 * sd / sqrt(rounds), rel=1e-6)
    assert found.tolerance(0.99) == pytest.approx(Z_99 * sd / sqrt(rounds), rel=1e-6)
    assert sums.equal_rounds == pytest.approx(rounds)


def test_one_large_stake_makes_the_tolerance_wide() -> None:
    # 99 rounds at 1 and one at 101: sum of b 200, sum of squares 10,300, so sd 2 x 101.489 / 200.
    found = raw(sums_of([1] * 99 + [101], 190), Fraction(1), 2.0, 0.0)
    assert found.sd == pytest.approx(1.0148892)
    assert found.tolerance(0.95) == pytest.approx(Z_95 * 1.0148892, rel=1e-6)
    assert found.z == pytest.approx(-0.05 / 1.0148892)
    assert found.tolerance(0.99) == pytest.approx(2.614181, abs=1e-5)
    assert not found.enough  # as much as 3.9 rounds at equal stakes


def test_nothing_played_is_no_data_and_not_no_return() -> None:
    with pytest.raises(ZeroDivisionError):
        raw(Sums(), Fraction(98, 100), 1.0, 0.0)
    with pytest.raises(ZeroDivisionError):
        conditional(Sums(), 0.0)


@pytest.mark.parametrize(
    ("rounds", "skewness", "enough"),
    [(29, 0.0, False), (30, 0.0, True), (30, 1.2, False), (36, 1.2, True), (1_500, 8.0, False)],
)
def test_few_rounds_of_a_skewed_payout_are_too_few(rounds: int, skewness: float, enough: bool) -> None:
    found = raw(sums_of([5] * rounds), Fraction(98, 100), 1.0, skewness)
    assert found.enough is enough


def test_what_cannot_vary_misses_by_nothing_or_by_all() -> None:
    assert Comparison(Fraction(1), Fraction(1), 0.0, enough=True).z == 0
    assert Comparison(Fraction(1, 2), Fraction(1), 0.0, enough=True).z == -inf


def test_a_comparison_at_the_tolerance_has_its_z() -> None:
    found = Comparison(Fraction(98, 100) + Fraction(Z_95 / 100), Fraction(98, 100), 0.01, enough=True)
    assert found.z == pytest.approx(Z_95)
    assert found.tolerance(0.95) == pytest.approx(Z_95 / 100, rel=1e-6)


def main_sums(batch: Batch, play_multiple: int, which: Bools) -> Sums:
    """The main game's, of those of many rounds that are wanted."""
    rounds = batch.rounds
    antes, plays = rounds.ante_minor[which].astype(object), rounds.plays[which]
    return Sums(
        int(which.sum()),
        int(antes.sum()),
        int((antes**2).sum()),
        int((antes * (1 + play_multiple * plays)).sum()),
        int(batch.main_paid_minor[which].astype(object).sum()),
        int(rounds.expected[which].sum()),
        int(rounds.variance[which].sum()),
    )


def played_sums(seed: int, plays: Bools, fault: Fault = Fault.NONE) -> Sums:
    """Sums of the main game of some 100,000 rounds at equal stakes, of many at others."""
    batch = settled(np.random.default_rng(seed), 300_000, plays, fault)
    return main_sums(batch, BRAG.play_multiple, batch.bands == 0)


def test_sums_of_parts_are_the_sums_of_all() -> None:
    batch = settled(np.random.default_rng(1), 500, played(MAX_EXPECTATION))
    parts = batch.bands == 0
    sums = [main_sums(batch, 1, which) for which in (parts, ~parts, parts | ~parts)]
    assert sums[0] + sums[1] == sums[2]
    assert sums[2].rounds == 500
    assert sums[2].staked_minor == sum(
        int(ante) * (2 if plays else 1)
        for ante, plays in zip(batch.rounds.ante_minor, batch.rounds.plays, strict=True)
    )
    assert sums[2].returned_minor == int(batch.main_paid_minor.sum())


def test_fair_play_stays_within_its_bands() -> None:
    main = played_sums(2, played(MAX_EXPECTATION))
    game, plays = main_game(BRAG), MAX_EXPECTATION.decisions(BRAG)
    for found in (
        raw(main, game.rtp, rtp_sd(BRAG, plays), game.skewness),
        conditional(main, game.skewness),
    ):
        assert found.enough
        assert abs(found.z) < 4


def test_who_plays_badly_is_out_of_the_raw_band_and_within_the_conditional_one() -> None:
    main = played_sums(3, played(ALWAYS_PLAY))
    game, plays = main_game(BRAG), MAX_EXPECTATION.decisions(BRAG)
    found = raw(main, game.rtp, rtp_sd(BRAG, plays), game.skewness)
    given_hands = conditional(main, game.skewness)
    assert found.z < -4
    assert abs(given_hands.z) < 4


def test_underpayment_is_out_of_the_conditional_band() -> None:
    main = played_sums(4, played(ALWAYS_PLAY), Fault.UNQUALIFIED)
    found = conditional(main, 0.5)
    assert found.z < -20


def test_a_pair_bonus_paid_as_due_misses_nothing_given_the_hands() -> None:
    batch = settled(np.random.default_rng(5), 2_000, played(MAX_EXPECTATION))
    bonuses = np.where(batch.bonus_paid_minor > 0, batch.rounds.ante_minor, 0)
    staked, due = int(bonuses.sum()), int(batch.rounds.bonus_due_minor[bonuses > 0].sum())
    squares, paid = int((bonuses**2).sum()), int(batch.bonus_paid_minor[bonuses > 0].sum())
    sums = Sums(int((bonuses > 0).sum()), staked, squares, staked, paid, SCALE * due, 0)
    found = conditional(sums, 7.0)
    assert (found.actual, found.z) == (found.expected, 0)
    game = pair_bonus_game(BRAG)
    assert game is not None
    against_theory = raw(sums, game.rtp, game.sd, game.skewness)
    assert against_theory.z > 3  # only winning rounds were taken


@given(ante=st.integers(1, 10**15), least=st.integers(1, 10**9))
def test_a_band_holds_half_a_power_of_ten(ante: int, least: int) -> None:
    band = stake_band(ante, least)
    assert 0 <= band < BANDS
    if band > 0:
        assert ante**2 >= 10**band * least**2
    if band < BANDS - 1:
        assert ante**2 < 10 ** (band + 1) * least**2
    assert stake_bands(np.array([ante]), least).tolist() == [band]


def test_bands_begin_with_the_least_ante() -> None:
    floors = band_floors(1_000)
    assert floors[:4] == (1_000, 3_163, 10_000, 31_623)
    assert list(floors) == sorted(floors)
