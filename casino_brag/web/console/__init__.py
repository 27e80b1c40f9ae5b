"""The staff console: server-made pages at /console.

Each module of ``pages`` has a ``blueprint``, and stands in :data:`PAGES`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from flask import Blueprint, Flask, Response, redirect, request
from werkzeug.exceptions import HTTPException, NotFound

from casino_brag.errors import ServiceError
from casino_brag.web.console import assets, saying, shell
from casino_brag.web.console.errors import failed, refused, unforeseen
from casino_brag.web.console.pages import (
    account,
    approvals,
    audit,
    drafts,
    games,
    live,
    paytables,
    people,
    preview,
    provider,
    reports,
    rng,
    rounds,
    sign_in,
    simulations,
    versions,
)

PAGES: Final[tuple[ModuleType, ...]] = (
    account,
    approvals,
    audit,
    drafts,
    games,
    live,
    paytables,
    people,
    preview,
    provider,
    reports,
    rng,
    rounds,
    sign_in,
    simulations,
    versions,
)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


def register(app: Flask) -> None:
    """Puts the console into the application: its pages, its files, its errors."""
    console = Blueprint("console", __name__, url_prefix="/console")
    for module in PAGES:
        console.register_blueprint(module.blueprint)
    console.add_url_rule("/static/<digest>/<path:name>", "static_file", assets.serve)
    console.add_url_rule("/", "home", lambda: redirect(shell.HOME), strict_slashes=False)
    console.add_url_rule("/<path:anything>", "nowhere", _nowhere, methods=["GET", "POST", "PUT", "DELETE"])
    console.register_error_handler(ServiceError, refused)
    console.register_error_handler(HTTPException, failed)
    console.register_error_handler(Exception, unforeseen)
    console.after_request(saying.keep_said)
    console.after_request(_with_headers)
    app.register_blueprint(console)


def _nowhere(anything: str) -> Response:
    raise NotFound


def _with_headers(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    # A browser that must not say where it comes from says of a form that it comes from nowhere.
    response.headers["Referrer-Policy"] = "same-origin"
    if request.endpoint != "console.static_file":
        response.headers["Cache-Control"] = "no-store"
    return response
