"""Requests of operators' back ends, which are signed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from flask import request

from casino_brag.catalogue.operators import SigningOperator, signing_operator, take_nonce
from casino_brag.catalogue.signing import ACCEPTED_SECONDS, matches, signature
from casino_brag.errors import Code, ServiceError
from casino_brag.web.requests import body
from casino_brag.web.service import service

_NONCE: Final = re.compile(r"[\x21-\x7e]{16,64}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_NAME: Final = re.compile(r"[\x21-\x7e]{1,64}")

SIGNED: Final[list[dict[str, list[str]]]] = [{"signature": []}]
"""What a view of such requests declares as its security ..."""

PROBLEMS: Final = (
    Code.UNAUTHENTICATED,
    Code.SIGNATURE_INVALID,
    Code.NONCE_REUSED,
    Code.REQUEST_IN_PROGRESS,
    Code.BUSY,
    Code.DATABASE_UNAVAILABLE,
)
"""... and what each of them can be answered."""

HEADERS: Final = [
    {"in": "header", "name": name, "required": True, "description": description, "schema": schema}
    for name, description, schema in (
        ("X-Operator", "The operator's name.", {"type": "string", "maxLength": 64}),
        ("X-Key-Id", "Which of its keys signs.", {"type": "string", "maxLength": 64}),
        ("X-Timestamp", "Unix seconds, within 300 of ours.", {"type": "string", "pattern": "^[0-9]{1,12}$"}),
        (
            "X-Nonce",
            "Used once.",
            {"type": "string", "minLength": 16, "maxLength": 64, "pattern": r"^[\x21-\x7e]+$"},
        ),
    )
]


def signing_caller(conn: psycopg.Connection[Any]) -> SigningOperator:
    """The operator that signed this request, whose nonce is used up by this call.

    Raises `ServiceError`: unauthenticated (headers missing, nobody's key), signature_invalid (also: too old),
    nonce_reused.
    """
    name, key_id = _header("X-Operator", _NAME), _header("X-Key-Id", _NAME)
    timestamp, nonce = _header("X-Timestamp", _TIMESTAMP), _header("X-Nonce", _NONCE)
    operator = signing_operator(conn, name, key_id)
    if operator is None:
        raise ServiceError(Code.UNAUTHENTICATED, "This operator has no such live key.")
    expected = signature(
        operator.secret(service().house.sealer),
        request.method,
        _target(),
        timestamp,
        nonce,
        body(),
    )
    if not matches(request.headers.get("X-Signature", ""), expected):
        raise ServiceError(
            Code.SIGNATURE_INVALID,
            "Sign method, path with query, timestamp, nonce and the body's SHA-256; see docs.",
        )
    if abs(operator.read_at.timestamp() - int(timestamp)) > ACCEPTED_SECONDS:
        raise ServiceError(
            Code.SIGNATURE_INVALID,
            f"The timestamp is more than {ACCEPTED_SECONDS} s from our clock. Set the clock and sign again.",
        )
    accepted_until = datetime.fromtimestamp(int(timestamp) + ACCEPTED_SECONDS + 1, UTC)
    if not take_nonce(conn, operator.operator_id, nonce, accepted_until):
        raise ServiceError(Code.NONCE_REUSED, "This nonce was used before. Sign again with a new one.")
    return operator


def _header(name: str, pattern: re.Pattern[str]) -> str:
    value = request.headers.get(name, "")
    if not pattern.fullmatch(value):
        raise ServiceError(
            Code.UNAUTHENTICATED, f"Sign the request: its header {name} is missing or malformed."
        )
    return value


def _target() -> str:
    # The path as it was sent, before anybody decoded it: that is what the caller signed.
    return str(request.environ["RAW_URI"])
