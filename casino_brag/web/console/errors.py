"""Errors of the console: pages that say what happened and what to do, in the look of the others."""

from __future__ import annotations

from typing import Final

from flask import Response, g, request
from werkzeug.exceptions import HTTPException

from casino_brag.errors import Code, ServiceError
from casino_brag.sealing import SealBroken
from casino_brag.watch.events import record_failure
from casino_brag.web.console.drafting import typed
from casino_brag.web.console.forms import posted
from casino_brag.web.console.shell import fragment, is_from_here, render
from casino_brag.web.service import service

_UNREAD: Final = (Code.BODY_TOO_LARGE, Code.MALFORMED_REQUEST, Code.RATE_LIMITED)
"""With these nothing was read of a form."""

_BY_STATUS: Final = {
    400: (Code.MALFORMED_REQUEST, "The request could not be read. Go back and try again."),
    404: (Code.NOT_FOUND, "The address may be mistyped, or what was here may have gone."),
    405: (Code.METHOD_NOT_ALLOWED, "Go back and use the buttons of the page."),
    413: (
        Code.BODY_TOO_LARGE,
        "A form holds at most 64 KiB. Go back and shorten what you typed: it is still there.",
    ),
}


_TITLES: Final = {
    Code.FORBIDDEN: "You may not do this",
    Code.INVALID: "Something is to be put right",
    Code.UNAUTHENTICATED: "You are not signed in",
}
"""What is told to a person otherwise than to a program."""


_PROSE: Final = ("text", "note", "reason")
"""Fields that nobody likes to type twice."""


def refused(error: ServiceError) -> Response:
    """The page of an error that has a code, with what was typed; for htmx a notice to stand where the answer would."""
    g.problem = error.code.value
    meaning = error.meaning
    title = _TITLES.get(error.code, meaning.title)
    if request.headers.get("HX-Request"):
        response = fragment("error_notice.html.j2", status=meaning.status, error=error, title=title)
    else:
        response = render(
            "error.html.j2",
            status=meaning.status,
            error=error,
            meaning=meaning,
            title=title,
            typed=_typed() if error.code not in _UNREAD else {},
            request_id=g.request_id,
        )
    if error.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _typed() -> dict[str, str]:
    """What was typed into a form of ours that came to nothing, by field."""
    if request.method != "POST" or not is_from_here():
        return {}
    form = posted()
    kept = {name: form.value(name) for name in _PROSE if form.value(name)}
    if form.value("tab"):
        kept["text"] = typed(form).text
    return kept


def failed(error: HTTPException) -> Response:
    """The page of an error of the framework's."""
    known = _BY_STATUS.get(error.code or 0)
    return unforeseen(error) if known is None else refused(ServiceError(*known))


def unforeseen(error: Exception) -> Response:
    """The page of a fault of ours, which goes on record."""
    record_failure(service().database.connection, "console", error)
    detail = (
        "The request was not carried out, or its answer was lost. Try again; if it stays so, tell operations."
    )
    if isinstance(error, SealBroken):
        detail = "A stored record cannot be opened. Tell operations."
    return refused(ServiceError(Code.INTERNAL_ERROR, detail))
