"""What a test of randomness says, and what a family of them says together.

A sound generator gives a p-value below 0.01 once in a hundred tests.  So the p-values of a family are adjusted for
their number (Holm), and the rule for what is left is laid down beforehand: whatever comes out below `FAILS_BELOW` is
run once more on fresh output, and fails when it does so again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Any, Final

from casino_brag.simulation.verdict import holm

UNUSUAL_BELOW: Final = 0.01
"""An adjusted p below this is unusual: the family as a whole is tested at 99 %."""

FAILS_BELOW: Final = 1e-6
"""An adjusted p below this is run again, and condemns when it comes again."""


class Conclusion(StrEnum):
    """What a family of tests says of a generator."""

    PASSES = "passes"
    """Every test is within what chance does."""

    UNUSUAL = "unusual"
    """A test is unusual, and no more: chance does that once in a hundred families.  Run the family again."""

    FAILS = "fails"
    """A test was far beyond chance, and again on fresh output."""


@dataclass(frozen=True, slots=True)
class Test:
    """One test: ``p`` is the probability of so large a ``statistic`` when all is well.

    ``law`` names what the statistic follows then; ``degrees`` its degrees of freedom, where it has any.  A program
    that tells its p-value alone has no ``statistic``.
    """

    __test__ = False  # for pytest, which takes classes of this name for its own

    name: str
    law: str
    statistic: float | None
    degrees: int | None
    p: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A test in its family: Holm's ``adjusted`` p, and what came of running it again, if it was."""

    test: Test
    adjusted: float
    again: Test | None = None

    def document(self) -> dict[str, Any]:
        """Plain data, ready for JSON; an infinite statistic, of what cannot happen, is null."""
        test = self.test
        return {
            "name": test.name,
            "law": test.law,
            "statistic": None if test.statistic in (None, inf) else test.statistic,
            "degrees": test.degrees,
            "p": test.p,
            "p_adjusted": self.adjusted,
            "p_again": self.again.p if self.again else None,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """A family of tests and what it says."""

    tests: tuple[Judged, ...]

    @property
    def conclusion(self) -> Conclusion:
        """What follows from the tests, those run again among them."""
        again = [judged.again.p for judged in self.tests if judged.again]
        if any(adjusted < FAILS_BELOW for adjusted in holm(again)):
            return Conclusion.FAILS
        unusual = any(judged.adjusted < UNUSUAL_BELOW for judged in self.tests)
        return Conclusion.UNUSUAL if unusual else Conclusion.PASSES

    def document(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "tests": [judged.document() for judged in self.tests],
            "conclusion": self.conclusion.value,
        }


def judge(tests: Sequence[Test], rerun: Callable[[Collection[str]], Sequence[Test]]) -> Judgement:
    """Adjusts a family, and runs again what is below `FAILS_BELOW`: ``rerun`` gives the tests of these names, on
    fresh output.

    >>> low = Test("runs", "normal", 6.0, None, 2e-9)
    >>> judge([low], lambda names: [low]).conclusion, judge([low], lambda names: [replace(low, p=0.3)]).conclusion
    (<Conclusion.FAILS: 'fails'>, <Conclusion.UNUSUAL: 'unusual'>)
    """
    judged = [
        Judged(test, adjusted) for test, adjusted in zip(tests, holm([test.p for test in tests]), strict=True)
    ]
    suspects = {each.test.name for each in judged if each.adjusted < FAILS_BELOW}
    if not suspects:
        return Judgement(tuple(judged))
    again = {test.name: test for test in rerun(suspects)}
    return Judgement(
        tuple(
            replace(each, again=again[each.test.name]) if each.test.name in suspects else each
            for each in judged
        )
    )
