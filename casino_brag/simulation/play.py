"""Rounds of one chunk, played and counted.

A chunk has a generator of its own (:func:`casino_brag.simulation.mapper.words`), so its tally depends on its number
and the seed only.  Two kernels do the counting and agree to the last round: NumPy's is always there, numba's is
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
from casino_brag.game.hands import Ranking, places
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import qualifying_class
from casino_brag.odds.outcomes import HANDS, hand_cards, rank_classes
from casino_brag.simulation.counting import CLASS_SHIFT, Count, count
from casino_brag.simulation.mapper import Words, words
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
    def of(cls, ranking: Ranking, qualifier: Qualifier, plays: NDArray[np.bool_]) -> Self:
        """The tables of these rules for a player who plays where ``plays`` says so, and folds elsewhere.

        ``plays`` has one entry a hand, in the order of :func:`casino_brag.game.hands.all_hands`; ValueError when
        it has not 22,100 of them.
        """
        if plays.shape != (HANDS,):
            raise ValueError(f"a strategy decides {HANDS} hands, not {plays.shape}")
        classes = rank_classes(ranking)
        category_of_class = np.array([CATEGORIES.index(place.category) for place in places(ranking).values()])
        codes = classes << CLASS_SHIFT | category_of_class[classes - 1] << 1 | plays
        hands = np.zeros((52, 52, 52), dtype=np.int16)
        for cards in permutations(hand_cards().T):
            hands[cards] = codes
        hands.setflags(write=False)
        return cls(hands, qualifying_class(ranking, qualifier))


def play_chunk(
    tables: Tables,
    seed: bytes,
    chunk: int,
    rounds: int,
    *,
    stake_slots: int = 1,
    first_round: int = 0,
    kernel: Kernel | None = None,
) -> Tally:
    """Plays the first ``rounds`` rounds of this chunk.

    ``first_round`` is the number, over all chunks, of the chunk's first round: round i is played for the stakes
    i % ``stake_slots``.  ``seed`` is 48 bytes.  ``kernel`` None takes :func:`default_kernel`.
    """
    return play_words(
        tables, words(seed, chunk), rounds, stake_slots, first_round, kernel or default_kernel()
    )


def play_words(
    tables: Tables, blocks: Iterable[Words], rounds: int, stake_slots: int, first_round: int, kernel: Kernel
) -> Tally:
    """The same with words from anywhere; there have to be enough of them."""
    play = count if kernel is Kernel.NUMPY else _compiled()
    outcomes = np.zeros((stake_slots, len(CATEGORIES), len(RESULTS)), dtype=np.int64)
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
            outcomes,
            dealer_categories,
        )
        played, discards = played + more, discards + thrown_away
        if played == rounds:
            break
    return Tally(played, outcomes, dealer_categories, discards)


def _compiled() -> Count:
    # numba takes a second to import, and may not be there.
    try:
        from casino_brag.simulation.compiled import count  # noqa: PLC0415
    except ImportError as unusable:
        raise SetUpError(
            f"numba is installed and cannot be used: mend or remove it ({unusable})."
        ) from unusable

    return count
