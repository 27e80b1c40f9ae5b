"""Entropy input from the operating system, watched for failure.

The kernel's generator is already conditioned, so these tests estimate no entropy: they notice a source that has
failed (stuck, short, repeating).  They are those of SP 800-90B, section 4.4, for an assumed 7 bits of entropy a
byte and a false alarm once in 2^40 samples, and a comparison of successive outputs (FIPS 140-2, section 4.9.2).
"""

from __future__ import annotations

import os
from typing import Final

REPETITIONS_MAX: Final = 7
"""Repetition count test: so many equal bytes in a row are a failure, 1 + ceil(40 / 7)."""

WINDOW_BYTES: Final = 512
PROPORTION_MAX: Final = 26
"""Adaptive proportion test: a window's first byte so many times in it is a failure."""

START_UP_BYTES: Final = 1024
"""Tested and thrown away before the first use."""


class EntropyFailure(Exception):
    """The source gave nothing, too little, or what no healthy source gives."""


class Entropy:
    """The kernel's generator, every byte of which passes the tests before it is used.  Not safe between threads."""

    def __init__(self) -> None:
        self._last = -1
        self._repetitions = 0
        self._window_first = -1
        self._window_seen = 0
        self._window_equal = 0
        self._before = b""

    def start_up(self) -> None:
        """Tests `START_UP_BYTES` and throws them away.  Raises `EntropyFailure`."""
        for _ in range(START_UP_BYTES // 32):
            self.draw(32)

    def draw(self, size: int) -> bytes:
        """So many bytes, 16 to 256, from a kernel that may block until it is seeded.  Raises `EntropyFailure`."""
        assert 16 <= size <= 256
        try:
            drawn = os.getrandom(size)
        except OSError as failure:
            raise EntropyFailure("the operating system gave no random bytes") from failure
        if len(drawn) != size:
            raise EntropyFailure(f"the operating system gave {len(drawn)} random bytes of {size}")
        for byte in drawn:
            self._test(byte)
        if drawn[:16] == self._before:
            raise EntropyFailure("two draws from the operating system began with the same 16 bytes")
        self._before = drawn[:16]
        return drawn

    def _test(self, byte: int) -> None:
        self._repetitions = self._repetitions + 1 if byte == self._last else 1
        self._last = byte
        if self._repetitions >= REPETITIONS_MAX:
            raise EntropyFailure(f"{self._repetitions} equal bytes in a row")
        if self._window_seen == 0:
            self._window_first, self._window_equal = byte, 0
        self._window_seen = (self._window_seen + 1) % WINDOW_BYTES
        self._window_equal += byte == self._window_first
        if self._window_equal >= PROPORTION_MAX:
            raise EntropyFailure(f"one byte {self._window_equal} times in a window of {WINDOW_BYTES}")
