"""Rate limits: a caller that asks too often is told when to come back.

Each worker keeps its own account of callers, so a caller may have as many times the rate as there are workers; the
point is that one runaway client cannot take all threads, not an exact figure.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Final

from flask import Flask, request

from casino_brag.errors import Code, ServiceError

CALLERS_MAX: Final = 10_000
BURST_SECONDS: Final = 2
"""How many seconds' worth of requests a caller who was quiet may send at once."""


class Buckets:
    """A token bucket for each caller: full at first, filled at `per_second`, emptied by one a request."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._burst = per_second * BURST_SECONDS
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str, now: float) -> bool:
        """Whether the caller may go on.  `now` is a monotonic time in seconds."""
        with self._lock:
            level, since = self._levels.pop(caller, (float(self._burst), now))
            level = min(self._burst, level + (now - since) * self._per_second)
            taken = level >= 1
            self._levels[caller] = (level - taken, now)
            while len(self._levels) > CALLERS_MAX:
                self._levels.popitem(last=False)
            return taken


def limit(app: Flask, per_second: int) -> None:
    """Limits each caller of /v1 and /console to `per_second` requests a second in this worker; 0 is no limit."""
    if per_second == 0:
        return
    buckets = Buckets(per_second)

    @app.before_request
    def take() -> None:
        if not request.path.startswith(("/v1/", "/console")):
            return
        # Who calls is not proven yet: a name that somebody borrows is another caller's from another address.
        name = request.headers.get("Authorization") or request.headers.get("X-Operator") or ""
        if not buckets.take(f"{request.remote_addr} {name[:200]}", time.monotonic()):
            raise ServiceError(
                Code.RATE_LIMITED,
                f"More than {per_second} requests a second. Send this one again a second later.",
            )
