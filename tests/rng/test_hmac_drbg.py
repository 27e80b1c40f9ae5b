"""The deterministic core: HMAC_DRBG as the standard has it, its laws and its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference

from casino_brag.rng.hmac_drbg import (
    INPUT_BYTES_MAX,
    OUTPUT_BYTES_MAX,
    REQUESTS_MAX,
    HmacDrbg,
    ReseedRequired,
)

entropy = st.binary(min_size=32, max_size=64)
nonces = st.binary(min_size=16, max_size=32)
texts = st.binary(max_size=100)
AROUND_BLOCKS = sorted({max(blocks * 32 + by, 0) for blocks in range(5) for by in (-1, 0, 1)})
sizes = st.sampled_from(AROUND_BLOCKS) | st.integers(0, 300)
calls = st.lists(st.tuples(st.just("generate"), sizes, texts) | st.tuples(st.just("reseed"), entropy, texts))


def fresh(personalization: bytes = b"") -> HmacDrbg:
    return HmacDrbg(bytes(range(32)), bytes(range(16)), personalization)


def state(drbg: HmacDrbg) -> tuple[bytes, bytes]:
    """What a thief of the memory would have."""
    return bytes(drbg._key), bytes(drbg._v)


@given(seed=entropy, nonce=nonces, personal=texts, called=calls)
def test_it_does_what_the_standard_says_whatever_it_is_asked(
    seed: bytes, nonce: bytes, personal: bytes, called: list[tuple[str, int | bytes, bytes]]
) -> None:
    shipped, reference = HmacDrbg(seed, nonce, personal), Reference(seed, nonce, personal)
    for name, argument, additional in called:
        expected = getattr(reference, name)(argument, additional)
        assert getattr(shipped, name)(argument, additional) == expected
        assert state(shipped) == (reference.key, reference.v)


@pytest.mark.parametrize(
    ("digest", "block"), [("sha1", 20), ("sha224", 28), ("sha256", 32), ("sha384", 48), ("sha512", 64)]
)
def test_every_size_around_a_block_is_as_the_standard_says(digest: str, block: int) -> None:
    for size in range(3 * block + 2):
        shipped, reference = (of(bytes(32), bytes(16), digest=digest) for of in (HmacDrbg, Reference))
        assert shipped.generate(size, b"about") == reference.generate(size, b"about")
        assert shipped.generate(block) == reference.generate(block)


@pytest.mark.parametrize("size", [OUTPUT_BYTES_MAX - 1, OUTPUT_BYTES_MAX])
def test_the_largest_answers_are_as_the_standard_says(size: int) -> None:
    answer = fresh().generate(size)
    assert answer == Reference(bytes(range(32)), bytes(range(16))).generate(size)
    assert len(answer) == size


@given(first=st.integers(1, 100), second=st.integers(1, 100))
def test_pieces_asked_for_one_by_one_are_not_the_whole_asked_for_at_once(first: int, second: int) -> None:
    """The state moves on after every answer, so that what follows cannot be run backwards."""
    whole, pieces = fresh(), fresh()
    answer = whole.generate(first + 32)
    assert pieces.generate(first) == answer[:first]
    assert pieces.generate(32) != answer[first:]


@given(size=st.integers(0, 200), longer=st.integers(0, 200), additional=texts)
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(size: int, longer: int, additional: bytes) -> None:
    assert fresh().generate(size + longer, additional)[:size] == fresh().generate(size, additional)


def test_an_empty_answer_still_moves_the_state_on() -> None:
    drbg = fresh()
    before = state(drbg)
    assert drbg.generate(0) == b""
    assert drbg.requests == 1
    assert state(drbg) != before


def test_every_bit_that_goes_in_matters() -> None:
    """Entropy, nonce, personalization; entropy and additional input of a reseeding; additional input of a request."""

    def answer(inputs: list[bytes]) -> bytes:
        drbg = HmacDrbg(*inputs[:3])
        drbg.reseed(*inputs[3:5])
        return drbg.generate(16, inputs[5])

    inputs = [bytes(32), bytes(16), bytes(8), bytes(32), bytes(8), bytes(8)]
    answers = {answer(inputs)}
    flips = [(which, bit) for which, text in enumerate(inputs) for bit in range(8 * len(text))]
    for which, bit in flips:
        changed = list(inputs)
        changed[which] = (1 << bit).to_bytes(len(inputs[which]), "big")
        answers.add(answer(changed))
    assert len(answers) == 1 + len(flips)


@given(text=st.binary(min_size=1, max_size=100))
def test_an_input_that_is_there_is_not_like_one_that_is_not(text: bytes) -> None:
    plain, additional, reseeded, reseeded_additional = fresh(), fresh(), fresh(), fresh()
    reseeded.reseed(bytes(32))
    reseeded_additional.reseed(bytes(32), text)
    answers = [plain.generate(32), additional.generate(32, text), fresh(text).generate(32)]
    assert len({*answers, reseeded.generate(32), reseeded_additional.generate(32)}) == 5
    # Additional input counts again after the answer, and so changes what follows.
    assert plain.generate(32) != additional.generate(32)


@pytest.mark.parametrize("size", [-1, OUTPUT_BYTES_MAX + 1])
def test_no_more_is_answered_at_once_than_the_standard_allows(size: int) -> None:
    drbg = fresh()
    before = state(drbg)
    with pytest.raises(AssertionError):
        drbg.generate(size)
    assert (state(drbg), drbg.requests) == (before, 0)
    assert OUTPUT_BYTES_MAX == 2**19 // 8


def test_inputs_are_taken_up_to_their_limit_and_not_beyond() -> None:
    most, more = bytes(INPUT_BYTES_MAX), bytes(INPUT_BYTES_MAX + 1)
    drbg = HmacDrbg(bytes(32), most, most)
    drbg.reseed(bytes(32), most)
    assert len(drbg.generate(32, most)) == 32
    before = state(drbg)
    with pytest.raises(AssertionError):
        HmacDrbg(bytes(32), more)
    with pytest.raises(AssertionError):
        HmacDrbg(bytes(32), b"", more)
    with pytest.raises(AssertionError):
        drbg.reseed(bytes(32), more)
    with pytest.raises(AssertionError):
        drbg.generate(32, more)
    assert (state(drbg), drbg.requests) == (before, 1)


def test_after_so_many_requests_it_answers_nothing_until_it_is_reseeded() -> None:
    drbg = fresh()
    answers = {drbg.generate(16) for _ in range(REQUESTS_MAX)}
    assert len(answers) == drbg.requests == REQUESTS_MAX == 4096
    before = state(drbg)
    for _ in range(2):
        with pytest.raises(ReseedRequired):
            drbg.generate(16)
    assert state(drbg) == before
    drbg.reseed(bytes(32))
    assert drbg.requests == 0
    assert drbg.generate(16) not in answers
    assert drbg.requests == 1


@pytest.mark.parametrize("used", [0, 1, REQUESTS_MAX])
def test_a_wiped_generator_is_all_zero_and_answers_nothing(used: int) -> None:
    drbg = fresh(b"personal")
    for _ in range(used):
        drbg.generate(1)
    key, value = drbg._key, drbg._v
    drbg.wipe()
    assert drbg._key is key
    assert drbg._v is value
    assert state(drbg) == (bytes(32), bytes(32))
    with pytest.raises(ReseedRequired):
        drbg.generate(1)
    with pytest.raises(ReseedRequired):
        drbg.generate(0)


def test_its_state_is_where_it_can_be_overwritten_and_nowhere_else() -> None:
    """No dictionary of attributes: the key and the value in place, the name of the hash, and a count."""
    drbg = fresh()
    assert not hasattr(drbg, "__dict__")
    assert sorted(HmacDrbg.__slots__) == ["_digest", "_key", "_v", "requests"]
    assert type(drbg._key) is type(drbg._v) is bytearray
    assert b"".join(state(drbg)).hex() not in repr(drbg)
