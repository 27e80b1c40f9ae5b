"""What the kernel gives is used only after it passed the tests, and a source that failed gives nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import ceil, comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import REAL, Kernel, stream

from casino_brag.rng.entropy import (
    PROPORTION_MAX,
    REPETITIONS_MAX,
    START_UP_BYTES,
    WINDOW_BYTES,
    Entropy,
    EntropyFailure,
)

MEGABYTES = 4
BITS_A_BYTE = 7
FALSE_ALARM = 40
"""The tests are for 7 bits of entropy in a byte and one false alarm in 2^40 samples."""


def varied(size: int) -> bytearray:
    """Bytes other than zero in which nothing is amiss: three of each in a window at the most."""
    return bytearray(1 + at % 255 for at in range(size))


def taken(chosen: bytes | bytearray, piece: int = 32) -> int:
    """How many of these bytes are given out before a test stops them."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        Kernel(monkeypatch, stream(bytes(chosen)))
        entropy, given_out = Entropy(), b""
        try:
            while len(given_out) < len(chosen):
                given_out += entropy.draw(piece)
        except EntropyFailure:
            pass
        assert given_out == chosen[: len(given_out)]
        return len(given_out)


def test_the_cut_off_for_repetitions_is_that_of_the_standard() -> None:
    """SP 800-90B, 4.4.1: C = 1 + ceil(-log2(alpha) / H)."""
    assert 1 + ceil(FALSE_ALARM / BITS_A_BYTE) == REPETITIONS_MAX == 7


def test_the_cut_off_for_proportions_is_that_of_the_standard() -> None:
    """SP 800-90B, 4.4.2: C = 1 + critbinom(W, 2^-H, 1 - alpha), here in integers."""
    sides = 1 << BITS_A_BYTE
    ways = accumulate(
        comb(WINDOW_BYTES, times) * (sides - 1) ** (WINDOW_BYTES - times) for times in range(WINDOW_BYTES)
    )
    needed = sides**WINDOW_BYTES * ((1 << FALSE_ALARM) - 1)
    critical = next(times for times, within in enumerate(ways) if within << FALSE_ALARM >= needed)
    assert 1 + critical == PROPORTION_MAX == 26
    assert WINDOW_BYTES == 512


@pytest.mark.parametrize("at", [0, 1, 13, 25, 26, 29, 31, 32, 505, 509, 512])
@pytest.mark.parametrize("piece", [16, 32, 48])
def test_six_equal_bytes_pass_and_seven_do_not(at: int, piece: int) -> None:
    """Wherever they lie: across the end of an answer, and across the end of a window too."""
    chosen = varied(48 * 32)
    chosen[at : at + 6] = bytes(6)
    assert taken(chosen, piece) == len(chosen)
    chosen[at + 6] = 0
    assert taken(chosen, piece) == (at + 6) // piece * piece


def test_repetitions_that_something_else_interrupts_begin_again() -> None:
    chosen = varied(512)
    chosen[100:106], chosen[107:113] = bytes(6), bytes(6)
    assert taken(chosen) == len(chosen)


@pytest.mark.parametrize("window", [0, 1, 4])
def test_a_byte_twenty_five_times_in_its_window_passes_and_twenty_six_times_does_not(window: int) -> None:
    start = window * WINDOW_BYTES
    chosen = varied(6 * WINDOW_BYTES)
    for time in range(25):
        chosen[start + 20 * time] = 0
    assert taken(chosen) == len(chosen)
    chosen[start + 501] = 0
    assert taken(chosen) == (start + 501) // 32 * 32


def test_a_window_ends_after_its_last_byte_and_not_before() -> None:
    within = varied(3 * WINDOW_BYTES)
    for time in range(25):
        within[20 * time] = 0
    beyond = within.copy()
    within[WINDOW_BYTES - 1] = 0
    beyond[WINDOW_BYTES] = 0
    assert taken(within) == WINDOW_BYTES - 32
    assert taken(beyond) == len(beyond)


