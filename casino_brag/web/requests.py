"""What happens around every request: its identifier, its log line, what goes on record, every answer's headers."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import structlog
from flask import Flask, Response, g, request
from gunicorn.http.errors import ParseException

from casino_brag.errors import Code, ServiceError
from casino_brag.ids import uuid7

BODY_BYTES_MAX: Final = 64 * 1024

PATH_LENGTH_MAX: Final = 200
ADDRESS_LENGTH_MAX: Final = 64
"""Of a longer one so much goes on record."""

_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}")

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
}

log = structlog.get_logger("casino_brag.request")


def watch(app: Flask) -> None:
    """Numbers, times and logs every request, and completes every answer's headers."""
    app.before_request(_begin)
    app.after_request(_end)


def body() -> bytes:
    """This request's body, of at most `BODY_BYTES_MAX`; `malformed_request` when it cannot be read to its end."""
    try:
        content = request.get_data(cache=True)
    except (OSError, ParseException) as broken:
        raise ServiceError(Code.MALFORMED_REQUEST, "The body could not be read to its end.") from broken
    if len(content) < (request.content_length or 0) <= BODY_BYTES_MAX:
        raise ServiceError(Code.MALFORMED_REQUEST, "The body ended before its Content-Length.")
    if len(content) > BODY_BYTES_MAX:
        raise ServiceError(Code.BODY_TOO_LARGE, "A body has at most 64 KiB.")
    return content


def address() -> str:
    """Where this request comes from, as it goes on record."""
    return (request.remote_addr or "local")[:ADDRESS_LENGTH_MAX]


def anonymous_call() -> dict[str, Any]:
    """What goes on record of a request of nobody's: its method, path and address.

    Whoever calls may have written anything, and it is kept for ever.
    """
    return {"method": request.method, "path": quote(request.path)[:PATH_LENGTH_MAX], "address": address()}


def call(body: Mapping[str, Any] | None, granted: bool) -> dict[str, Any]:
    """What goes on record of a request of somebody's: the query too, which never holds a secret, and this body."""
    query = quote(request.query_string, safe="%!$&'()*+,-./:;=?@_~")
    return {**anonymous_call(), "query": query, "body": body, "granted": granted}


def _begin() -> None:
    g.began = time.perf_counter()
    given = request.headers.get("X-Request-ID", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid7())
    trace = _TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        request_id=g.request_id,
        **({} if trace is None else {"trace_id": trace["trace"], "parent_id": trace["span"]}),
    )


def _end(response: Response) -> Response:
    response.headers["X-Request-ID"] = g.request_id
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    log.info(
        "request",
        method=request.method,
        route=None if request.url_rule is None else request.url_rule.rule,
        status=response.status_code,
        problem=g.get("problem"),
        milliseconds=round((time.perf_counter() - g.began) * 1000, 2),
    )
    return response
