"""From random words to deals, many at a time, and bit for bit as live rounds are dealt.

A live round takes a word, throws it away if it is at or above the largest multiple of the number of deals, and
otherwise unranks the remainder (:mod:`casino_brag.rng`).  The functions here do the same to arrays; tests compare
the two word by word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.rng.bounded import WORDS
from casino_brag.rng.deal import CARDS_DEALT, DEALS, PACK_SIZE
from casino_brag.simulation.ctr_drbg import REQUEST_BYTES_MAX, CtrDrbg

Words = NDArray[np.uint64]
Cards = NDArray[np.uint8]

LIMIT: Final = WORDS - WORDS % DEALS
"""Words from here up are thrown away, or the lowest deals would come up more often."""

_PURPOSE: Final = b"casino-brag simulation, chunk "


def words(seed: bytes, chunk: int) -> Iterator[Words]:
    """The words of a chunk, without end, in blocks of 8,192.

    Each chunk has a generator of its own, told from the others by its personalization, so that its words do not
    depend on who else drew.  ``seed`` is 48 bytes.

    >>> [hex(word) for word in next(words(bytes(48), 0))[:2].tolist()]
    ['0x4d5f5ad2244db603', '0x3551f3f4aab78ba1']
    """
    generator = CtrDrbg(seed, _PURPOSE + chunk.to_bytes(8, "big"))
    while True:
        yield np.frombuffer(generator.generate(REQUEST_BYTES_MAX), dtype=">u8").astype(np.uint64)


def deals(drawn: Words) -> Cards:
    """The cards of each word that is kept: shape (6, words kept), in the order dealt, the player's three first.

    >>> deals(np.array([0, 2**64 - 1, DEALS - 1], dtype=np.uint64)).T.tolist()
    [[0, 1, 2, 3, 4, 5], [51, 0, 1, 2, 3, 4]]
    """
    kept = drawn[drawn < LIMIT]
    index = (kept - kept // np.uint64(DEALS) * np.uint64(DEALS)).astype(np.int64)
    chosen = np.empty((CARDS_DEALT, len(kept)), dtype=np.uint8)
    for place in reversed(range(CARDS_DEALT)):
        left = index // (PACK_SIZE - place)
        chosen[place] = index - left * (PACK_SIZE - place) + place
        index = left
    return _shuffled(chosen)


def _shuffled(chosen: Cards) -> Cards:
    """The cards of a shuffle that exchanges the cards at ``place`` and at ``chosen[place]``, place after place.

    A chosen place still holds its own card unless an earlier exchange put another there: the one that lay at that
    exchange's place, ``moved``.
    """
    cards = chosen.copy()
    moved = np.empty_like(chosen)
    for place in range(CARDS_DEALT):
        moved[place] = place
        for earlier in range(place):
            np.copyto(cards[place], moved[earlier], where=chosen[earlier] == chosen[place])
            np.copyto(moved[place], moved[earlier], where=chosen[earlier] == place)
    return cards
