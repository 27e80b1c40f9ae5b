"""The gunicorn worker: bounded in every wait, as discreet as the service, and patient when it stops."""

from __future__ import annotations

import logging
import select
import socket
import struct
import time
from contextlib import suppress
from typing import Any, Final

import structlog
from gunicorn.workers.gthread import ThreadWorker

from casino_brag.errors import Code, ServiceError
from casino_brag.web.api.problems import MEDIA_TYPE, problem_text

CLIENT_SECONDS: Final = 5
TAKING_SECONDS_MAX: Final = 2.0

log = structlog.get_logger("casino_brag.worker")


class DrainingWorker(ThreadWorker):  # type: ignore[misc]
    """Takes the connections that the kernel has already made for it, and only then lets go of the port.

    The stock worker leaves them where they are, and the kernel resets them when the last worker ends: to their
    clients that is a request cut.
    """

    alive: bool

    def init_process(self) -> None:
        """Bounds how long a client may keep a thread waiting for the rest of its request."""
        for listener in self.sockets:  # accepted connections have what their listener has
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                listener.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", CLIENT_SECONDS, 0))
        self.log.error_log.addFilter(_is_about_no_silent_client)
        super().init_process()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answers a request that is none.  The stock answer and log line repeat what was sent, tokens included."""
        log.warning("malformed", kind=type(exc).__name__)
        error = ServiceError(Code.MALFORMED_REQUEST, "The request is not HTTP as this service reads it.")
        body = problem_text(error).encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nCache-Control: no-store\r\n"
            f"Content-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with suppress(OSError):
            client.sendall(head.encode() + body)

    def is_parent_alive(self) -> bool:
        """Stops as told to when the master is gone.  The stock worker stays `alive`, and so does every connection.

        The kernel sends a worker no SIGTERM whose master died before it had asked for one.
        """
        if not super().is_parent_alive():
            self.alive = False
        return self.alive

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


def _is_about_no_silent_client(record: logging.LogRecord) -> bool:
    # gunicorn would write a stack trace for each client that falls silent, as many as somebody cares to send.
    return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))
