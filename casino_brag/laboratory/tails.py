"""Probabilities of being so far out, for the laws that tests of randomness follow."""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import Final

_NEGLIGIBLE: Final = 1e-17
"""A term of a sum that is a smaller part of it than this changes no digit."""


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


def _binomial(count: int, trials: int, chance: float) -> float:
    ways = lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)
    return exp(ways + count * log(chance) + (trials - count) * log1p(-chance))


def _poisson(count: int, mean: float) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1))
