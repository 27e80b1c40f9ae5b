"""HMAC_DRBG: NIST SP 800-90A rev. 1, section 10.1.2.

The deterministic core and nothing else, so that NIST's published cases run against the very code that ships.
Whoever instantiates it brings the entropy, and asks again for it in time.
"""

from __future__ import annotations

import hashlib
from hmac import digest as hmac
from typing import Final

OUTPUT_BYTES_MAX: Final = 1 << 16
"""The standard's max_number_of_bits_per_request, 2^19 bits."""

INPUT_BYTES_MAX: Final = 1 << 16
"""The longest nonce, personalization or additional input taken; the standard would allow 2^35 bits."""

ENTROPY_BYTES_MIN: Final = 16
"""The least security strength that the standard knows for the hash functions of published cases, 128 bits."""

REQUESTS_MAX: Final = 1 << 12
"""The reseed interval; the standard would allow 2^48 requests."""


class ReseedRequired(Exception):
    """As many requests were answered on one seed as are allowed."""


class HmacDrbg:
    """One instance of the generator.  Not safe to share between threads or across a fork: its owner sees to both.

    ``digest`` names the hash function; the module uses SHA-256 only, other published cases use others.

    >>> first, second = HmacDrbg(bytes(32), bytes(16)), HmacDrbg(bytes(32), bytes(16), b"another")
    >>> first.generate(8).hex(), first.generate(8) == second.generate(8)
    ('0bdb4ee263c00592', False)
    """

    __slots__ = ("_digest", "_key", "_v", "requests")

    def __init__(
        self, entropy_input: bytes, nonce: bytes, personalization: bytes = b"", *, digest: str = "sha256"
    ) -> None:
        """HMAC_DRBG_Instantiate, 10.1.2.3.  `nonce` and `personalization` may be empty as far as the core goes."""
        assert len(entropy_input) >= ENTROPY_BYTES_MIN
        assert len(nonce) <= INPUT_BYTES_MAX
        assert len(personalization) <= INPUT_BYTES_MAX
        size = hashlib.new(digest).digest_size
        self._digest = digest
        self._key = bytearray(size)
        self._v = bytearray(b"\x01" * size)
        self._update(entropy_input + nonce + personalization)
        self.requests = 0

    def reseed(self, entropy_input: bytes, additional_input: bytes = b"") -> None:
        """HMAC_DRBG_Reseed, 10.1.2.4."""
        assert len(entropy_input) >= ENTROPY_BYTES_MIN
        assert len(additional_input) <= INPUT_BYTES_MAX
        self._update(entropy_input + additional_input)
        self.requests = 0

    def generate(self, size: int, additional_input: bytes = b"") -> bytes:
        """HMAC_DRBG_Generate, 10.1.2.5: so many bytes, at most `OUTPUT_BYTES_MAX`.

        Raises `ReseedRequired` when `REQUESTS_MAX` requests were answered since the last seeding.
        """
        assert 0 <= size <= OUTPUT_BYTES_MAX
        assert len(additional_input) <= INPUT_BYTES_MAX
        if self.requests >= REQUESTS_MAX:
            raise ReseedRequired(f"{REQUESTS_MAX} requests were answered on one seed")
        if additional_input:
            self._update(additional_input)
        block, blocks = bytes(self._v), []
        for _ in range(0, size, len(block)):
            block = hmac(self._key, block, self._digest)
            blocks.append(block)
        self._v[:] = block
        self._update(additional_input)
        self.requests += 1
        return b"".join(blocks)[:size]

    def wipe(self) -> None:
        """Overwrites the state.  Copies that Python or OpenSSL made on the way are beyond reach (docs/rng.md)."""
        for secret in (self._key, self._v):
            secret[:] = bytes(len(secret))
        self.requests = REQUESTS_MAX

    def _update(self, provided: bytes) -> None:
        """HMAC_DRBG_Update, 10.1.2.2."""
        for separator in (b"\x00", b"\x01"):
            self._key[:] = hmac(self._key, self._v + separator + provided, self._digest)
            self._v[:] = hmac(self._key, self._v, self._digest)
            if not provided:
                break
