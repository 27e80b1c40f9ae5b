"""Whether the process lives, and whether it can deal."""

from __future__ import annotations

import marshmallow as ma
from flask import Response, jsonify
from marshmallow import fields

from casino_brag.errors import ServiceError
from casino_brag.rounds.readiness import obstacles
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.service import service

blueprint = StrictBlueprint("health", "health", description="Liveness and readiness.")


class HealthSchema(ma.Schema):
    """How it is."""

    status = fields.String(required=True)
    obstacles = fields.List(fields.String(), metadata={"description": "Why no round can be dealt."})


@blueprint.route("/healthz")
@blueprint.response(200, HealthSchema)
@blueprint.problems()
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@blueprint.route("/readyz")
@blueprint.response(200, HealthSchema)
@blueprint.alt_response(503, schema=HealthSchema, description="No round can be dealt.")
@blueprint.problems()
def readyz() -> Response:
    """Rounds can be dealt: records, schema, games and random numbers are all there."""
    try:
        with service().database.connection() as conn:
            found = obstacles(conn, service().house)
    except ServiceError as failure:
        found = [failure.detail]
    response = jsonify({"status": "unavailable", "obstacles": found} if found else {"status": "ok"})
    response.status_code = 503 if found else 200
    return response
