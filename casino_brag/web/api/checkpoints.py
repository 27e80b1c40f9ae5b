"""The public face of the audit log: its checkpoints, the keys that sign them, and that one follows from another."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from flask import Response

from casino_brag.audit.listing import list_checkpoints
from casino_brag.audit.proving import consistency
from casino_brag.audit.records import StoredCheckpoint, checkpoint_of, newest_checkpoint, verifier_keys
from casino_brag.errors import Code, ServiceError
from casino_brag.web.api.compliance_schemas import (
    CheckpointPageSchema,
    CheckpointQuery,
    ConsistencyProofSchema,
    ConsistencyQuery,
    KeyPageSchema,
)
from casino_brag.web.api.lists import page
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "log", "log", url_prefix="/v1/audit", description="What the audit log was, signed: for anyone."
)

PROBLEMS: Final = (Code.BUSY, Code.DATABASE_UNAVAILABLE)

_NOTE: Final = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@blueprint.route("/checkpoints")
@blueprint.arguments(CheckpointQuery, location="query")
@blueprint.response(200, CheckpointPageSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_checkpoints(query: dict[str, Any]) -> dict[str, Any]:
    """The signed checkpoints, newest first."""

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return list_checkpoints(conn, after=after, limit=limit)

    return page(read, "tree_size", query)


@blueprint.route("/checkpoints/latest")
@blueprint.doc(responses=_NOTE)
@blueprint.response(200)
@blueprint.problems(Code.NOT_FOUND, *PROBLEMS)
def get_latest_checkpoint() -> Response:
    """The newest checkpoint, as the signed note that it is."""
    with service().database.connection() as conn:
        newest = checkpoint(conn, None)
    return Response(newest.note, content_type="text/plain; charset=utf-8")


@blueprint.route("/keys")
@blueprint.response(200, KeyPageSchema)
@blueprint.problems(*PROBLEMS)
def get_keys() -> dict[str, Any]:
    """The keys that have signed checkpoints.  Compare them with what you were given elsewhere."""
    with service().database.connection() as conn:
        keys = verifier_keys(conn)
    return {"items": [{"verifier_key": key.text()} for key in keys], "next_cursor": None}


@blueprint.route("/proof/consistency")
@blueprint.arguments(ConsistencyQuery, location="query")
@blueprint.response(200, ConsistencyProofSchema)
@blueprint.problems(Code.NOT_FOUND, Code.INVALID, *PROBLEMS)
def get_consistency(query: dict[str, Any]) -> dict[str, Any]:
    """That the tree of a newer checkpoint begins with that of an older one."""
    with service().database.connection() as conn:
        return consistency(conn, *(checkpoint(conn, query[name]) for name in ("old", "new")))


def checkpoint(conn: psycopg.Connection[Any], size: int | None) -> StoredCheckpoint:
    """The checkpoint of a size, the newest for None; `not_found` where there is none."""
    found = newest_checkpoint(conn) if size is None else checkpoint_of(conn, size)
    if found is None:
        raise ServiceError(
            Code.NOT_FOUND,
            "There is no such checkpoint. Those there are: GET /v1/audit/checkpoints; one is made within seconds.",
        )
    return found
