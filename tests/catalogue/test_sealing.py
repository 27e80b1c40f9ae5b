"""What is sealed opens with its key, in its place, unaltered; or not at all."""

from __future__ import annotations

import secrets

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.sealing import NONCE_BYTES, SealBroken, Sealer

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
VALUE = b"12345678901"


@given(value=st.binary(max_size=200), context=st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_a_sealed_value_opens_in_its_context(value: bytes, context: str) -> None:
    sealer = Sealer({"k1": OLD})
    assert sealer.open(sealer.seal(value, context=context), context=context) == value


def test_a_sealed_value_is_laid_out_as_it_is_described() -> None:
    sealed = Sealer({"k1": OLD}).seal(VALUE, context="round 1")
    key_id, _, rest = sealed.partition(b"\0")
    nonce, ciphertext = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
    assert key_id == b"k1"
    assert AESGCMSIV(OLD).decrypt(nonce, ciphertext, b"round 1") == VALUE
    assert len(ciphertext) == len(VALUE) + 16


def test_equal_values_are_sealed_differently_and_never_in_the_clear() -> None:
    sealer = Sealer({"k1": OLD})
    sealed = {sealer.seal(VALUE, context="round 1") for _ in range(50)}
    assert len(sealed) == 50
    assert not any(VALUE in one for one in sealed)


def test_every_single_altered_bit_breaks_the_seal() -> None:
    sealer = Sealer({"k1": OLD})
    sealed = sealer.seal(VALUE, context="round 1")
    for place in range(len(sealed) * 8):
        altered = bytearray(sealed)
        altered[place // 8] ^= 1 << place % 8
        with pytest.raises(SealBroken):
            sealer.open(bytes(altered), context="round 1")


@pytest.mark.parametrize("context", ["round 2", "", "round 1 ", "Round 1", "round 1\0"])
def test_a_value_moved_elsewhere_does_not_open(context: str) -> None:
    sealer = Sealer({"k1": OLD})
    with pytest.raises(SealBroken, match="belongs elsewhere"):
        sealer.open(sealer.seal(VALUE, context="round 1"), context=context)


def test_a_value_cut_short_or_prolonged_does_not_open() -> None:
    sealer = Sealer({"k1": OLD})
    sealed = sealer.seal(VALUE, context="round 1")
    for length in range(len(sealed)):
        with pytest.raises(SealBroken):
            sealer.open(sealed[:length], context="round 1")
    with pytest.raises(SealBroken):
        sealer.open(sealed + b"\0", context="round 1")


def test_a_value_of_an_unknown_key_does_not_open() -> None:
    sealed = Sealer({"k1": OLD}).seal(VALUE, context="round 1")
    with pytest.raises(SealBroken, match="CASINO_BRAG_SEAL_KEYS"):
        Sealer({"k2": OLD}).open(sealed, context="round 1")
    with pytest.raises(SealBroken):
        Sealer({"k1": NEW}).open(sealed, context="round 1")
    with pytest.raises(SealBroken):
        Sealer({"k1": OLD}).open(secrets.token_bytes(60), context="round 1")


def test_keys_are_replaced_while_old_values_still_open() -> None:
    before, during, after = Sealer({"k1": OLD}), Sealer({"k2": NEW, "k1": OLD}), Sealer({"k2": NEW})
    old = before.seal(VALUE, context="round 1")
    new = during.seal(VALUE, context="round 1")
    assert new.startswith(b"k2\0")
    assert during.open(old, context="round 1") == during.open(new, context="round 1") == VALUE
    assert after.open(new, context="round 1") == VALUE
    with pytest.raises(SealBroken):
        after.open(old, context="round 1")
    with pytest.raises(SealBroken):
        before.open(new, context="round 1")


def test_no_message_of_a_broken_seal_tells_what_was_sealed() -> None:
    sealer = Sealer({"k1": OLD})
    with pytest.raises(SealBroken) as broken:
        sealer.open(sealer.seal(VALUE, context="round 1"), context="round 2")
    assert VALUE.decode() not in str(broken.value)
