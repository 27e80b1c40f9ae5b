"""Idempotency keys: read from a request, documented once, and the answers that are given again."""

from __future__ import annotations

import re
from typing import Final

from flask import Response, request

from casino_brag.errors import Code, ServiceError
from casino_brag.wallet.answers import Answer

_KEY: Final = r"[\x20-\x7e]{1,255}"

IDEMPOTENCY_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": True,
    "description": "Names this request, so that sending it again repeats the first answer.",
    "schema": {"type": "string", "pattern": f"^{_KEY}$"},
}


def idempotency_key() -> str:
    """This request's key; `idempotency_key_missing` when there is none that will do."""
    key = request.headers.get("Idempotency-Key", "")
    if not re.fullmatch(_KEY, key):
        raise ServiceError(
            Code.IDEMPOTENCY_KEY_MISSING,
            "Send an Idempotency-Key header of 1 to 255 printable ASCII characters, a new one for each new request.",
        )
    return key


def answered(answer: Answer) -> Response:
    """The stored answer, byte for byte."""
    response = Response(answer.body, status=answer.status, content_type="application/json")
    if answer.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response
