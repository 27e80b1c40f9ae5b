"""Requests of staff, which come with a personal access token."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from flask import request

from casino_brag.errors import Code, ServiceError
from casino_brag.staff.people import (
    FAILURES_MAX,
    Presented,
    Role,
    TokenState,
    locked_out_seconds,
    presented,
    record_call,
    record_refusal,
)
from casino_brag.web.requests import address, anonymous_call, call

_BEARER: Final = re.compile(r"(?i:bearer) +(.+)")

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
    conn: psycopg.Connection[Any],
    roles: Sequence[Role],
    body: Mapping[str, Any] | None = None,
    *,
    recorded: bool = True,
) -> Presented:
    """Who calls, a person with one of these roles; that is on record before anything is answered, with the body.

    A call that is not `recorded`, since it is made at every keystroke, is on record where it is refused.

    Raises `ServiceError`: unauthenticated (no token, or one that is nobody's, has expired or was revoked; that is on
    record too), rate_limited (such a one from an address that others came from), forbidden.
    """
    token = _BEARER.fullmatch(request.headers.get("Authorization", ""))
    if token is None:
        raise ServiceError(Code.UNAUTHENTICATED, "Send a token of staff: Authorization: Bearer cbs_….")
    caller = presented(conn, token[1])
    if caller is None or caller.state != TokenState.LIVE:
        _refuse_locked_out(conn)
        record_refusal(conn, address(), caller, anonymous_call())
        raise ServiceError(
            Code.UNAUTHENTICATED,
            "The token is not good, or not any more. Ask for one: casino-brag staff token.",
        )
    granted = not set(roles).isdisjoint(caller.roles)
    if recorded or not granted:
        record_call(conn, caller.actor, caller.read_at, {"token_id": caller.token_id, **call(body, granted)})
    if not granted:
        raise ServiceError(Code.FORBIDDEN, f"This is for {' or '.join(roles)}. Ask somebody who is that.")
    return caller


def _refuse_locked_out(conn: psycopg.Connection[Any]) -> None:
    if seconds := locked_out_seconds(conn, address()):
        raise ServiceError(
            Code.RATE_LIMITED,
            f"{FAILURES_MAX} wrong tokens came from your address within a minute. Wait, or send a good one.",
            retry_after_seconds=seconds,
        )
