"""How far a run has come, as it is kept to go on after an interruption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casino_brag.errors import SetUpError
from casino_brag.simulation.plan import Plan
from casino_brag.simulation.tally import Tally


class Progress:
    """What has been played of a plan: which chunks, and their tallies as one.

    A chunk is added once.  Two runs of one plan that have come to its end have equal tallies.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tally = Tally.empty(len(plan.pattern.stakes))
        self._done: NDArray[np.bool_] = np.zeros(plan.chunks, dtype=np.bool_)

    def remaining(self) -> list[int]:
        """The chunks not yet played, ascending."""
        chunks: list[int] = np.flatnonzero(~self._done).tolist()
        return chunks

    def add(self, chunk: int, tally: Tally) -> None:
        """Adds a chunk not added before; `SetUpError` when this cannot be its tally."""
        assert not self._done[chunk], f"chunk {chunk} is added once"
        try:
            _check_rounds(self.plan, [(chunk, chunk)], tally)
        except ValueError as wrong:
            raise SetUpError(f"A worker gave another tally than chunk {chunk}'s: {wrong}.") from wrong
        self.tally += tally
        self._done[chunk] = True

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The progress that :meth:`document` wrote; ValueError for anything else."""
        try:
            progress = cls(Plan.from_document(document["plan"]))
            done = [(int(first), int(last)) for first, last in document["done"]]
            for first, last in done:
                if not 0 <= first <= last < progress.plan.chunks or progress._done[first : last + 1].any():
                    raise ValueError(f"chunks {first} to {last} are not of this plan, or are named twice")
                progress._done[first : last + 1] = True
            progress.tally = Tally.from_document(document["tally"])
        except (KeyError, TypeError) as unreadable:
            raise ValueError(f"no state of a simulation: {unreadable!r}") from unreadable
        _check_rounds(progress.plan, done, progress.tally)
        return progress

    def document(self) -> dict[str, Any]:
        """The progress as plain data, ready for JSON: ``done`` holds the first and last chunk of each stretch."""
        edges = np.diff(self._done.astype(np.int8), prepend=0, append=0)
        firsts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        return {
            "plan": self.plan.document(),
            "done": np.column_stack((firsts, ends - 1)).tolist(),
            "tally": self.tally.document(),
        }


def differences(one: Plan, other: Plan) -> list[str]:
    """In which parts two plans differ, by the keys of their documents.

    >>> from casino_brag.game.paytable import Paytable
    >>> from casino_brag.odds.strategies import MAX_EXPECTATION, MAX_RTP
    >>> from casino_brag.simulation.plan import StakePattern
    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> one = Plan(paytable, MAX_EXPECTATION, StakePattern.parse("100"), 10**6, bytes(48))
    >>> differences(one, Plan(paytable, MAX_RTP, StakePattern.parse("100"), 10**9, bytes(48)))
    ['strategy', 'rounds']
    """
    ours, theirs = one.document(), other.document()
    return [key for key in ours if ours[key] != theirs[key]]


def _check_rounds(plan: Plan, done: list[tuple[int, int]], tally: Tally) -> None:
    """ValueError unless a tally has as many rounds at each place of the pattern as these chunks have."""
    slots = len(plan.pattern.stakes)
    expected = sum(
        (plan.rounds_by_slot(first, last) for first, last in done), np.zeros(slots, dtype=np.int64)
    )
    counted = tally.outcomes.sum(axis=(1, 2))
    if not np.array_equal(counted, expected):
        raise ValueError(
            f"{counted.sum()} rounds were counted over {len(counted)} stakes where "
            f"{expected.sum()} are played over {slots}"
        )
