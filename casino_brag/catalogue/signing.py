"""Signed requests: who calls, when, once, and exactly this body."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

ACCEPTED_SECONDS: Final = 300
"""How far a timestamp may lie from our clock, either way."""


def signature(secret: str, method: str, path: str, timestamp: str, nonce: str, body: bytes) -> str:
    """The value of ``X-Signature``.

    HMAC-SHA256 under the secret's UTF-8 bytes over method, path with query, timestamp, nonce and the hex SHA-256
    of the raw body, joined by line feeds.

    >>> signature("secret", "GET", "/v1/x", "1700000000", "0123456789abcdef", b"")[:11]
    'v1=f052d6cc'
    """
    message = "\n".join((method, path, timestamp, nonce, hashlib.sha256(body).hexdigest()))
    return "v1=" + hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()


def matches(given: str, expected: str) -> bool:
    """Whether two signatures are equal, in time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), expected.encode())
