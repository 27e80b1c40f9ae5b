"""Families of tests: what is run again, and what follows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import inf

import pytest

from casino_brag.laboratory.judging import FAILS_BELOW, UNUSUAL_BELOW, Conclusion, Test, judge


def family(*probabilities: float) -> list[Test]:
    return [Test(f"test {number}", "normal", 1.0, None, p) for number, p in enumerate(probabilities)]


def never(names: Collection[str]) -> list[Test]:
    raise AssertionError(f"nothing is run again, not {names}")


@pytest.mark.parametrize(
    ("smallest", "conclusion"),
    [
        (UNUSUAL_BELOW / 4, Conclusion.PASSES),
        (UNUSUAL_BELOW / 4.1, Conclusion.UNUSUAL),
        (FAILS_BELOW / 3.9, Conclusion.UNUSUAL),
    ],
)
def test_a_family_is_judged_by_its_smallest_p_times_its_size(smallest: float, conclusion: Conclusion) -> None:
    judgement = judge(family(0.5, smallest, 0.9, 0.3), never)
    assert judgement.conclusion is conclusion
    assert judgement.tests[1].adjusted == pytest.approx(4 * smallest)


@pytest.mark.parametrize(
    ("again", "conclusion"), [(0.4, Conclusion.UNUSUAL), (1e-5, Conclusion.UNUSUAL), (1e-9, Conclusion.FAILS)]
)
def test_what_is_far_out_is_run_again_and_fails_when_it_comes_again(
    again: float, conclusion: Conclusion
) -> None:
    tests = family(0.5, 1e-9, 0.9)
    asked: list[set[str]] = []

    def rerun(names: Collection[str]) -> list[Test]:
        asked.append(set(names))
        return [replace(tests[1], p=again)]

    judgement = judge(tests, rerun)
    assert asked == [{"test 1"}], "once, and that test alone"
    assert judgement.conclusion is conclusion
    assert [judged.again and judged.again.p for judged in judgement.tests] == [None, again, None]


def test_what_is_run_again_must_come_back() -> None:
    with pytest.raises(KeyError):
        judge(family(1e-12), lambda _: [])


def test_a_judgement_is_plain_data() -> None:
    impossible = Test("cards", "chi-square", inf, 51, 0.0)
    silent = Test("program's", "Kolmogorov-Smirnov", None, None, 0.25)
    document = judge([impossible, silent], lambda _: [impossible]).document()
    assert document["conclusion"] == "fails"
    assert document["tests"][0] == {
        "name": "cards",
        "law": "chi-square",
        "statistic": None,
        "degrees": 51,
        "p": 0.0,
        "p_adjusted": 0.0,
        "p_again": 0.0,
    }
    assert document["tests"][1]["p_again"] is None
