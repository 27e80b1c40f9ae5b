"""The one way to turn random words into a bounded integer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WORD_BYTES: Final = 8
WORDS: Final = 1 << (8 * WORD_BYTES)

DISCARDS_MAX: Final = 64
"""A healthy source discards with probability below 2^-30; so many in a row is a broken one."""


class OutOfRange(Exception):
    """No word of `DISCARDS_MAX` in a row was in range."""


def below(bound: int, word: Callable[[], int]) -> tuple[int, int]:
    """A uniform integer in [0, bound), and how many words were discarded on the way to it.

    Simple discard (SP 800-90A rev. 1, appendix A.5.1, over whole multiples of the bound): words at or above the
    largest multiple of `bound` are thrown away, so that the remainder is exactly uniform.  `word` gives uniform
    integers in [0, 2^64); 1 <= bound <= 2^64.  Raises `OutOfRange`.

    >>> words = iter([WORDS - 1, 23])
    >>> below(10, lambda: next(words))
    (3, 1)
    """
    assert 1 <= bound <= WORDS
    limit = WORDS - WORDS % bound
    for discarded in range(DISCARDS_MAX):
        value = word()
        if value < limit:
            return value % bound, discarded
    raise OutOfRange(f"{DISCARDS_MAX} words in a row were out of range")
