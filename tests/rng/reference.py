"""HMAC_DRBG with SHA-256 a second time, word for word from SP 800-90A rev. 1, without regard to speed."""

from __future__ import annotations

import hashlib
import hmac


class Reference:
    """10.1.2: a key, a value, and what is done with them.  ``digest`` as in the module."""

    def __init__(
        self, entropy: bytes, nonce: bytes, personalization: bytes = b"", digest: str = "sha256"
    ) -> None:
        self.digest = digest
        size = hashlib.new(digest).digest_size
        self.key, self.v = size * b"\x00", size * b"\x01"
        self.update(entropy + nonce + personalization)

    def hmac(self, text: bytes) -> bytes:
        return hmac.new(self.key, text, self.digest).digest()

    def update(self, provided: bytes) -> None:
        self.key = self.hmac(self.v + b"\x00" + provided)
        self.v = self.hmac(self.v)
        if provided == b"":
            return
        self.key = self.hmac(self.v + b"\x01" + provided)
        self.v = self.hmac(self.v)

    def reseed(self, entropy: bytes, additional_input: bytes = b"") -> None:
        self.update(entropy + additional_input)

    def generate(self, size: int, additional_input: bytes = b"") -> bytes:
        if additional_input != b"":
            self.update(additional_input)
        output = b""
        while len(output) < size:
            self.v = self.hmac(self.v)
            output += self.v
        self.update(additional_input)
        return output[:size]
