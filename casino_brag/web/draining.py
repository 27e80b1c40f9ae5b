"""A gunicorn worker that, when it stops, answers whoever has got through to it and frees the port at once."""

from __future__ import annotations

import select
import time
from typing import Final

from gunicorn.workers.gthread import ThreadWorker

TAKING_SECONDS_MAX: Final = 2.0


class DrainingWorker(ThreadWorker):  # type: ignore[misc]
    """Takes the connections that the kernel has already made for it, and only then lets go of the port.

    The stock worker leaves them where they are, and the kernel resets them when the last worker ends: to their
    clients that is a request cut.
    """

    alive: bool

    def set_accept_enabled(self, enabled: bool) -> None:
        """Starts or stops taking connections; when the worker stops, for good."""
        super().set_accept_enabled(enabled)
        if enabled or self.alive:
            return
        until = time.monotonic() + TAKING_SECONDS_MAX
        for listener in self.sockets:
            listener.setblocking(False)
            while time.monotonic() < until and select.select([listener], [], [], 0)[0]:
                self.accept(listener)
            listener.close()
