"""The tests of bytes are tested: sound output passes them, and faulty output fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from casino_brag.laboratory.byte_tests import BYTES_MAX, BYTES_MIN, byte_counts, byte_tests
from casino_brag.laboratory.judging import Conclusion, judge
from casino_brag.simulation.ctr_drbg import CtrDrbg


def sound(size: int, stream: int = 0) -> bytes:
    generator = CtrDrbg(bytes([stream]) * 48)
    return b"".join(generator.generate(1 << 16) for _ in range(-(-size // (1 << 16))))[:size]


def conclusion(output: bytes) -> Conclusion:
    tests = byte_tests(output)
    return judge(tests, lambda names: [test for test in tests if test.name in names]).conclusion


def one_value_missing() -> bytes:
    return sound(2 * BYTES_MIN).replace(b"\x80", b"")


def one_bit_likelier() -> bytes:
    output = np.frombuffer(sound(BYTES_MIN), dtype=np.uint8)
    likelier = np.frombuffer(sound(BYTES_MIN, 1), dtype=np.uint8) < 8
    return bytes(output | likelier)


def counter() -> bytes:
    return bytes(range(256)) * (BYTES_MIN // 256)


def high_halves_of_a_congruential_generator() -> bytes:
    state, output = 1, bytearray()
    for _ in range(BYTES_MIN):
        state = (state * 16_807) % 65_521
        output.append(state >> 8)
    return bytes(output)


def every_block_twice() -> bytes:
    blocks = np.frombuffer(sound(BYTES_MIN // 2), dtype=np.uint8).reshape(-1, 1)
    return bytes(np.repeat(blocks, 2, axis=1))


@pytest.mark.parametrize(
    "generator",
    [
        one_value_missing,
        one_bit_likelier,
        counter,
        high_halves_of_a_congruential_generator,
        every_block_twice,
    ],
    ids=lambda generator: generator.__name__,
)
def test_faulty_output_fails(generator: Callable[[], bytes]) -> None:
    assert conclusion(generator()) is Conclusion.FAILS


@pytest.mark.parametrize("stream", range(4))
def test_sound_output_passes(stream: int) -> None:
    assert conclusion(sound(BYTES_MIN, stream)) is Conclusion.PASSES


def test_too_few_bytes_decide_nothing() -> None:
    with pytest.raises(ValueError, match="1,048,576"):
        byte_tests(sound(BYTES_MIN - 1))


def test_no_more_is_tested_than_fits_in_memory() -> None:
    output = bytes(BYTES_MAX) + b"\x01" * 1_000
    assert byte_counts(output)[:2].tolist() == [BYTES_MAX, 0]
