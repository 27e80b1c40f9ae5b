"""The wallet's HTTP server: one process, a thread for each call, an orderly end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from flask import Flask
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from casino_brag.errors import SetUpError

_BACKLOG: Final = 128


class _Handler(WSGIRequestHandler):
    """Serves one call and closes; a caller who sends or takes nothing for some seconds is left."""

    protocol_version = "HTTP/1.1"  # so that an answer that ends early is seen to
    timeout = 10

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Says nothing: the statement lists what was done."""


@contextmanager
def served(app: Flask, host: str, port: int, stopping: threading.Event) -> Iterator[BaseWSGIServer]:
    """Serves for the length of the block; then sets `stopping`, and ends when every running call has.

    `SetUpError` when the port cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as refused:
        raise SetUpError(
            f"{host}:{port} cannot be listened on: {refused.strerror}. Choose another with --port or --host."
        ) from refused
    with listening:
        server = make_server(host, port, app, threaded=True, request_handler=_Handler, fd=listening.fileno())
    server.daemon_threads = False  # type: ignore[attr-defined] # so that closing the server waits for calls
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield server
    finally:
        stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()
