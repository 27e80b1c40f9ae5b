"""Requests of staff, which come with a personal access token."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import psycopg
from flask import request

from casino_brag.catalogue.staff import (
    FAILURES_MAX,
    Presented,
    Role,
    TokenState,
    locked_out_seconds,
    presented,
    record_call,
    record_refusal,
)
from casino_brag.errors import Code, ServiceError

_BEARER: Final = re.compile(r"(?i:bearer) +(.+)")

PATH_LENGTH_MAX: Final = 200
"""Of a longer path so much goes on record."""

PROBLEMS: Final = (
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN,
    Code.REQUEST_IN_PROGRESS,
    Code.BUSY,
    Code.DATABASE_UNAVAILABLE,
)
"""What each request of staff can be answered."""


def for_roles(roles: Sequence[Role]) -> list[dict[str, list[str]]]:
    """What a view for staff declares as its security: one of these roles is enough."""
    return [{"staff": [role.value]} for role in roles]


def staff_caller(
    conn: psycopg.Connection[Any], roles: Sequence[Role], body: Mapping[str, Any] | None = None
) -> Presented:
    """Who calls, a person with one of these roles; that is on record before anything is answered, with the body.

    Raises `ServiceError`: unauthenticated (no token, or one that is nobody's, has expired or was revoked; that is on
    record too), rate_limited (such a one from an address that others came from), forbidden.
    """
    token = _BEARER.fullmatch(request.headers.get("Authorization", ""))
    if token is None:
        raise ServiceError(Code.UNAUTHENTICATED, "Send a token of staff: Authorization: Bearer cbs_….")
    caller = presented(conn, token[1])
    if caller is None or caller.state != TokenState.LIVE:
        _refuse_locked_out(conn)
        record_refusal(conn, _address(), caller, _call())
        raise ServiceError(
            Code.UNAUTHENTICATED,
            "The token is not good, or not any more. Ask for one: casino-brag staff token.",
        )
    granted = not set(roles).isdisjoint(caller.roles)
    record_call(conn, caller, {**_call(), "query": _query(), "body": body, "granted": granted})
    if not granted:
        raise ServiceError(Code.FORBIDDEN, f"This is for {' or '.join(roles)}. Ask somebody who is that.")
    return caller


def _refuse_locked_out(conn: psycopg.Connection[Any]) -> None:
    if seconds := locked_out_seconds(conn, _address()):
        raise ServiceError(
            Code.RATE_LIMITED,
            f"{FAILURES_MAX} wrong tokens came from your address within a minute. Wait, or send a good one.",
            retry_after_seconds=seconds,
        )


def _address() -> str:
    return (request.remote_addr or "local")[:64]


def _call() -> dict[str, Any]:
    # Whoever calls may have written anything, and it is kept for ever.
    return {"method": request.method, "path": quote(request.path)[:PATH_LENGTH_MAX], "address": _address()}


def _query() -> str:
    # A token stands in a header and never in the query, which says what was asked for.
    return quote(request.query_string, safe="%!$&'()*+,-./:;=?@_~")
