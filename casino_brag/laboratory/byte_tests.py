"""Our own tests of raw output, of which there are a few: the external batteries are the thorough ones."""

from __future__ import annotations

from math import perm, sqrt
from typing import Final

import numpy as np

from casino_brag.laboratory.forms import Counts, Floats, fit, normal, runs
from casino_brag.laboratory.judging import Test

BYTES_MIN: Final = 1 << 20
"""Fewer leave less than five to a pair of bytes, which is too few for chi-square."""

BYTES_MAX: Final = 1 << 22
"""Of more, the first so many are tested: this is done in memory."""

HAND: Final = 5
"""Hexadecimal digits that make a hand of the poker test."""


def byte_tests(output: bytes) -> list[Test]:
    """Every test of a stretch of raw output.

    ``ValueError`` for fewer than `BYTES_MIN` bytes.
    """
    if len(output) < BYTES_MIN:
        raise ValueError(f"{BYTES_MIN:,} bytes are the fewest that these tests decide anything from")
    drawn = np.frombuffer(output[:BYTES_MAX], dtype=np.uint8)
    bits = np.unpackbits(drawn)
    pairs = drawn[: len(drawn) // 2 * 2].view(np.uint16)
    part = drawn / 255 - 0.5
    # A uniform byte divided by 255 has the variance (256^2 - 1) / (12 * 255^2).
    variance = (256**2 - 1) / (12 * 255**2)
    return [
        normal("bits set", float(bits.sum(dtype=np.int64)), len(bits) / 2, sqrt(len(bits)) / 2),
        *runs("runs of equal bits", bits.astype(np.bool_)),
        fit("bytes", byte_counts(output), np.full(256, 1 / 256)),
        fit("pairs of bytes", np.bincount(pairs, minlength=1 << 16), np.full(1 << 16, 1 / (1 << 16))),
        fit("different digits in a hand of five", *_poker(drawn)),
        normal(
            "serial correlation of bytes",
            float((part[1:] * part[:-1]).sum()),
            0,
            variance * sqrt(len(part) - 1),
        ),
    ]


def byte_counts(output: bytes) -> Counts:
    """How often each byte came in as much of it as is tested."""
    return np.bincount(np.frombuffer(output[:BYTES_MAX], dtype=np.uint8), minlength=256)


def _poker(drawn: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> tuple[Counts, Floats]:
    """How many different digits each hand has, 1 to 5, with the probabilities (Knuth, 3.3.2, D)."""
    digits = np.column_stack((drawn >> 4, drawn & 15)).ravel()
    hands = np.sort(digits[: len(digits) // HAND * HAND].reshape(-1, HAND), axis=1)
    different = 1 + (hands[:, 1:] != hands[:, :-1]).sum(axis=1)
    chances = [_partitions(HAND, parts) * perm(16, parts) / 16**HAND for parts in range(1, HAND + 1)]
    return np.bincount(different - 1, minlength=HAND), np.array(chances)


def _partitions(things: int, parts: int) -> int:
    """In how many ways things can be put into so many non-empty parts: Stirling's numbers of the second kind."""
    if parts in (1, things):
        return 1
    return parts * _partitions(things - 1, parts) + _partitions(things - 1, parts - 1)
