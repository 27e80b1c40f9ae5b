"""Words and bytes that a test chooses, in the place of a generator's and of the kernel's."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from casino_brag.rng.bounded import WORD_BYTES
from casino_brag.rng.hmac_drbg import HmacDrbg

Answer = Callable[[int], bytes]

REAL: Answer = os.getrandom


class Words:
    """Gives these words, in this order, and no others."""

    def __init__(self, *words: int) -> None:
        self._left = iter(words)
        self.taken = 0

    def __call__(self) -> int:
        self.taken += 1
        return next(self._left)

    def generate(self, size: int, additional_input: bytes = b"") -> bytes:
        """The next word as the generator of a deal gives it."""
        assert (size, additional_input) == (WORD_BYTES, b"")
        return self().to_bytes(size, "big")


class Kernel:
    """Stands in the place of `os.getrandom`: notes how many bytes are asked for, and answers as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Answer = REAL) -> None:
        self.answer = answer
        self.asked: list[int] = []
        self.given: list[bytes] = []
        monkeypatch.setattr(os, "getrandom", self.getrandom)

    def getrandom(self, size: int, flags: int = 0) -> bytes:
        assert flags == 0, "the kernel may wait until it is seeded, and is not asked for its other pool"
        self.asked.append(size)
        self.given.append(self.answer(size))
        return self.given[-1]


def stream(chosen: bytes) -> Answer:
    """Gives these bytes, one answer after the other, and fewer where there are no more."""
    at = 0

    def answer(size: int) -> bytes:
        nonlocal at
        at += size
        return chosen[at - size : at]

    return answer


def repeatable(seed: bytes) -> Answer:
    """A kernel whose bytes look healthy and are the same for the same seed."""
    return HmacDrbg(seed.ljust(32), b"", b"a kernel").generate
