"""Whether a simulation agrees with the exact figures: estimates, intervals, tests and a verdict; nothing is drawn.

Every ending is counted, and theory knows how often it is due out of all 407,170,400 deals.  So sums, means and
variances are exact here, simulated ones and expected ones, and only the last step, a probability, is a float.

What counts by category cannot show is how hands rank within one: whatever their order, they beat each other as often
as they are beaten.  That order is proven by listing it, not by playing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.settlement import Spot
from casino_brag.odds.outcomes import outcomes
from casino_brag.odds.payoffs import EVERY_SPOT, MAIN, payoffs, total
from casino_brag.odds.returns import hands_by_category
from casino_brag.odds.strategies import count_endings
from casino_brag.odds.tails import EXPECTED_MIN, chi_square_p, normal_p
from casino_brag.simulation.plan import Plan
from casino_brag.simulation.tally import CATEGORIES, RESULTS, Counts, Tally

AGREES_FROM: Final = 0.01
"""A simulation agrees when no test's adjusted p is below this.  One that is right is asked to be repeated about once
in a hundred times: seldom enough to be worth the second run, often enough that the question means something."""

DISAGREES_BELOW: Final = 1e-6
"""It disagrees when one is below this.  A right one is condemned once in a million times; a wrong one is caught for
all that, as the evidence against it grows with every round played."""

ENDINGS: Final = tuple(f"{category}.{result}" for category in CATEGORIES for result in RESULTS)

Exact = NDArray[np.object_]
"""Integers of any size; the last two axes are an ending's category and result."""


class Conclusion(StrEnum):
    """What a simulation says about the exact figures."""

    AGREES = "agrees"
    """Every test is well within what chance does."""

    REPEAT = "repeat"
    """A test is unusual, and no more: run again with another seed before concluding anything."""

    DISAGREES = "disagrees"
    """Chance does not explain it, or something happened that cannot."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio of two sums of money, as simulated and as theory has it.

    ``low`` and ``high`` bound its confidence interval; ``z`` is by how many of their exact standard deviations the
    simulated sums miss the expected ratio, and ``p`` the probability of missing it as widely or more.
    """

    name: str
    simulated: Fraction
    low: float
    high: float
    expected: Fraction
    z: float
    p: float


@dataclass(frozen=True, slots=True)
class Cell:
    """How often something was counted, and how often it was due."""

    name: str
    counted: int
    expected: Fraction


@dataclass(frozen=True, slots=True)
class Fit:
    """Counts against their expectations: Pearson's chi-square over the cells that are possible."""

    name: str
    cells: tuple[Cell, ...]
    chi_square: float
    degrees: int
    p: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """All that a simulation says.

    ``adjusted`` holds Holm's p of each figure and then of each fit; ``impossible`` names the endings that were
    counted and cannot occur.
    """

    plan: Plan
    tally: Tally
    confidence: float
    staked_minor: int
    returned_minor: int
    figures: tuple[Figure, ...]
    fits: tuple[Fit, ...]
    adjusted: tuple[float, ...]
    impossible: tuple[str, ...]

    @property
    def conclusion(self) -> Conclusion:
        """What follows from the smallest adjusted p and from the impossible endings."""
        smallest = min(self.adjusted)
        if self.impossible or smallest < DISAGREES_BELOW:
            return Conclusion.DISAGREES
        return Conclusion.AGREES if smallest >= AGREES_FROM else Conclusion.REPEAT

    def document(self) -> dict[str, Any]:
        """The verdict as plain data, ready for JSON: fractions exactly as ``"a/b"`` and beside that as decimals."""
        of_figures, of_fits = self.adjusted[: len(self.figures)], self.adjusted[len(self.figures) :]
        return {
            "plan": self.plan.document(),
            "plan_digest": self.plan.digest,
            "paytable_digest": self.plan.paytable.digest,
            "confidence": self.confidence,
            "staked_minor": self.staked_minor,
            "returned_minor": self.returned_minor,
            "figures": {
                figure.name: {
                    "simulated": float(figure.simulated),
                    "simulated_exact": str(figure.simulated),
                    "low": figure.low,
                    "high": figure.high,
                    "expected": float(figure.expected),
                    "expected_exact": str(figure.expected),
                    "z": figure.z,
                    "p": figure.p,
                    "p_adjusted": adjusted,
                }
                for figure, adjusted in zip(self.figures, of_figures, strict=True)
            },
            "fits": {
                fit.name: {
                    "cells": {
                        cell.name: {"counted": cell.counted, "expected": float(cell.expected)}
                        for cell in fit.cells
                    },
                    "chi_square": fit.chi_square,
                    "degrees": fit.degrees,
                    "p": fit.p,
                    "p_adjusted": adjusted,
                }
                for fit, adjusted in zip(self.fits, of_fits, strict=True)
            },
            "impossible": list(self.impossible),
            "discards": self.tally.discards,
            "conclusion": self.conclusion.value,
        }


