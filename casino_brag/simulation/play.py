"""Rounds played and counted, from words to a tally.

Two kernels do the counting and agree to the last round: NumPy's is always there, numba's is
several times as fast and comes with the extra ``sim``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from itertools import permutations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from casino_brag.errors import SetUpError
from casino_brag.game.hands import Ranking
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import qualifying_class
from casino_brag.odds.outcomes import hand_cards, outcomes
from casino_brag.odds.strategies import Decisions
from casino_brag.simulation.counting import CLASS_SHIFT, Count, count
from casino_brag.simulation.mapper import Words
from casino_brag.simulation.tally import CATEGORIES, RESULTS, Tally


class Kernel(StrEnum):
    """What plays the rounds."""

    NUMBA = "numba"
    """A loop compiled for this machine."""

    NUMPY = "numpy"
    """Array operations."""


def default_kernel() -> Kernel:
    """The faster kernel of those installed; numba itself is not imported yet."""
    return Kernel.NUMPY if find_spec("numba") is None else Kernel.NUMBA


@dataclass(frozen=True, eq=False, slots=True)
class Tables:
    """All that the kernels know of the rules: a hand's code by its three cards, and the dealer's threshold.

    ``hands`` is int16 of shape (52, 52, 52), read-only, for the three cards in any order.
    """

    hands: NDArray[np.int16]
    qualifying_class: int

    @classmethod
    def of(cls, ranking: Ranking, qualifier: Qualifier, plays: Decisions) -> Self:
        """The tables of these rules for a player who plays the kinds of hand that ``plays`` says, and folds others."""
        counted = outcomes(ranking, qualifier)
        codes = (counted.rank_class << CLASS_SHIFT | counted.category << 1 | plays)[counted.kind]
        hands = np.zeros((52, 52, 52), dtype=np.int16)
        for cards in permutations(hand_cards().T):
            hands[cards] = codes
        hands.setflags(write=False)
        return cls(hands, qualifying_class(ranking, qualifier))


def play_words(
    tables: Tables, blocks: Iterable[Words], rounds: int, stake_slots: int, first_round: int, kernel: Kernel
) -> Tally:
    """Plays so many rounds with the words of these blocks, of which there have to be enough.

    ``first_round`` is the number of the first round within the whole simulation: round i is played for the stakes
    i % ``stake_slots``.
    """
    play = count if kernel is Kernel.NUMPY else _compiled()
    endings = np.zeros((stake_slots, len(CATEGORIES), len(RESULTS)), dtype=np.int64)
    dealer_categories = np.zeros(len(CATEGORIES), dtype=np.int64)
    played = discards = 0
    for block in blocks:
        first_slot = (first_round + played) % stake_slots
        more, thrown_away = play(
            tables.hands,
            tables.qualifying_class,
            block,
            rounds - played,
            first_slot,
            endings,
            dealer_categories,
        )
        played, discards = played + more, discards + thrown_away
        if played == rounds:
            break
    return Tally(played, endings, dealer_categories, discards)


def _compiled() -> Count:
    # numba takes a second to import, and may not be there.
    try:
        from casino_brag.simulation.compiled import count  # noqa: PLC0415
    except ImportError as unusable:
        raise SetUpError(
            f"numba is installed and cannot be used: mend or remove it ({unusable})."
        ) from unusable

    return count
