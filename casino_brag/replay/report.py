"""What a replay has found: rounds by kind, money, and what differs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, Self

from casino_brag.db.clock import rfc3339
from casino_brag.replay.records import Difference, Row

NAMED_MAX: Final = 100
"""So many differences are named; all are counted."""


class Kind(StrEnum):
    """Rounds by how they stand; the last two say what was missing from some of the others."""

    SETTLED = "settled"
    """Decided, and not taken back."""
    VOIDED_SETTLED = "voided_after_settlement"
    """Decided, and voided afterwards."""
    VOIDED_OPEN = "voided_before_decision"
    """Voided before a decision."""
    OPEN = "open"
    """Not over: nothing may say that it is."""
    WITHOUT_SEED = "without_seed"
    """Over, and from before there were commitments: settled anew from the cards on record."""
    SEED_LOST = "seed_lost"
    """Voided because the key that sealed it is gone: its deal is not known."""


@dataclass(slots=True)
class Money:
    """What rounds in one currency and mode took and gave, in minor units, as it is recorded."""

    staked_minor: int = 0
    paid_minor: int = 0
    refunded_minor: int = 0
    compensated_minor: int = 0

    def add(self, other: Money) -> None:
        """Adds another's."""
        self.staked_minor += other.staked_minor
        self.paid_minor += other.paid_minor
        self.refunded_minor += other.refunded_minor
        self.compensated_minor += other.compensated_minor


@dataclass(slots=True)
class Tally:
    """Rounds counted.  `named` are the first differences, of which there are at most `NAMED_MAX`."""

    rounds: Counter[str] = field(default_factory=Counter)
    money: dict[tuple[str, str], Money] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    named: list[Difference] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[Row], found: Iterable[Difference]) -> Self:
        """The tally of some rounds, and of what differs in them."""
        tally = cls()
        tally.count(rows, found)
        return tally

    def count(self, rows: Sequence[Row], found: Iterable[Difference]) -> None:
        """Counts further rounds, and what differs in them."""
        self.rounds.update(kind for row in rows for kind in _kinds(row))
        for row in rows:
            key = (row.mode, row.currency)
            if key not in self.money:
                self.money[key] = Money()
            money = self.money[key]
            money.staked_minor += row.opened_minor + (row.kept.play_minor or 0)
            money.paid_minor += row.kept.total_payout_minor or 0
            money.refunded_minor += row.kept.refund_minor or 0
            money.compensated_minor += row.kept.compensation_minor or 0
        for difference in found:
            self.counted[difference.what] += 1
            if len(self.named) < NAMED_MAX:
                self.named.append(difference)

    def add(self, other: Tally) -> None:
        """Adds the counts of other rounds; whose differences come first is for the caller to say."""
        self.rounds.update(other.rounds)
        self.counted.update(other.counted)
        for key, money in other.money.items():
            self.money.setdefault(key, Money()).add(money)

    def document(self) -> dict[str, Any]:
        """The tally as plain data, each part in an order of its own, whatever order it was counted in."""
        kinds = {kind.value: self.rounds[kind.value] for kind in Kind}
        return {
            "rounds": kinds,
            "money": [
                {"mode": mode, "currency": currency, **asdict(money)}
                for (mode, currency), money in sorted(self.money.items())
            ],
            "differences": {
                "counted": dict(sorted(self.counted.items())),
                "named": [d._asdict() for d in self.named],
            },
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The tally that :meth:`document` wrote; KeyError or TypeError for anything else."""
        money = {}
        for part in document["money"]:
            amounts = {name: int(value) for name, value in part.items() if name not in ("mode", "currency")}
            money[part["mode"], part["currency"]] = Money(**amounts)
        differences = document["differences"]
        named = [Difference(**named) for named in differences["named"]]
        return cls(Counter(document["rounds"]), money, Counter(differences["counted"]), named)


def _kinds(row: Row) -> list[str]:
    if row.state == "awaiting_decision":
        return [Kind.OPEN]
    if row.state == "settled":
        kinds = [Kind.SETTLED.value]
    else:
        kinds = [Kind.VOIDED_OPEN if row.decision is None else Kind.VOIDED_SETTLED]
    if row.from_before_commitments:
        kinds.append(Kind.WITHOUT_SEED)
    elif row.seed is None and row.seed_lost:
        kinds.append(Kind.SEED_LOST)
    return kinds


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay of the rounds opened from `since` until before `until` has found."""

    since: datetime
    until: datetime
    tally: Tally

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        kinds = (Kind.SETTLED, Kind.VOIDED_SETTLED, Kind.VOIDED_OPEN, Kind.OPEN)
        return sum(self.tally.rounds[kind] for kind in kinds)

    @property
    def differing(self) -> int:
        """How many differences there are, named or not."""
        return self.tally.counted.total()

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "from": rfc3339(self.since),
            "to": rfc3339(self.until),
            "agrees": not self.differing,
            **self.tally.document(),
        }

    def text(self) -> str:
        """The report's JSON on one line, which is what `digest` is of."""
        return json.dumps(self.document(), ensure_ascii=False)

    def digest(self) -> str:
        """SHA-256, in hex, of `text`."""
        return sha256(self.text().encode()).hexdigest()
