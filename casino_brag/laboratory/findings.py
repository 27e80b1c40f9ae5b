"""What a folder of evidence tells, before it is text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from casino_brag.laboratory.battery import Battery
from casino_brag.laboratory.facts import build_facts
from casino_brag.laboratory.health import Health
from casino_brag.laboratory.judging import Judgement
from casino_brag.rng.module import MODULE_DIGEST
from casino_brag.simulation.mapper import Cards


@dataclass(frozen=True, slots=True)
class Sample:
    """A file of collected output: its name in the folder, the command that collects such a one, and its digest."""

    name: str
    command: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the folder tells."""

    made_at: datetime
    health: Health
    statistics: Judgement
    battery: Battery | None
    samples: tuple[Sample, ...]
    cards: Cards
    output: bytes

    def document(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        return {
            "made_at": self.made_at.isoformat(),
            "module_digest": MODULE_DIGEST,
            "build": build_facts(),
            "health": self.health.document(),
            "statistics": self.statistics.document(),
            "battery": self.battery.document() if self.battery else None,
            "samples": {
                sample.name: {"command": sample.command, "sha256": sample.sha256} for sample in self.samples
            },
        }

    @property
    def families(self) -> dict[str, Judgement]:
        """The families of tests by name: our own statistics, and the battery if it was run."""
        own = {"statistics": self.statistics}
        return own | {"external batteries": self.battery.judgement} if self.battery else own
