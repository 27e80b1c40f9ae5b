from __future__ import annotations

from pathlib import Path

import pytest

from casino_brag.simulation.ctr_drbg import REQUEST_BYTES_MAX, CtrDrbg

DATA = Path(__file__).parents[1] / "data" / "ctr_drbg_aes256_no_df.txt"


def nist_vectors() -> list[dict[str, bytes]]:
    cases = []
    for block in DATA.read_text(encoding="ascii").strip().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            fields = (line.split("=") for line in lines)
            cases.append({name.strip(): bytes.fromhex(value.strip()) for name, value in fields})
    return cases


VECTORS = nist_vectors()


def test_there_are_vectors_of_every_kind() -> None:
    kinds = {(bool(case["PersonalizationString"]), bool(case["AdditionalInput1"])) for case in VECTORS}
    assert len(VECTORS) == 16
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["ReturnedBits"][:4].hex())
def test_nist_vectors(case: dict[str, bytes]) -> None:
    generator = CtrDrbg(case["EntropyInput"], case["PersonalizationString"])
    generator.reseed(case["EntropyInputReseed"], case["AdditionalInputReseed"])
    size = len(case["ReturnedBits"])
    generator.generate(size, case["AdditionalInput1"])
    assert generator.generate(size, case["AdditionalInput2"]) == case["ReturnedBits"]


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, REQUEST_BYTES_MAX])
def test_a_request_gives_the_beginning_of_what_a_longer_one_gives(size: int) -> None:
    assert CtrDrbg(bytes(48)).generate(REQUEST_BYTES_MAX)[:size] == CtrDrbg(bytes(48)).generate(size)


def test_the_counter_goes_round() -> None:
    """V = 2^128 - 1 is followed by 0, as the standard adds modulo 2^128."""
    generator = CtrDrbg(bytes(48))
    generator._v = b"\xff" * 16
    first = generator.generate(16)
    again = CtrDrbg(bytes(48))
    again._v = b"\xff" * 15 + b"\xfe"
    assert again.generate(32)[16:] == first


@pytest.mark.parametrize("entropy", [b"", bytes(47), bytes(49)])
def test_entropy_of_another_length_is_refused(entropy: bytes) -> None:
    with pytest.raises(AssertionError, match="length of the seed"):
        CtrDrbg(entropy)
    with pytest.raises(AssertionError, match="length of the seed"):
        CtrDrbg(bytes(48)).reseed(entropy)


def test_a_request_beyond_the_standard_s_limits_is_refused() -> None:
    generator = CtrDrbg(bytes(48))
    with pytest.raises(AssertionError, match="limit"):
        generator.generate(REQUEST_BYTES_MAX + 1)
    generator._requests = 1 << 48
    with pytest.raises(AssertionError, match="reseeded in time"):
        generator.generate(1)
    generator.reseed(bytes(48))
    assert len(generator.generate(1)) == 1
    with pytest.raises(AssertionError, match="as long as the seed"):
        CtrDrbg(bytes(48), bytes(49))
