"""What an operator's back end reads of its rounds: each in full, and reports, as JSON or as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
from flask import Response

from casino_brag.catalogue.operators import SigningOperator
from casino_brag.db.clock import rfc3339
from casino_brag.errors import Code, ServiceError
from casino_brag.game.settlement import Spot
from casino_brag.rounds.recall import Filter, list_operator_rounds, read_operator_round
from casino_brag.rounds.reports import (
    ALTERATIONS,
    NO_ACTIVITY,
    PERFORMANCE_COLUMNS,
    Period,
    flat_performance,
    game_performance,
    interrupted,
    interrupted_totals,
    period_start,
    told,
)
from casino_brag.web.api.lists import CSV, listed, page
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.report_schemas import (
    AlterationSchema,
    AlterationsQuery,
    AlterationsReportSchema,
    InterruptedQuery,
    InterruptedReportSchema,
    InterruptedSchema,
    OperatorRoundPageSchema,
    OperatorRoundQuery,
    OperatorRoundSchema,
    PerformanceQuery,
    PerformanceReportSchema,
)
from casino_brag.web.api.signed import HEADERS, PROBLEMS, SIGNED, signing_caller
from casino_brag.web.api.tables import table, wants_csv
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "reports",
    "reports",
    url_prefix="/v1/operator",
    description="An operator's rounds in full, and its reports.",
)


@blueprint.route("/rounds", parameters=HEADERS)
@blueprint.doc(security=SIGNED, responses=CSV)
@blueprint.arguments(OperatorRoundQuery, location="query")
@blueprint.response(200, OperatorRoundPageSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_rounds(query: dict[str, Any]) -> Response | dict[str, Any]:
    """Your rounds in full, newest first."""
    names = ("player", "state", "game", "since", "until", "mode", "test")
    wanted = Filter(**{name: query[name] for name in names if name in query})
    with service().database.connection() as conn:
        operator_id = signing_caller(conn).operator_id

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return list_operator_rounds(conn, operator_id, wanted, after=after, limit=limit)

    if wants_csv(query.get("format")):
        return listed("rounds", ROUND_COLUMNS, read, "round_id", query, flat=flat_round)
    return page(read, "round_id", query)


@blueprint.route("/rounds/<uuid:round_id>", parameters=HEADERS)
@blueprint.doc(security=SIGNED)
@blueprint.response(200, OperatorRoundSchema)
@blueprint.problems(*PROBLEMS, Code.ROUND_NOT_FOUND)
def get_round(round_id: UUID) -> dict[str, Any]:
    """One of your rounds in full, whatever its mode."""
    with service().database.connection() as conn:
        found = read_operator_round(conn, signing_caller(conn).operator_id, round_id)
    if found is None:
        raise ServiceError(
            Code.ROUND_NOT_FOUND,
            "You have no round of this id. See GET /v1/operator/rounds for those you have.",
        )
    return found


@blueprint.route("/reports/game-performance", parameters=HEADERS)
@blueprint.doc(security=SIGNED, responses=CSV)
@blueprint.arguments(PerformanceQuery, location="query")
@blueprint.response(200, PerformanceReportSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_game_performance(query: dict[str, Any]) -> Response | dict[str, Any]:
    """What each version of each game took and paid."""
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        since, until = _time_of(conn, operator, query)
        items = game_performance(conn, operator.operator_id, since, until)
    if wants_csv(query.get("format")):
        of = {"from": rfc3339(since), "to": rfc3339(until)}
        rows = [of | flat_performance(item) for item in items] or [of | {"game": NO_ACTIVITY}]
        return table("game-performance", ("from", "to", *PERFORMANCE_COLUMNS), [rows])
    return _report(operator, items, since=since, until=until)


@blueprint.route("/reports/interrupted", parameters=HEADERS)
@blueprint.doc(security=SIGNED, responses=CSV)
@blueprint.arguments(InterruptedQuery, location="query")
@blueprint.response(200, InterruptedReportSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_interrupted(query: dict[str, Any]) -> Response | dict[str, Any]:
    """Real rounds that are unfinished, and what is held for them."""
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        before = operator.read_at - timedelta(minutes=query["minutes"])
        totals = interrupted_totals(conn, operator.operator_id, before)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return interrupted(conn, operator.operator_id, before, after=after, limit=limit)

    if wants_csv(query.get("format")):
        return listed("interrupted", _INTERRUPTED_COLUMNS, read, "round_id", query, stating=True)
    found = page(read, "round_id", query)
    return found | {"totals": totals} | _report(operator, found["items"])


@blueprint.route("/reports/alterations", parameters=HEADERS)
@blueprint.doc(security=SIGNED, responses=CSV)
@blueprint.arguments(AlterationsQuery, location="query")
@blueprint.response(200, AlterationsReportSchema)
@blueprint.problems(Code.INVALID, *PROBLEMS)
def get_alterations(query: dict[str, Any]) -> Response | dict[str, Any]:
    """What was changed by hand, for you or for all operators, by whom and why."""
    with service().database.connection() as conn:
        operator = signing_caller(conn)
        since, until = _time_of(conn, operator, query)

    def read(conn: psycopg.Connection[Any], after: Any, limit: int) -> list[dict[str, Any]]:
        return told(conn, ALTERATIONS, operator.operator_id, since, until, after=after, limit=limit)

    if wants_csv(query.get("format")):
        return listed("alterations", _ALTERATION_COLUMNS, read, "entry_id", query, stating=True)
    found = page(read, "entry_id", query)
    return found | _report(operator, found["items"], since=since, until=until)


def _time_of(
    conn: psycopg.Connection[Any], operator: SigningOperator, query: Mapping[str, Any]
) -> tuple[datetime, datetime]:
    if "since" in query:
        return query["since"], query.get("until", operator.read_at)
    period = Period(query.get("period", Period.DAY))
    return period_start(conn, operator.operator_id, period, operator.read_at), operator.read_at


def _report(operator: SigningOperator, items: list[dict[str, Any]], **times: datetime) -> dict[str, Any]:
    return {
        "made_at": rfc3339(operator.read_at),
        "activity": "Activity" if items else NO_ACTIVITY,
        "items": items,
        **{name: rfc3339(moment) for name, moment in times.items()},
    }


ROUND_COLUMNS: Final = (
    *("round_id", "player", "session_id", "channel", "jurisdiction", "test", "mode", "currency", "game"),
    *("paytable_version", "paytable_digest", "rng_digest", "client_seed", "state", "opened_at", "settled_at"),
    *("player_cards", "player_category", "dealer_cards", "dealer_category", "dealer_qualified"),
    *("decision", "result"),
    *(f"{spot}_{what}_minor" for spot in Spot for what in ("stake", "payout")),
    *("total_staked_minor", "total_payout_minor", "net_minor", "payout_state"),
    *("voided_at", "void_reason", "void_approver", "refund_minor", "compensation_minor"),
)
"""What a table says of each round."""


def flat_round(found: Mapping[str, Any]) -> dict[str, Any]:
    """A round in full as a row of those columns."""
    void = found["void"] or {}
    return {
        **found,
        **_paytable(found),
        "player_cards": " ".join(found["player_cards"]),
        "dealer_cards": " ".join(found["dealer_cards"] or ()),
        **{
            f"{wager['spot']}_{what}_minor": wager.get(f"{what}_minor")
            for wager in found["wagers"]
            for what in ("stake", "payout")
        },
        "voided_at": void.get("voided_at"),
        "void_reason": void.get("reason"),
        "void_approver": void.get("approver"),
        "refund_minor": void.get("refund_minor"),
        "compensation_minor": void.get("compensation_minor"),
    }


def _paytable(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"paytable_version": of["paytable"]["version"], "paytable_digest": of["paytable"]["digest"]}


_INTERRUPTED_COLUMNS: Final = tuple(InterruptedSchema().fields)

_ALTERATION_COLUMNS: Final = tuple(AlterationSchema().fields)
