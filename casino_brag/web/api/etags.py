"""Changes that name what they change: `ETag` and `If-Match`, as RFC 9110 has them."""

from __future__ import annotations

from typing import Final

from flask import request

from casino_brag.errors import Code, ServiceError

IF_MATCH: Final = {
    "in": "header",
    "name": "If-Match",
    "required": True,
    "description": "The `ETag` of what was read; `*` for whatever it is now.",
    "schema": {"type": "string"},
}

ETAG: Final = {"ETag": {"description": "Names what was answered.", "schema": {"type": "string"}}}
LOCATION: Final = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}


def etag(revision: int) -> str:
    """The tag of a revision."""
    return f'"{revision}"'


def revision_matched(revision: int) -> int:
    """The revision itself where `If-Match` names it, else 0, which nothing ever has; `precondition_required` without.

    Tags are compared strongly, so that a weak one matches nothing.
    """
    tags = request.if_match
    if not tags:
        raise ServiceError(
            Code.PRECONDITION_REQUIRED,
            "Read it, and send the ETag of the answer in an If-Match header: nobody else's change is overwritten then.",
        )
    return revision if str(revision) in tags else 0
