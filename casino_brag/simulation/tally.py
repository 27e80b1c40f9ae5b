"""What a simulation saw, as counts that add up exactly whoever counted them and in whatever order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Category
from casino_brag.game.settlement import Result

Counts = NDArray[np.int64]

CATEGORIES: Final = tuple(Category)
"""The second axis of :attr:`Tally.outcomes`, and the only one of :attr:`Tally.dealer_categories`."""

RESULTS: Final = tuple(Result)
"""The third axis of :attr:`Tally.outcomes`."""


@dataclass(frozen=True, eq=False, slots=True)
class Tally:
    """Counts of rounds; the arrays are read-only.

    ``outcomes`` has the shape (stake slots, 6, 5): the round's stakes, the player's category, the result.  These
    three settle a round, so every payout follows from them.  ``dealer_categories`` has the shape (6,) and counts
    every round, folded ones too.  ``discards`` is how many words were thrown away on the way.

    ValueError when a shape is another, a number is below 0 or the counts do not add up to ``rounds``.
    """

    rounds: int
    outcomes: Counts
    dealer_categories: Counts
    discards: int

    def __post_init__(self) -> None:
        if self.outcomes.shape[1:] != (len(CATEGORIES), len(RESULTS)) or not len(self.outcomes):
            raise ValueError(f"outcomes have the shape (stake slots, 6, 5), not {self.outcomes.shape}")
        if self.dealer_categories.shape != (len(CATEGORIES),):
            raise ValueError(f"dealer categories have the shape (6,), not {self.dealer_categories.shape}")
        if min(self.discards, self.outcomes.min(), self.dealer_categories.min()) < 0:
            raise ValueError("a count is 0 or above")
        if not self.rounds == self.outcomes.sum() == self.dealer_categories.sum():
            raise ValueError(
                f"{self.rounds} rounds were played, and {self.outcomes.sum()} results and "
                f"{self.dealer_categories.sum()} dealer's hands were counted"
            )
        self.outcomes.setflags(write=False)
        self.dealer_categories.setflags(write=False)

    @classmethod
    def empty(cls, stake_slots: int) -> Self:
        """No rounds: what a sum begins with.

        >>> Tally.empty(2).outcomes.shape
        (2, 6, 5)
        """
        outcomes = np.zeros((stake_slots, len(CATEGORIES), len(RESULTS)), dtype=np.int64)
        return cls(0, outcomes, np.zeros(len(CATEGORIES), dtype=np.int64), 0)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The tally that :meth:`document` wrote; KeyError or ValueError for anything else.

        >>> Tally.from_document(Tally.empty(1).document()) == Tally.empty(1)
        True
        """
        return cls(
            _integer(document["rounds"]),
            _integers(document["outcomes"]),
            _integers(document["dealer_categories"]),
            _integer(document["discards"]),
        )

    def document(self) -> dict[str, Any]:
        """The tally as plain data, ready for JSON.

        >>> sorted(Tally.empty(1).document())
        ['dealer_categories', 'discards', 'outcomes', 'rounds']
        """
        return {
            "rounds": self.rounds,
            "outcomes": self.outcomes.tolist(),
            "dealer_categories": self.dealer_categories.tolist(),
            "discards": self.discards,
        }

    def __add__(self, other: Tally) -> Tally:
        """Both together; ValueError when they have not as many stake slots."""
        if self.outcomes.shape != other.outcomes.shape:
            raise ValueError(
                f"tallies of {len(self.outcomes)} and of {len(other.outcomes)} stake slots do not add up"
            )
        return Tally(
            self.rounds + other.rounds,
            self.outcomes + other.outcomes,
            self.dealer_categories + other.dealer_categories,
            self.discards + other.discards,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash((self.rounds, self.outcomes.tobytes()))


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _integers(values: Any) -> Counts:
    counts = np.array(values)
    if counts.dtype != np.int64:
        raise ValueError("counts are whole numbers below 2^63")
    return counts
