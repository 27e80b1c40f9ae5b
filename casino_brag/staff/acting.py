"""How persons act on record: each says why, and the database has the last word on whether they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg

from casino_brag.errors import Code, Errors, ServiceError

REASON_LENGTH_MAX: Final = 500

_WHY: Final = {
    Code.FORBIDDEN: "This needs a role that you do not have, or not any more.",
    Code.PRECONDITION_FAILED: "Somebody else has changed it meanwhile: read it anew.",
    Code.WRONG_STATE: "Somebody else has changed its state meanwhile: read it anew.",
    Code.INVALID: "It will not do any more: read it anew.",
}


def stated(errors: Errors, key: str, text: str, longest: int = REASON_LENGTH_MAX) -> str:
    """A reason or the like, without the space around it; where it will not do, that is added to the errors."""
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > longest or not text.replace("\n", "").isprintable():
        errors.setdefault(key, []).append(f"give a text of 1 to {longest} characters")
    return text


def reason_given(reason: str) -> str:
    """A reason, without the space around it; `invalid` where it will not do."""
    errors = Errors()
    reason = stated(errors, "reason", reason)
    if errors:
        raise ServiceError(Code.INVALID, "Say why, in a few words.", errors=errors)
    return reason


def reason_if_any(reason: str) -> str | None:
    """A reason where one may be left out: None for a text without any."""
    return reason_given(reason) if reason.strip() else None


def carry_out(
    conn: psycopg.Connection[Any], query: str, values: Sequence[Any], why: Mapping[Code, str]
) -> None:
    """Has a function of the database do something, or raises its refusal; `why` says more of some."""
    row = conn.execute(query, values).fetchone()
    assert row is not None
    if row[0] != "done":
        code = Code(row[0])
        raise ServiceError(code, {**_WHY, **why}[code])


def changed_meanwhile() -> ServiceError:
    """The error for who acts on what is not there any more as it was read."""
    return ServiceError(Code.PRECONDITION_FAILED, _WHY[Code.PRECONDITION_FAILED])
