"""Rounds of one chunk, played and counted.

A chunk has a generator of its own (:func:`casino_brag.simulation.mapper.words`), so its tally depends on its number
and the seed only.  Two kernels do the counting and agree to the last round: NumPy's is always there, numba's is
several times as fast and comes with the extra ``sim``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from itertools import permutations
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Ranking, places
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import Result, qualifying_class
from casino_brag.odds.outcomes import HANDS, hand_cards, rank_classes
from casino_brag.simulation.mapper import LIMIT, Words, deals, words
from casino_brag.simulation.tally import CATEGORIES, RESULTS, Counts, Tally

CLASS_SHIFT: Final = 4
"""A hand's code is its rank class, three bits of category, and one bit for whether a player plays it."""

FOLD, NOT_QUALIFIED, WIN, TIE, LOSE = (
    RESULTS.index(result)
    for result in (Result.FOLD, Result.NOT_QUALIFIED, Result.WIN, Result.TIE, Result.LOSE)
)
"""Columns of a tally."""


Count = Callable[[NDArray[np.int16], int, Words, int, int, Counts, Counts], tuple[int, int]]
"""A kernel: see :func:`count`."""


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
    from casino_brag.simulation.compiled import count  # noqa: PLC0415

    return count


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
