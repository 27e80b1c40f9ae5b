"""Probabilities of being far out, against tables and against each other."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.odds.tails import binomial_p, chi_square_p, poisson_p


@pytest.mark.parametrize(
    ("degrees", "one_in_twenty", "one_in_a_thousand"),
    [
        (1, 3.841459, 10.827566),
        (2, 5.991465, 13.815511),
        (5, 11.070498, 20.515006),
        (100, 124.342113, 149.449253),
    ],
)
def test_chi_square_is_that_of_the_tables(
    degrees: int, one_in_twenty: float, one_in_a_thousand: float
) -> None:
    assert chi_square_p(one_in_twenty, degrees) == pytest.approx(0.05, rel=1e-5)
    assert chi_square_p(one_in_a_thousand, degrees) == pytest.approx(0.001, rel=1e-5)


@pytest.mark.parametrize("degrees", [255, 2651, 65535])
def test_chi_square_of_many_degrees_is_about_normal(degrees: int) -> None:
    """By Wilson and Hilferty's cube root, which is good to a few parts in a hundred here."""
    for z, upper in ((-3.0, 0.998650), (0.0, 0.5), (2.0, 0.022750), (5.0, 2.8665e-7)):
        at = degrees * (1 - 2 / (9 * degrees) + z * (2 / (9 * degrees)) ** 0.5) ** 3
        assert chi_square_p(at, degrees) == pytest.approx(upper, rel=0.05)


def test_chi_square_has_its_ends() -> None:
    assert chi_square_p(0, 10) == 1
    assert chi_square_p(5.0, 0) == 1
    assert chi_square_p(inf, 10) == 0
    assert chi_square_p(1e6, 255) == 0


@given(trials=st.integers(1, 60), chance=st.floats(0.01, 0.99), data=st.data())
def test_at_least_one_more_is_likelier_by_the_chance_of_exactly_so_many(
    trials: int, chance: float, data: st.DataObject
) -> None:
    from math import comb

    count = data.draw(st.integers(0, trials - 1))
    exactly = comb(trials, count) * chance**count * (1 - chance) ** (trials - count)
    difference = binomial_p(count, trials, chance) - binomial_p(count + 1, trials, chance)
    assert difference == pytest.approx(exactly, abs=1e-10)


def test_a_binomial_tail_is_small_where_it_should_be() -> None:
    assert binomial_p(0, 10, 0.5) == 1
    assert binomial_p(10, 10, 0.5) == pytest.approx(2**-10)
    assert binomial_p(100, 100_000, 1e-4) < 1e-60


def test_a_poisson_count_is_judged_on_both_sides() -> None:
    # Of mean 3: P(0) = 0.049787, P(X >= 10) = 0.001102.
    assert poisson_p(0, 3) == pytest.approx(2 * 0.049787, rel=1e-4)
    assert poisson_p(10, 3) == pytest.approx(2 * 0.001102, rel=1e-3)
    assert poisson_p(3, 3) == 1