def judge(plan: Plan, tally: Tally, confidence: float = 0.95) -> Verdict:
    """Compares the finished tally of a plan with the exact figures of the same rules, decisions and stakes.

    ``confidence`` is that of the intervals, above 0 and below 1; it has no part in the tests.
    """
    paytable = plan.paytable
    assert tally.rounds == plan.rounds
    assert 0 < confidence < 1
    theory = count_endings(outcomes(paytable.ranking, paytable.qualifier), plan.decisions)
    strata = _Strata(plan, tally, theory.astype(object))
    figures = tuple(_figures(strata, confidence))
    counted = tally.outcomes.sum(axis=0)
    fits = (
        _fit("player_categories", CATEGORIES, counted.sum(axis=1), theory.sum(axis=1)),
        _fit("dealer_categories", CATEGORIES, tally.dealer_categories, np.array(hands_by_category(paytable))),
        _fit("results", RESULTS, counted.sum(axis=0), theory.sum(axis=0)),
        _fit("endings", ENDINGS, counted.ravel(), theory.ravel()),
    )
    return Verdict(
        plan,
        tally,
        confidence,
        total(strata.counts, strata.staked()),
        total(strata.counts, strata.returned()),
        figures,
        fits,
        holm([figure.p for figure in figures] + [fit.p for fit in fits]),
        tuple(cell.name for cell in fits[-1].cells if cell.counted and not cell.expected),
    )


def holm(probabilities: Sequence[float]) -> tuple[float, ...]:
    """S. Holm's adjustment for making many tests at once (A Simple Sequentially Rejective Multiple Test Procedure,
    Scandinavian Journal of Statistics 6, 1979), in the order given.  It holds however the tests depend on each
    other, as these do.

    >>> holm([0.25, 0.125, 0.5])
    (0.5, 0.375, 0.5)
    """
    adjusted = [0.0] * len(probabilities)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        largest = max(largest, (len(probabilities) - rank) * probabilities[index])
        adjusted[index] = min(largest, 1.0)
    return tuple(adjusted)


class _Strata:
    """The rounds, laid apart by the stakes they are played for; how many are played for which is the plan's choice,
    not a matter of chance.

    ``counts`` says how often each ending was counted, ``due`` in what proportion it is expected to be; both of shape
    (different stakes, 6, 5), as are the amounts of money.
    """

    def __init__(self, plan: Plan, tally: Tally, theory: Exact) -> None:
        counts = {stakes: np.zeros_like(theory) for stakes in plan.pattern.stakes}
        for stakes, counted in zip(plan.pattern.stakes, tally.outcomes, strict=True):
            counts[stakes] += counted.astype(object)
        self._paid = [payoffs(plan.paytable, stakes) for stakes in counts]
        self.counts: Exact = np.stack(list(counts.values()))
        self.rounds: Exact = self.counts.sum(axis=(1, 2))
        self.due: Exact = self.rounds[:, np.newaxis, np.newaxis] * theory

    def staked(self, spots: Collection[Spot] = EVERY_SPOT) -> Exact:
        return np.stack([paid.staked(spots) for paid in self._paid])

    def returned(self, spots: Collection[Spot] = EVERY_SPOT) -> Exact:
        return np.stack([paid.net(spots) + paid.staked(spots) for paid in self._paid])


