"""Sealing: what must not be read before its time, or by anyone who has only the database.

AES-256-GCM-SIV (RFC 8452), which keeps its promise even if a nonce should ever be used twice.  A sealed value
names its key, so that keys can be replaced while old values are still opened, and is bound to a context, so that
it opens nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

NONCE_BYTES: Final = 12


class SealBroken(Exception):
    """A sealed value does not open: its key is unknown, or it was altered or moved."""


class Sealer:
    """Seals under the first of its keys and opens under any of them.

    >>> sealer = Sealer({"k1": bytes(32)})
    >>> sealer.open(sealer.seal(b"4s 5s 6s", context="round 1"), context="round 1")
    b'4s 5s 6s'
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        assert keys
        self._ciphers = {key_id: AESGCMSIV(key) for key_id, key in keys.items()}
        self._current = next(iter(keys))

    def seal(self, value: bytes, *, context: str) -> bytes:
        """The sealed value: key id, a zero byte, nonce, ciphertext with its tag."""
        nonce = os.urandom(NONCE_BYTES)
        ciphertext = self._ciphers[self._current].encrypt(nonce, value, context.encode())
        return self._current.encode() + b"\0" + nonce + ciphertext

    def is_current(self, sealed: bytes) -> bool:
        """Whether a value is sealed under the key that seals now."""
        return bytes(sealed).partition(b"\0")[0] == self._current.encode()

    def open(self, sealed: bytes, *, context: str) -> bytes:
        """The value sealed for this context; `SealBroken` when there is none."""
        key_id, _, rest = bytes(sealed).partition(b"\0")
        cipher = self._ciphers.get(key_id.decode(errors="replace"))
        if cipher is None:
            raise SealBroken("The key of a sealed value is not among CASINO_BRAG_SEAL_KEYS")
        try:
            return cipher.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], context.encode())
        except (InvalidTag, ValueError) as broken:
            raise SealBroken("A sealed value was altered, or belongs elsewhere") from broken
