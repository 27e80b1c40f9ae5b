"""Logs: one line of JSON for each event, on standard output.  No body, token, card or amount is ever logged."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog


class _Forgiving:
    """A stream whose disk may be full: a line that cannot be written is lost, and what it told of goes on.

    What has to be on record is in the audit log, which is written in the transaction of what it tells.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def configure(log_format: str = "json") -> None:
    """Sets the process's log up; `log_format` is ``json`` or ``console`` (for a person)."""
    renderer = (
        structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())
        if log_format == "console"
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Forgiving(sys.stdout))),
        cache_logger_on_first_use=True,
    )
