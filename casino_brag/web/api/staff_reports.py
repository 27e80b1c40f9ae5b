"""Reports over the whole installation, as staff asks for them: JSON, a table, or a page fit to print."""

from __future__ import annotations

from typing import Any, Final

import marshmallow as ma
from flask import Response
from marshmallow import fields

from casino_brag.audit import EntryType
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.reports import pages
from casino_brag.reports.kinds import ReportName
from casino_brag.reports.making import Wanted, WantedWrongly, make_report
from casino_brag.rounds.reports import NO_ACTIVITY, Period
from casino_brag.staff.people import Role
from casino_brag.web.api.docs import PAGE_POLICY
from casino_brag.web.api.fields import one_of, printable
from casino_brag.web.api.problems import StrictBlueprint
from casino_brag.web.api.report_schemas import Times, times_problem
from casino_brag.web.api.staff import PROBLEMS, for_roles, staff_caller
from casino_brag.web.api.tables import wants_csv
from casino_brag.web.service import service

blueprint = StrictBlueprint(
    "staff reports", "staff_reports", url_prefix="/v1", description="Reports over the whole installation."
)

READERS: Final = (Role.AUDITOR, Role.OPERATIONS)

ITEMS_MAX: Final = 10_000
"""The most items of an answer; the command `report` gives more."""

_FORMS: Final = {
    200: {"content": {form: {"schema": {"type": "string"}} for form in ("text/csv", "text/html")}}
}
_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "enum": [name.value for name in ReportName]},
}


class ReportQuery(Times):
    """Of which time and of whom, and in which form."""

    operator = printable(63, metadata={"description": "Of this operator alone, by its name."})
    type = one_of(
        *EntryType,
        metadata={"description": "Of significant events: only this type, of any that the log has."},
    )
    format = one_of(
        "json",
        "csv",
        "html",
        metadata={"description": "Instead of the header `Accept`; `html` is fit to print."},
    )


class ProgramSchema(ma.Schema):
    """Which program made it."""

    version = fields.String(required=True)
    manifest_digest = fields.String(required=True)


class ReportSchema(ma.Schema):
    """A report; what its items have depends on which one it is."""

    report = one_of(*ReportName, required=True)
    title = fields.String(required=True)
    operator = fields.String(required=True, allow_none=True)
    since = fields.String(
        required=True,
        allow_none=True,
        data_key="from",
        metadata={"format": "date-time", "description": "Null in a report of how things stand."},
    )
    until = fields.String(required=True, allow_none=True, data_key="to", metadata={"format": "date-time"})
    made_at = fields.String(required=True, metadata={"format": "date-time"})
    program = fields.Nested(ProgramSchema, required=True)
    activity = one_of("Activity", NO_ACTIVITY, required=True)
    complete = fields.Boolean(
        required=True, metadata={"description": f"False where there are more than {ITEMS_MAX:,} items."}
    )
    totals = fields.List(fields.Dict(), required=True)
    items = fields.List(fields.Dict(), required=True)


@blueprint.route("/reports/<string:name>", parameters=[_NAME])
@blueprint.doc(security=for_roles(READERS), responses=_FORMS)
@blueprint.arguments(ReportQuery, location="query")
@blueprint.response(200, ReportSchema)
@blueprint.problems(Code.NOT_FOUND, Code.INVALID, *PROBLEMS)
def get_report(query: dict[str, Any], name: str) -> Response:
    """A report over all operators, or of one."""
    form = query.get("format") or ("csv" if wants_csv(None) else "json")
    with service().database.connection() as conn:
        staff_caller(conn, READERS)
        if name not in tuple(ReportName):
            raise ServiceError(
                Code.NOT_FOUND, f"There is no such report. There are: {', '.join(ReportName)}."
            )
        if problem := times_problem(query):
            raise ServiceError(Code.INVALID, "See errors for what is wrong with each field.", errors=problem)
        wanted = Wanted(
            period=Period(query["period"]) if "period" in query else None,
            since=query.get("since"),
            until=query.get("until"),
            operator=query.get("operator"),
            types=frozenset({EntryType(query["type"])} if "type" in query else ()),
            limit=pages.ROWS_MAX if form == "html" else ITEMS_MAX,
        )
        try:
            made = make_report(conn, ReportName(name), wanted)
        except SetUpError as refused:
            field = refused.field if isinstance(refused, WantedWrongly) else "operator"
            raise ServiceError(Code.INVALID, str(refused), errors={field: [str(refused)]}) from refused
    match form:
        case "json":
            return Response(made.json(), content_type="application/json")
        case "csv":
            return Response(
                made.csv(),
                content_type="text/csv; charset=utf-8; header=present",
                headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
            )
        case _:
            return Response(
                pages.html(made),
                content_type="text/html; charset=utf-8",
                headers={"Content-Security-Policy": PAGE_POLICY},
            )
