"""The console's cookies: sent to its pages alone, and given to no script and to no other site."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from flask import Response, request

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def put(response: Response, name: str, value: str, max_age: int | None = None) -> Response:
    """The same answer, which has the browser keep a value for `max_age` seconds, or for as long as it runs."""
    response.set_cookie(
        name,
        value,
        max_age=max_age,
        path="/console",
        httponly=True,
        samesite="Strict",
        secure=not on_this_machine(),
    )
    return response


def drop(response: Response, name: str) -> Response:
    """The same answer, which has the browser forget a value."""
    response.delete_cookie(name, path="/console", httponly=True, samesite="Strict")
    return response


def on_this_machine() -> bool:
    """Whether the browser is on the machine of the service itself; all others come over TLS, and cookies over nothing
    else."""
    return request.scheme == "http" and urlsplit(f"//{request.host}").hostname in LOOPBACK


def origin() -> str:
    """How the browser calls this service.  Whatever ends TLS speaks plain HTTP to us, so the request's scheme does not
    say."""
    return f"{'http' if on_this_machine() else 'https'}://{request.host}"
