"""What one side did in one stretch of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import quantiles
from typing import Self


@dataclass(frozen=True, slots=True)
class Phase:
    """Operations of one kind: how long all of them took together, and how long each took, in seconds."""

    seconds: float
    latencies: tuple[float, ...]

    @classmethod
    def together(cls, phases: Iterable[Self]) -> Phase:
        """Several phases as one; the time between them does not count.

        >>> Phase.together([Phase(1.0, (0.1,)), Phase(2.0, (0.2, 0.3))])
        Phase(seconds=3.0, latencies=(0.1, 0.2, 0.3))
        """
        listed = list(phases)
        return cls(
            sum(phase.seconds for phase in listed),
            tuple(latency for phase in listed for latency in phase.latencies),
        )

    @property
    def a_second(self) -> float:
        """Operations a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, percent: int) -> float:
        """The latency, in seconds, that `percent` of the operations stayed below."""
        return quantiles(self.latencies, n=100)[percent - 1]
