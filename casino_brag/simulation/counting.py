"""The counting of one block of words: the kernel that is always there, on NumPy.

:mod:`casino_brag.simulation.compiled` is the other one, a loop that numba compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.settlement import Result
from casino_brag.simulation.mapper import LIMIT, Words, deals
from casino_brag.simulation.tally import RESULTS, Counts

CLASS_SHIFT: Final = 4
"""A hand's code is its rank class, three bits of category, and one bit for whether a player plays it."""

FOLD, NOT_QUALIFIED, WIN, TIE, LOSE = (
    RESULTS.index(result)
    for result in (Result.FOLD, Result.NOT_QUALIFIED, Result.WIN, Result.TIE, Result.LOSE)
)
"""Columns of a tally."""


Count = Callable[[NDArray[np.int16], int, Words, int, int, Counts, Counts], tuple[int, int]]
"""A kernel: see :func:`count`."""


def count(
    hands: NDArray[np.int16],
    threshold: int,
    block: Words,
    rounds: int,
    first_slot: int,
    outcomes: Counts,
    dealer_categories: Counts,
) -> tuple[int, int]:
    """Plays a block of words, but no more rounds than asked for, into the counts given; (rounds, discards).

    A word that would be thrown away after the last round is not drawn any more.
    """
    kept = np.flatnonzero(block < LIMIT)[:rounds]
    drawn = int(kept[-1]) + 1 if len(kept) == rounds else len(block)
    a, b, c, d, e, f = deals(block[:drawn])
    player, dealer = hands[a, b, c], hands[d, e, f]
    player_class, dealer_class = player >> CLASS_SHIFT, dealer >> CLASS_SHIFT
    result = np.where(player_class > dealer_class, WIN, np.where(player_class == dealer_class, TIE, LOSE))
    result[dealer_class < threshold] = NOT_QUALIFIED
    result[player & 1 == 0] = FOLD
    slots, categories, results = outcomes.shape
    slot = (np.arange(len(kept)) + first_slot) % slots
    cell = (slot * categories + (player >> 1 & 7)) * results + result
    outcomes += np.bincount(cell, minlength=outcomes.size).reshape(outcomes.shape)
    dealer_categories += np.bincount(dealer >> 1 & 7, minlength=len(dealer_categories))
    return len(kept), drawn - len(kept)
