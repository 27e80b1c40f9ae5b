"""Cross-origin calls: pages of the origins that operators registered may call everything but the operators' API."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Final

from flask import Flask, Response, request

from casino_brag.catalogue.operators import is_registered_origin
from casino_brag.errors import ServiceError
from casino_brag.web.service import service

REMEMBERED_SECONDS: Final = 30.0
REMEMBERED_MAX: Final = 1024
ORIGIN_MAX: Final = 300

_HEADERS: Final = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, X-Request-ID, traceparent",
    "Access-Control-Expose-Headers": "Idempotency-Replayed, Retry-After, X-Request-ID",
    "Access-Control-Max-Age": "600",
}


class Origins:
    """Which origins are registered, asked of the database at most once in a while."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, bool]] = {}
        self._lock = threading.Lock()

    def registered(self, origin: str) -> bool:
        """Whether an operator registered this origin; what was known before when the database does not answer."""
        now = time.monotonic()
        with self._lock:
            asked, answer = self._known.get(origin, (float("-inf"), False))
        if now - asked < REMEMBERED_SECONDS:
            return answer
        with suppress(ServiceError), service().database.connection() as conn:
            answer = is_registered_origin(conn, origin)
        with self._lock:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[origin] = (now, answer)
        return answer


def allow(app: Flask) -> None:
    """Adds the headers that let registered pages call."""
    origins = Origins()

    @app.after_request
    def add_headers(response: Response) -> Response:
        if not request.path.startswith("/v1/") or request.path.startswith("/v1/operator/"):
            return response
        response.vary.add("Origin")
        origin = request.headers.get("Origin", "")
        if origin and len(origin) <= ORIGIN_MAX and origins.registered(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            for name, value in _HEADERS.items():
                response.headers[name] = value
        return response