def _figures(strata: _Strata, confidence: float) -> Iterator[Figure]:
    """Main game, and where it is staked the Pair Bonus and both together."""
    returned, staked = strata.returned(MAIN), strata.staked(MAIN)
    yield _figure("main_rtp", strata, returned, staked, confidence)
    yield _figure("main_house_edge", strata, staked - returned, strata.staked({Spot.ANTE}), confidence)
    pair_bonus = {Spot.PAIR_BONUS}
    if strata.staked(pair_bonus).any():
        yield _figure(
            "pair_bonus_rtp", strata, strata.returned(pair_bonus), strata.staked(pair_bonus), confidence
        )
        yield _figure("total_rtp", strata, strata.returned(), strata.staked(), confidence)


def _figure(name: str, strata: _Strata, over: Exact, under: Exact, confidence: float) -> Figure:
    """The sum of ``over`` divided by that of ``under``.

    The interval is the ratio estimator's (W. G. Cochran, Sampling Techniques, 3rd edition 1977, chapter 6): the
    ratio misses by about the sum of over - ratio x under, divided by the sum of under.  For the test that sum is
    taken at the expected ratio, where its mean is 0 and its variance known exactly.
    """
    sum_over, sum_under = total(strata.counts, over), total(strata.counts, under)
    simulated = Fraction(sum_over, sum_under)
    expected = Fraction(total(strata.due, over), total(strata.due, under))
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    half = quantile * _sd(strata.counts, strata.rounds, over, under, simulated) / sum_under
    sd = _sd(strata.due, strata.rounds, over, under, expected)
    # What cannot vary is not tested: only an ending that is impossible makes it another, and these are looked at.
    z = float(sum_over - expected * sum_under) / sd if sd else 0.0
    return Figure(name, simulated, float(simulated) - half, float(simulated) + half, expected, z, normal_p(z))


def _sd(weights: Exact, rounds: Exact, over: Exact, under: Exact, ratio: Fraction) -> float:
    """The standard deviation of the sum of over - ratio x under, when a round of each stratum ends in each way in
    proportion to its weight.
    """
    scaled = ratio.denominator * over - ratio.numerator * under
    variance = Fraction(0)
    for n, weight, amount in zip(rounds, weights, scaled, strict=True):
        whole = int(weight.sum())
        variance += n * Fraction(whole * total(weight, amount**2) - total(weight, amount) ** 2, whole**2)
    return sqrt(variance) / ratio.denominator


def _fit(name: str, names: Sequence[str], counted: Counts, due: Counts) -> Fit:
    """Counts against what is expected when each cell has its share in ``due``."""
    counts, shares = counted.tolist(), due.tolist()
    rounds, whole = sum(counts), sum(shares)
    cells = tuple(
        Cell(cell, count, Fraction(rounds * share, whole))
        for cell, count, share in zip(names, counts, shares, strict=True)
    )
    possible = sorted((cell.expected, cell.counted) for cell in cells if cell.expected)
    expected, count = possible.pop(0)
    while possible and min(expected, possible[0][0]) < EXPECTED_MIN:
        more_expected, more = possible.pop(0)
        expected, count = expected + more_expected, count + more
    possible.append((expected, count))
    chi_square = float(sum((count - expected) ** 2 / expected for expected, count in possible))
    return Fit(name, cells, chi_square, len(possible) - 1, chi_square_p(chi_square, len(possible) - 1))
