"""Signatures of requests, against values that other programs computed."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.catalogue.signing import matches, signature

BODY = b'{"player": "p", "currency": "GBP", "mode": "demo"}'
VECTORS = {
    "e4e0fd41517114404ee4b5d7e03ae54846bcc1aa4b2f19a9b858c37291e61a22": (
        "sk_test",
        "POST",
        "/v1/operator/sessions",
        "1700000000",
        "0123456789abcdef",
        BODY,
    ),
    "3fd7949b744ab129ce565570bcca8f750e7c7f7473f6a2f6fd61556f9c4cadd3": (
        "sk_test",
        "GET",
        "/v1/operator/players/p/balance?currency=GBP",
        "1700000000",
        "0123456789abcdef",
        b"",
    ),
    "943dcd900eaa72eedf75a5f8625b9226bfd0c5d4db9f0e2626f11cbc1b7e4833": (
        "s\u00e9cret \u20ac",
        "DELETE",
        "/v1/operator/sessions/1",
        "0",
        "!" * 64,
        b"\x00\xff\n",
    ),
    "81821f34cf2e8e39828cae60978b77eb07a6be5beaa368603122df86a7d045e5": (
        "k" * 100,
        "POST",
        "/a%2Fb?c=%C3%A9&d",
        "999999999999",
        "nonce-nonce-nonce",
        b"x" * 100_000,
    ),
}
"""Secret, method, path, timestamp, nonce and body, by what `openssl dgst -sha256` and `openssl mac … HMAC` printed."""

SIGNED = VECTORS[next(iter(VECTORS))]


def hmac_sha256(key: bytes, message: bytes) -> str:
    """HMAC by RFC 2104, from the hash alone."""
    key = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


def message(method: str, path: str, timestamp: str, nonce: str, body: bytes) -> bytes:
    return f"{method}\n{path}\n{timestamp}\n{nonce}\n{hashlib.sha256(body).hexdigest()}".encode()


@pytest.mark.parametrize("printed", VECTORS)
def test_a_signature_is_what_another_program_prints(printed: str) -> None:
    assert signature(*VECTORS[printed]) == f"v1={printed}"


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    path=st.text(st.characters(codec="ascii")),
    nonce=st.text(st.characters(codec="ascii")),
    timestamp=st.integers(0, 10**11),
    body=st.binary(),
)
def test_every_signature_is_the_one_that_the_description_gives(
    secret: str, path: str, nonce: str, timestamp: int, body: bytes
) -> None:
    expected = hmac_sha256(secret.encode(), message("POST", path, str(timestamp), nonce, body))
    assert signature(secret, "POST", path, str(timestamp), nonce, body) == "v1=" + expected


@pytest.mark.parametrize("part", range(6))
def test_a_signature_changes_with_everything_that_is_signed(part: int) -> None:
    changed: list[str | bytes] = list(SIGNED)
    value = changed[part]
    changed[part] = value + b" " if isinstance(value, bytes) else value + "1"
    assert signature(*changed) != signature(*SIGNED)  # type: ignore[arg-type]


def test_parts_cannot_be_moved_across_their_borders() -> None:
    first = signature("s", "POST", "/a", "12", "3", b"")
    assert signature("s", "POST", "/a", "1", "23", b"") != first
    assert signature("s", "POST/", "a", "12", "3", b"") != first


@pytest.mark.parametrize(
    "given_", ["", "v1=", "v1=00", "v2=" + "0" * 64, "0" * 64, "v1=" + "0" * 63 + "\u00e9", "v1=" + "A" * 64]
)
def test_what_is_no_equal_signature_does_not_match(given_: str) -> None:
    assert not matches(given_, signature(*SIGNED))


def test_only_the_signature_itself_matches() -> None:
    right = signature(*SIGNED)
    assert matches(right, right)
    assert not matches(right.upper(), right)
    assert not matches(right + " ", right)
