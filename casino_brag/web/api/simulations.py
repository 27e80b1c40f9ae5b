"""Simulations that staff queues, follows and cancels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.catalogue.simulations import (
    Simulation,
    cancel_simulation,
    list_simulations,
    queue_simulation,
    read_simulation,
)
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.odds.strategies import Strategy
from casino_brag.staff.people import Role
from casino_brag.web.api.lists import page
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.simulation_schemas import (
    SimulationDetailSchema,
    SimulationPageSchema,
    SimulationQuery,
    SimulationRequest,
    SimulationSchema,
)
from casino_brag.web.api.staff import PROBLEMS, for_roles, staff_caller
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "simulations", "simulations", url_prefix="/v1", description="Paytables played by the thousand million."
)

EVERYONE: Final = tuple(Role)

_CHANGING: Final = (
    Code.NOT_FOUND,
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.MALFORMED_REQUEST,
    Code.INVALID,
    *PROBLEMS,
)


@blueprint.route("/simulations", methods=["POST"])
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.arguments(SimulationRequest)
@blueprint.response(202, SimulationDetailSchema)
@blueprint.problems(*_CHANGING)
def post_simulation(body: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Queue a simulation of a version or of a draft."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, EVERYONE, body)
        if {"version", "draft"} <= body.keys():
            told = "Give a version or a draft."
            raise ServiceError(Code.INVALID, told, errors={"draft": [told]})
        seed = body.get("seed")
        queued = queue_simulation(
            conn,
            caller.person,
            body["game"],
            rounds=body["rounds"],
            version=body.get("version"),
            draft=body.get("draft"),
            strategy=Strategy.parse(body["strategy"]),
            seed=None if seed is None else bytes.fromhex(seed),
        )
    return _in_detail(queued), 202, {"Location": f"/v1/simulations/{queued.simulation_id}"}


@blueprint.route("/simulations")
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.arguments(SimulationQuery, location="query")
@blueprint.response(200, SimulationPageSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_simulations(query: dict[str, Any]) -> dict[str, Any]:
    """All simulations, newest first."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return [_told(found) for found in list_simulations(conn, after=after, limit=limit)]

    return page(read, "simulation_id", query)


@blueprint.route("/simulations/<uuid:simulation_id>")
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.response(200, SimulationDetailSchema)
@blueprint.problems(Code.NOT_FOUND, *PROBLEMS)
def get_simulation(simulation_id: UUID) -> dict[str, Any]:
    """One simulation: its progress, the figures so far beside the exact ones, its course and its verdict."""
    with service().database.connection() as conn:
        staff_caller(conn, EVERYONE)
        return _in_detail(read_simulation(conn, simulation_id))


@blueprint.route("/simulations/<uuid:simulation_id>/cancel", methods=["POST"])
@blueprint.doc(security=for_roles(EVERYONE))
@blueprint.response(200, SimulationSchema)
@blueprint.problems(Code.NOT_FOUND, Code.WRONG_STATE, *PROBLEMS)
def post_cancel(simulation_id: UUID) -> dict[str, Any]:
    """End a simulation that waits or is being played."""
    with service().database.connection() as conn:
        caller = staff_caller(conn, EVERYONE)
        return _told(cancel_simulation(conn, caller.person, simulation_id))


def _told(found: Simulation) -> dict[str, Any]:
    return {
        "simulation_id": found.simulation_id,
        "game": found.game,
        "version": found.version,
        "draft": found.draft,
        "digest": found.digest,
        "strategy": found.strategy,
        "rounds": found.rounds,
        "seed": found.seed.hex(),
        "state": found.state.value,
        "queued_by": found.queued_by,
        "queued_at": rfc3339(found.queued_at),
        "begun_at": None if found.begun_at is None else rfc3339(found.begun_at),
        "ended_at": None if found.ended_at is None else rfc3339(found.ended_at),
        "rounds_done": found.rounds_done,
        "conclusion": found.conclusion,
        "failure": found.failure,
    }


def _in_detail(found: Simulation) -> dict[str, Any]:
    return _told(found) | {"result": _decimals(found.result), "course": _decimals(found.course)}


def _decimals(value: Any) -> Any:
    """The same with every fraction as a text of eight places."""
    match value:
        case float():
            return f"{value:.8f}"
        case Mapping():
            return {name: _decimals(item) for name, item in value.items()}
        case list():
            return [_decimals(item) for item in value]
        case _:
            return value
