"""From counts to tests: the few forms that all tests of ours take."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casino_brag.laboratory.judging import Test
from casino_brag.odds.tails import EXPECTED_MIN, normal_p, pearson

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def fit(name: str, counted: Counts, chances: Floats) -> Test:
    """Pearson's chi-square of counts against the probability of each cell.

    A count of nothing is infinitely far out: what is counted here happens many times in the smallest sample.
    """
    return Test(name, "chi-square", *pearson(counted, chances))


def normal(name: str, total: float, mean: float, sd: float) -> Test:
    """A sum of many parts against its mean, in standard deviations."""
    z = (total - mean) / sd
    return Test(name, "normal", z, None, normal_p(z))


def runs(name: str, above: NDArray[np.bool_]) -> Iterator[Test]:
    """Runs in a sequence of even chances: how many there are, and how long they are."""
    changes = np.flatnonzero(above[1:] != above[:-1])
    possible = len(above) - 1
    yield normal(f"{name}: number", len(changes), possible / 2, sqrt(possible) / 2)
    yield fit(f"{name}: lengths", *geometric(np.diff(changes), 0.5))


def geometric(waits: NDArray[np.integer[Any]], chance: float) -> tuple[Counts, Floats]:
    """Waits of 1, 2, … trials for something of this chance, with their probabilities; long ones are one cell."""
    last = 2 + int(np.ceil(np.log(EXPECTED_MIN / max(len(waits), EXPECTED_MIN + 1)) / np.log1p(-chance)))
    longer: Floats = np.power(1 - chance, np.arange(last, dtype=np.float64))
    return np.bincount(np.minimum(waits, last) - 1, minlength=last), np.append(
        longer[:-1] * chance, longer[-1]
    )
