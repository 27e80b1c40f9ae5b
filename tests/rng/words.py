"""Words that a test chooses, in the place of the kernel's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest

from casino_brag.rng import source


class Kernel:
    """Gives these words, in this order, and no others."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words: Iterator[int] = iter(words)
        self.asked: list[tuple[int, int]] = []

    def getrandom(self, size: int, flags: int = 0) -> bytes:
        self.asked.append((size, flags))
        return next(self._words).to_bytes(source.WORD_BYTES, "big")

    @classmethod
    def giving(cls, monkeypatch: pytest.MonkeyPatch, *words: int) -> Kernel:
        """Puts these words in the kernel's place for the rest of the test."""
        kernel = cls(words)
        monkeypatch.setattr(os, "getrandom", kernel.getrandom)
        return kernel
