"""The many-at-a-time mapper against the one that deals live rounds."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

import numpy as np

from casino_brag.rng.bounded import below
from casino_brag.rng.deal import DEALS, rank, unrank
from casino_brag.simulation.mapper import LIMIT, deals, words

ENDS = [0, 1, DEALS - 1, DEALS, 2 * DEALS - 1, LIMIT - 1, LIMIT, 2**64 - 1]


def live(drawn: list[int]) -> list[tuple[int, ...]]:
    """The deals that the live path makes of these words, until they are used up."""
    left = iter(drawn)
    made = []
    with suppress(StopIteration):
        while True:
            index, _ = below(DEALS, lambda: next(left))
            made.append(unrank(index))
    return made


def test_the_ends_are_dealt_as_live_rounds_are() -> None:
    dealt = [tuple(cards) for cards in deals(np.array(ENDS, dtype=np.uint64)).T.tolist()]
    assert dealt == live(ENDS)
    assert len(dealt) == len(ENDS) - 2


def test_a_chunk_is_dealt_as_live_rounds_are() -> None:
    drawn = next(words(bytes(range(48)), 7))
    assert [tuple(cards) for cards in deals(drawn).T.tolist()] == live(drawn.tolist())


def test_every_pattern_of_exchanges_is_followed() -> None:
    """All picks among the first six places: every way in which one exchange can meet another."""
    dealt = np.array(list(np.ndindex(6, 5, 4, 3, 2)), dtype=np.int64)
    radices = (52, 51, 50, 49, 48, 47)
    indexes = []
    for picks in dealt.tolist():
        index = 0
        for radix, pick in zip(radices, [*picks, 0], strict=True):
            index = index * radix + pick
        indexes.append(index)
    cards = deals(np.array(indexes, dtype=np.uint64)).T.tolist()
    assert [tuple(six) for six in cards] == [unrank(index) for index in indexes]
    assert [rank(tuple(six)) for six in cards] == indexes


def test_words_are_those_of_the_generator_highest_byte_first() -> None:
    from casino_brag.simulation.ctr_drbg import CtrDrbg

    generator = CtrDrbg(bytes(48), b"casino-brag simulation, chunk " + bytes([0, 0, 0, 0, 0, 0, 0, 9]))
    expected = b"".join(generator.generate(65_536) for _ in range(3))
    drawn = np.concatenate(list(islice(words(bytes(48), 9), 3)))
    assert drawn.tolist() == [
        int.from_bytes(expected[at : at + 8], "big") for at in range(0, len(expected), 8)
    ]


def test_chunks_and_seeds_have_words_of_their_own() -> None:
    streams = [
        tuple(next(words(seed, chunk))[:4].tolist())
        for seed in (bytes(48), bytes(47) + b"\1")
        for chunk in (0, 1, 2**40)
    ]
    assert len(set(streams)) == 6
