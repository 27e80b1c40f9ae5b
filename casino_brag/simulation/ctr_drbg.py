"""CTR_DRBG with AES-256 and without a derivation function: NIST SP 800-90A rev. 1, section 10.2.1.

The deterministic core only: whoever instantiates it brings the entropy.  Tested against NIST vectors
(``tests/data/ctr_drbg_aes256_no_df.txt``).  It deals no live round; :mod:`casino_brag.rng` does.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES: Final = 32
BLOCK_BYTES: Final = 16
SEED_BYTES: Final = KEY_BYTES + BLOCK_BYTES
"""The standard's seedlen: entropy input has exactly so many bytes, other input at most."""

REQUEST_BYTES_MAX: Final = 1 << 16
"""The standard's max_number_of_bits_per_request, 2^19 bits."""

REQUESTS_MAX: Final = 1 << 48
"""The standard's reseed_interval."""

_ZEROS: Final = bytes(REQUEST_BYTES_MAX + SEED_BYTES)


class CtrDrbg:
    """One instance of the generator.

    >>> first, second = CtrDrbg(bytes(48)), CtrDrbg(bytes(48), b"another")
    >>> first.generate(8).hex(), second.generate(8) == first.generate(8)
    ('91618fe99a8f9420', False)
    """

    def __init__(self, entropy_input: bytes, personalization: bytes = b"") -> None:
        """CTR_DRBG_Instantiate: 48 bytes of entropy input, at most 48 of personalization."""
        self._key = bytes(KEY_BYTES)
        self._v = bytes(BLOCK_BYTES)
        self._seed(entropy_input, personalization)

    def reseed(self, entropy_input: bytes, additional_input: bytes = b"") -> None:
        """CTR_DRBG_Reseed: 48 bytes of entropy input, at most 48 of additional input."""
        self._seed(entropy_input, additional_input)

    def generate(self, size: int, additional_input: bytes = b"") -> bytes:
        """CTR_DRBG_Generate: so many bytes, at most 65,536; at most 48 of additional input.

        What updates the state is the key stream that follows the output, so both come from one call of the cipher.
        """
        assert 0 <= size <= REQUEST_BYTES_MAX, "a request has a limit"
        assert self._requests < REQUESTS_MAX, "a generator is reseeded in time"
        self._requests += 1
        additional = _padded(additional_input)
        if additional_input:
            self._update(self._key_stream(SEED_BYTES), additional)
        blocks = -(-size // BLOCK_BYTES) * BLOCK_BYTES
        stream = self._key_stream(blocks + SEED_BYTES)
        self._update(stream[blocks:], additional)
        return stream[:size]

    def _seed(self, entropy_input: bytes, other_input: bytes) -> None:
        assert len(entropy_input) == SEED_BYTES, "entropy input has the length of the seed"
        self._update(self._key_stream(SEED_BYTES), _xor(entropy_input, _padded(other_input)))
        self._requests = 0

    def _key_stream(self, size: int) -> bytes:
        """The encryptions of V + 1, V + 2, …, modulo 2^128 as AES in counter mode has it."""
        counter = (int.from_bytes(self._v, "big") + 1) % (1 << (8 * BLOCK_BYTES))
        cipher = Cipher(algorithms.AES(self._key), modes.CTR(counter.to_bytes(BLOCK_BYTES, "big")))
        return cipher.encryptor().update(_ZEROS[:size])

    def _update(self, stream: bytes, provided: bytes) -> None:
        """CTR_DRBG_Update, given the key stream that it would compute."""
        seed = _xor(stream, provided)
        self._key, self._v = seed[:KEY_BYTES], seed[KEY_BYTES:]


def _padded(text: bytes) -> bytes:
    assert len(text) <= SEED_BYTES, "other input is at most as long as the seed"
    return text.ljust(SEED_BYTES, b"\0")


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(SEED_BYTES, "big")
