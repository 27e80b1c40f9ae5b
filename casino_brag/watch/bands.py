"""Return to player beside what it should be, with the tolerance that chance allows at any number of rounds.

With a stake b_i in round i and a standard deviation s of one round at a stake of 1, a return over all stakes spreads by
s x sqrt(sum of b_i squared) / sum of b_i, which at equal stakes is s / sqrt(n): a large stake counts for much, so it
takes more rounds to know as much.  The tolerance is z times that, as in the Gambling Commission's guide to monitoring
live return to player.

Two figures are looked at.  The *raw* one is compared with the theory of a strategy, and misses it when players play
otherwise.  The *conditional* one is compared with what the rules expect of the hands that were dealt and the decisions
that were taken, so that it misses only when something is wrong.

These tolerances are for one look.  What may be looked at every day is in :mod:`casino_brag.watch.evidence`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from functools import lru_cache
from math import inf, isqrt, sqrt
from operator import add
from statistics import NormalDist
from typing import Final, Self

import numpy as np

from casino_brag.odds.outcomes import Integers
from casino_brag.watch.expectation import SCALE

BANDS: Final = 12
"""Stake bands; the last one holds every Ante from 10^5.5 times the least one up."""

ROUNDS_MIN: Final = 30
"""Fewer rounds than this are no ground for a tolerance, however even their payouts are."""

Z: Final = {confidence: NormalDist().inv_cdf((1 + confidence) / 2) for confidence in (0.95, 0.99)}
"""Standard deviations to either side of the mean between which a normal number lies so often."""


@lru_cache(maxsize=256)
def band_floors(least_minor: int) -> tuple[int, ...]:
    """The least Ante of each band, when the least of all is this: each about 3.16 times the one before.

    >>> band_floors(5)[:5]
    (5, 16, 50, 159, 500)
    """
    return tuple(isqrt(10**band * least_minor**2 - 1) + 1 for band in range(BANDS))


def stake_band(ante_minor: int, least_minor: int) -> int:
    """The stake band of an Ante, 0..11: half powers of ten of the least Ante its currency has in the paytable.

    So a band means the same in every currency, and is known before the deal.

    >>> [stake_band(ante, 5) for ante in (5, 15, 16, 49, 50, 300_000, 10**12)]
    [0, 0, 1, 1, 2, 9, 11]
    """
    return max(0, bisect_right(band_floors(least_minor), ante_minor) - 1)


def stake_bands(ante_minor: Integers, least_minor: int) -> Integers:
    """The same for many Antes of one currency.

    >>> stake_bands(np.array([5, 16, 300_000]), 5).tolist()
    [0, 1, 9]
    """
    bands = np.searchsorted(np.array(band_floors(least_minor)), ante_minor, side="right") - 1
    return np.maximum(bands, 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sums:
    """What was played for one kind of wager in one currency; sums add up in any order.

    ``base_minor`` are the Antes, or the Pair Bonus stakes, and ``base_squares`` their squares; ``staked_minor`` has the
    Play as well.  ``expected`` (x ``SCALE``) and ``variance`` (x ``SCALE`` squared) are what the rules say of
    ``returned_minor`` given hands and decisions.

    >>> Sums() + Sums(1, 100, 10_000, 200, 400, 1_844_242, 10**15) == Sums(1, 100, 10_000, 200, 400, 1_844_242, 10**15)
    True
    """

    rounds: int = 0
    base_minor: int = 0
    base_squares: int = 0
    staked_minor: int = 0
    returned_minor: int = 0
    expected: int = 0
    variance: int = 0

    def __add__(self, other: Sums) -> Self:
        return type(self)(*map(add, astuple(self), astuple(other)))

    @property
    def equal_rounds(self) -> float:
        """How many rounds at equal stakes tell as much as these: (sum of b) squared over the sum of b squared."""
        return self.base_minor**2 / self.base_squares


SUMMED: Final = tuple(field.name for field in fields(Sums))
"""The sums by name, in their order."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A return on all money staked beside what it should be.

    ``sd`` is the standard deviation that chance gives ``actual``, ``z`` by how many of them it misses ``expected``.
    ``enough`` says whether there are rounds enough for these two to mean what they say; without, no conclusion may be
    drawn from them.
    """

    actual: Fraction
    expected: Fraction
    sd: float
    enough: bool

    @property
    def z(self) -> float:
        """0 when nothing is missed, infinite when what cannot vary does."""
        missed = float(self.actual - self.expected)
        return missed / self.sd if self.sd else missed and missed * inf

    def tolerance(self, confidence: float) -> float:
        """By how much ``actual`` may miss ``expected`` at a confidence of 0.95 or 0.99, to either side."""
        return Z[confidence] * self.sd


def raw(sums: Sums, rtp: Fraction, sd: float, skewness: float) -> Comparison:
    """The return beside a theory: ``rtp`` on all money staked, ``sd`` that of the return of one round, and the
    ``skewness`` of what one round nets.  `ZeroDivisionError` when nothing was played: that is no return.

    For the main game ``sd`` is :func:`casino_brag.odds.returns.rtp_sd`, which allows for the Play's being staked by
    choice; for the Pair Bonus it is that of its net.

    >>> found = raw(Sums(100, 10_000, 1_000_000, 15_000, 14_000), Fraction(98, 100), 0.98, 0.4)
    >>> f"{found.tolerance(0.95):.4f} {found.z:.3f}"
    '0.1921 -0.476'
    """
    spread = sd * sqrt(sums.base_squares) / sums.base_minor
    actual = Fraction(sums.returned_minor, sums.staked_minor)
    return Comparison(actual, rtp, spread, _enough(sums, skewness))


def conditional(sums: Sums, skewness: float) -> Comparison:
    """The return beside what the rules expect of the hands dealt and the decisions taken; `ZeroDivisionError` when
    nothing was played."""
    actual, expected = (
        Fraction(part, sums.staked_minor) for part in (sums.returned_minor, Fraction(sums.expected, SCALE))
    )
    return Comparison(
        actual, expected, sqrt(sums.variance) / SCALE / sums.staked_minor, _enough(sums, skewness)
    )


def _enough(sums: Sums, skewness: float) -> bool:
    """Whether a sum is nearly normal: from 25 times the squared skewness of one round (W. G. Cochran, Sampling
    Techniques, 3rd edition 1977, section 2.15), counted in rounds at equal stakes."""
    return sums.equal_rounds >= max(ROUNDS_MIN, 25 * skewness**2)
