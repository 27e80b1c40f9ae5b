"""Probabilities of being so far out, for the laws that counts and sums follow, and the usual test of counts."""

from __future__ import annotations

from math import erfc, exp, inf, lgamma, log, log1p, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

EXPECTED_MIN: Final = 5
"""Cells in which fewer are expected are counted as one: below that the chi-square law does not fit the statistic
(W. G. Cochran, Some Methods for Strengthening the Common chi-square Tests, Biometrics 10, 1954)."""

_NEGLIGIBLE: Final = 1e-17
"""A term of a sum that is a smaller part of it than this changes no digit."""


def chi_square_p(statistic: float, degrees: int) -> float:
    """The probability that chi-square with so many degrees of freedom is at least so large.

    The finite sum for whole degrees (M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.4.4 and
    26.4.5), in logarithms, so that thousands of degrees overflow nothing.

    >>> f"{chi_square_p(18.307038, 10):.6f} {chi_square_p(2772.0, 2651):.4f}"
    '0.050000 0.0499'
    """
    assert statistic >= 0
    assert degrees >= 0
    half, odd = statistic / 2, degrees % 2 / 2
    if degrees == 0 or half == 0:
        return 1.0
    if half == inf:
        return 0.0
    terms = (exp((k + odd) * log(half) - half - lgamma(k + odd + 1)) for k in range(degrees // 2))
    return min(1.0, (erfc(sqrt(half)) if odd else 0.0) + sum(terms))


def normal_p(z: float) -> float:
    """The probability that a standard normal number is at least so far from 0.

    >>> f"{normal_p(1.959964):.6f}"
    '0.050000'
    """
    return erfc(abs(z) / sqrt(2))


def binomial_p(count: int, trials: int, chance: float) -> float:
    """The probability that something happens at least so often in so many trials; 0 < chance < 1.

    >>> f"{binomial_p(2, 3, 0.5):.6f} {binomial_p(30, 8_000, 0.0008):.1e}"
    '0.500000 1.2e-11'
    """
    assert 0 <= count <= trials
    if count <= trials * chance:
        return min(1.0, 1.0 - sum(_binomial(k, trials, chance) for k in range(count)))
    total = 0.0
    for k in range(count, trials + 1):
        term = _binomial(k, trials, chance)
        total += term
        if term <= total * _NEGLIGIBLE:
            break
    return total


def poisson_p(count: int, mean: float) -> float:
    """The probability of a count at least so far from its mean, on either side: twice the nearer tail.

    >>> f"{poisson_p(34, 34.1):.2f} {poisson_p(150, 34.1):.0e} {poisson_p(0, 34.1):.0e}"
    '1.00 6e-48 3e-15'
    """
    assert mean > 0
    if count <= mean:
        tail = sum(_poisson(k, mean) for k in range(count + 1))
    else:
        tail, k = 0.0, count
        while (term := _poisson(k, mean)) > tail * _NEGLIGIBLE:
            tail, k = tail + term, k + 1
    return min(1.0, 2 * tail)


def pearson(counted: NDArray[np.integer[Any]], chances: NDArray[np.float64]) -> tuple[float, int, float]:
    """Pearson's chi-square of counts against the probability of each cell: the statistic, its degrees and its p.

    Cells in which fewer than ``EXPECTED_MIN`` are expected are counted as one.  A count where none can be is
    infinitely far out, and so is a count of nothing.

    >>> pearson(np.array([40, 60]), np.array([0.5, 0.5]))[:2]
    (4.0, 1)
    """
    expected = chances * counted.sum()
    if counted[chances == 0].any() or not counted.any():
        return inf, len(counted) - 1, 0.0
    order = np.argsort(expected, kind="stable")
    counted, expected = counted[order], expected[order]
    small = int(np.searchsorted(expected, EXPECTED_MIN))
    while small and small < len(expected) and expected[:small].sum() < EXPECTED_MIN:
        small += 1
    if small:
        counted = np.append(counted[small:], counted[:small].sum())
        expected = np.append(expected[small:], expected[:small].sum())
    statistic = float(((counted - expected) ** 2 / expected).sum())
    degrees = len(counted) - 1
    return statistic, degrees, chi_square_p(statistic, degrees)


def _binomial(count: int, trials: int, chance: float) -> float:
    ways = lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)
    return exp(ways + count * log(chance) + (trials - count) * log1p(-chance))


def _poisson(count: int, mean: float) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1))