def test_a_window_watches_for_its_own_first_byte_only() -> None:
    """Twenty-six times in a window that began with something else, and twenty-five in each of two windows."""
    other = varied(2 * WINDOW_BYTES)
    for time in range(26):
        other[1 + 19 * time] = 0
    assert taken(other) == len(other)
    each = varied(3 * WINDOW_BYTES)
    for window in range(2):
        for time in range(25):
            each[WINDOW_BYTES * window + 20 * time] = 0
    assert taken(each) == len(each)


@given(at=st.integers(0, 60))
def test_two_answers_that_begin_alike_are_one_too_many(at: int) -> None:
    chosen = varied(64 * 32)
    chosen[32 * at : 32 * at + 16] = chosen[32 * at + 32 : 32 * at + 48]
    assert taken(chosen) == 32 * (at + 1)


@pytest.mark.parametrize("pieces", [(16, 16), (16, 48), (48, 16), (32, 256)])
def test_answers_of_different_sizes_are_compared_too(
    pieces: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    Kernel(monkeypatch, lambda size: bytes(varied(size)))
    entropy = Entropy()
    entropy.draw(pieces[0])
    with pytest.raises(EntropyFailure, match="began with the same 16 bytes"):
        entropy.draw(pieces[1])


FAILURES: dict[str, tuple[Callable[[int], bytes], str]] = {
    "nothing": (lambda size: b"", "gave 0 random bytes of 32"),
    "short": (lambda size: REAL(size - 1), "gave 31 random bytes of 32"),
    "long": (lambda size: REAL(size + 1), "gave 33 random bytes of 32"),
    "constant": (lambda size: b"\xa5" * size, "7 equal bytes in a row"),
    "one byte too often": (
        lambda size: bytes(byte if at % 2 else 0 for at, byte in enumerate(REAL(size))),
        "one byte 26 times in a window of 512",
    ),
    "repeated": (lambda size: bytes(range(size)), "began with the same 16 bytes"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_source_that_failed_is_noticed_before_anything_is_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time that 1,024 bytes were drawn, and so before the first that would be used."""
    answer, said = FAILURES[name]
    kernel = Kernel(monkeypatch, answer)
    with pytest.raises(EntropyFailure, match=said):
        Entropy().start_up()
    assert len(kernel.asked) <= START_UP_BYTES // 32


@pytest.mark.parametrize("failure", [OSError(38, "none"), BlockingIOError(), PermissionError()], ids=repr)
def test_a_kernel_that_refuses_leaves_no_other_source(
    failure: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(size: int) -> bytes:
        raise failure

    Kernel(monkeypatch, refuse)
    for ask in (Entropy().start_up, lambda: Entropy().draw(32)):
        with pytest.raises(EntropyFailure, match="gave no random bytes") as caught:
            ask()
        assert caught.value.__cause__ is failure


def test_what_is_tested_first_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = REAL(START_UP_BYTES + 64)
    kernel = Kernel(monkeypatch, stream(chosen))
    entropy = Entropy()
    entropy.start_up()
    assert sum(kernel.asked) == START_UP_BYTES == 1024
    assert entropy.draw(64) == chosen[START_UP_BYTES:]


def test_windows_and_repetitions_run_on_from_what_was_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = varied(START_UP_BYTES + 32)
    chosen[START_UP_BYTES - 6 : START_UP_BYTES + 1] = bytes(7)
    Kernel(monkeypatch, stream(bytes(chosen)))
    entropy = Entropy()
    entropy.start_up()
    with pytest.raises(EntropyFailure, match="7 equal bytes"):
        entropy.draw(32)


@pytest.mark.parametrize("size", [0, 15, 257])
def test_no_size_is_asked_for_that_the_kernel_might_cut_short(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 256 bytes are never interrupted, getrandom(2) says; below 16, answers could not be compared."""
    kernel = Kernel(monkeypatch)
    with pytest.raises(AssertionError):
        Entropy().draw(size)
    assert kernel.asked == []


def test_the_kernels_own_bytes_pass() -> None:
    """At the tests' false alarm rate, and with eight bits in a byte rather than seven, this fails in no lifetime."""
    entropy = Entropy()
    entropy.start_up()
    for _ in range(MEGABYTES * 2**20 // 256):
        assert len(entropy.draw(256)) == 256
