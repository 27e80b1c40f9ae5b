"""The counting loop of :func:`casino_brag.simulation.counting.count`, compiled by numba for this machine.

Importing this module needs the extra ``sim``.  What is compiled is kept beside this file, or in the user's cache
where that cannot be written, so that only the first run waits for it.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from casino_brag.rng.deal import CARDS_DEALT, DEALS, PACK_SIZE
from casino_brag.simulation.counting import CLASS_SHIFT, FOLD, LOSE, NOT_QUALIFIED, TIE, WIN, Count
from casino_brag.simulation.mapper import LIMIT, Words
from casino_brag.simulation.tally import Counts

# Unsigned constants: division by them becomes multiplication, and places need no check for being below 0.
_LIMIT = np.uint64(LIMIT)
_DEALS = np.uint64(DEALS)
_PACK = np.uint64(PACK_SIZE)
_SHIFT = np.uint64(CLASS_SHIFT)

assert (FOLD, NOT_QUALIFIED, WIN, TIE, LOSE) == (0, 1, 2, 3, 4), "results are counted up to without branching"


def _compiled(function: Count) -> Count:
    try:
        return cast(Count, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # nowhere to keep it: each process compiles its own
        return cast(Count, njit(nogil=True)(function))


@_compiled
def count(
    hands: NDArray[np.int16],
    threshold: int,
    block: Words,
    rounds: int,
    first_slot: int,
    outcomes: Counts,
    dealer_categories: Counts,
) -> tuple[int, int]:
    """Plays a block of words into the counts given, exactly as the function it stands for."""
    cards = np.empty(CARDS_DEALT, dtype=np.uint64)
    chosen = np.empty(CARDS_DEALT, dtype=np.uint64)
    moved = np.empty(CARDS_DEALT, dtype=np.uint64)
    one, categories = np.uint64(1), np.uint64(7)
    qualifies = np.uint64(threshold)
    played = discards = 0
    slot = first_slot
    for word in block:
        if played == rounds:
            break
        if word >= _LIMIT:
            discards += 1
            continue
        index = word % _DEALS
        for back in range(CARDS_DEALT):
            at = np.uint64(CARDS_DEALT - 1 - back)
            left = index // (_PACK - at)
            chosen[at] = index - left * (_PACK - at) + at
            index = left
        for place in range(CARDS_DEALT):
            card, leaves = chosen[place], np.uint64(place)
            for earlier in range(place):
                if chosen[earlier] == chosen[place]:
                    card = moved[earlier]
                if chosen[earlier] == np.uint64(place):
                    leaves = moved[earlier]
            cards[place], moved[place] = card, leaves
        player = np.uint64(hands[cards[0], cards[1], cards[2]])
        dealer = np.uint64(hands[cards[3], cards[4], cards[5]])
        player_class, dealer_class = player >> _SHIFT, dealer >> _SHIFT
        met = 1 + (player_class <= dealer_class) + (player_class < dealer_class)
        result = (player & one) * (1 + (dealer_class >= qualifies) * met)
        outcomes[slot, player >> one & categories, result] += 1
        dealer_categories[dealer >> one & categories] += 1
        played += 1
        slot += 1
        if slot == len(outcomes):
            slot = 0
    return played, discards
