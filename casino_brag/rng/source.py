"""Words from the operating system, and the one way to turn them into a bounded integer."""

from __future__ import annotations

import os
from typing import Final

WORD_BYTES: Final = 8
WORDS: Final = 1 << (8 * WORD_BYTES)

DISCARDS_MAX: Final = 64
"""A healthy source discards with probability below 2^-30; so many in a row is a broken one."""


class RngUnavailable(Exception):
    """No random number can be had.  Nothing may be dealt."""


def word() -> int:
    """One uniform integer in [0, 2^64), from the kernel's generator, which blocks until it is seeded.

    Raises `RngUnavailable` when the kernel gives no answer or a short one.
    """
    try:
        answer = os.getrandom(WORD_BYTES)
    except OSError as failure:
        raise RngUnavailable("the operating system gave no random bytes") from failure
    if len(answer) != WORD_BYTES:
        raise RngUnavailable(f"the operating system gave {len(answer)} random bytes of {WORD_BYTES}")
    return int.from_bytes(answer, "big")


def below(bound: int) -> tuple[int, int]:
    """A uniform integer in [0, bound), and how many words were discarded on the way to it.

    Simple discard (SP 800-90A rev. 1, appendix A.5.1, over whole multiples of the bound): words at or above the
    largest multiple of `bound` are thrown away, so that the remainder is exactly uniform.  1 <= bound <= 2^64.
    Raises `RngUnavailable` as `word` does, and when `DISCARDS_MAX` words in a row were out of range.
    """
    assert 1 <= bound <= WORDS
    limit = WORDS - WORDS % bound
    for discarded in range(DISCARDS_MAX):
        value = word()
        if value < limit:
            return value % bound, discarded
    raise RngUnavailable(f"{DISCARDS_MAX} words in a row were out of range")


def check_source() -> None:
    """Asks for a word and throws it away.  Raises `RngUnavailable` as `word` does."""
    word()
