"""What the checks of a wallet found, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

from casino_brag.conformance.bench import Subject


class Outcome(StrEnum):
    """What came of a check."""

    HELD = "held"
    """The wallet does what the check says."""
    FAILED = "failed"
    """It does not."""
    NOT_TRIED = "not tried"
    """The check does not apply to this wallet or this player."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A check and what came of it.

    `detail` is what was ``expected`` and ``seen`` of a check that failed, and ``because`` of one that was not tried.
    """

    group: str
    name: str
    says: str
    why: str
    outcome: Outcome
    detail: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        """The finding as text; why the check matters is told where it failed."""
        shown = self.outcome.upper() if self.outcome is Outcome.FAILED else self.outcome.value
        yield f"  {shown:<9}  {self.name}: {self.says}"
        told = {**self.detail, "why": self.why} if self.outcome is Outcome.FAILED else self.detail
        for label, text in told.items():
            yield f"             {label:<8}  {text}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found on one wallet.

    Balances are those of the player in the first currency, in minor units; `balance_left_minor` is None when the
    wallet did not tell it at the end.
    """

    subject: Subject
    findings: tuple[Finding, ...]
    slowest_seconds: float
    calls: int
    balance_found_minor: int
    balance_left_minor: int | None

    def count(self, outcome: Outcome) -> int:
        """How many checks ended so."""
        return sum(finding.outcome is outcome for finding in self.findings)

    def lines(self) -> Iterator[str]:
        """The report as text, the summary last."""
        subject = self.subject
        yield f"wallet    {subject.url}"
        yield f"operator  {subject.operator}"
        yield f"player    {subject.player}, {self.balance_found_minor} minor units of {subject.currencies[0]}"
        for group, findings in groupby(self.findings, lambda finding: finding.group):
            yield ""
            yield group
            for finding in findings:
                yield from finding.lines()
        yield ""
        yield f"{self.calls} calls, the slowest took {self.slowest_seconds:.3f} s."
        yield self._balance_line()
        counts = ", ".join(f"{self.count(outcome)} {outcome.value}" for outcome in Outcome)
        yield f"{len(self.findings)} checks: {counts}."

    def _balance_line(self) -> str:
        found, left = self.balance_found_minor, self.balance_left_minor
        if left is None:
            return f"The player held {found} minor units; the wallet does not tell what it holds now."
        if left != found:
            return f"The player held {found} minor units and holds {left} now."
        return f"The player holds {found} minor units, as before."

    def document(self) -> dict[str, Any]:
        """The report as plain data, ready for JSON; it holds no secret."""
        return {
            "wallet": self.subject.url,
            "operator": self.subject.operator,
            "player": self.subject.player,
            "currency": self.subject.currencies[0],
            "checks": [
                {
                    "group": finding.group,
                    "name": finding.name,
                    "says": finding.says,
                    "why": finding.why,
                    "outcome": finding.outcome.value,
                    **finding.detail,
                }
                for finding in self.findings
            ],
            "counts": {outcome.value: self.count(outcome) for outcome in Outcome},
            "calls": self.calls,
            "slowest_seconds": round(self.slowest_seconds, 3),
            "balance_found_minor": self.balance_found_minor,
            "balance_left_minor": self.balance_left_minor,
        }
