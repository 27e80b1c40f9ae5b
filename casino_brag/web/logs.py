"""Logs: one line of JSON for each event, on standard output.  No body, token, card or amount is ever logged."""

from __future__ import annotations

import logging
import sys

import structlog


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
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
