"""Reports over the whole installation: made for a time, read here, and downloaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import psycopg
from flask import Blueprint, Response, request

from casino_brag.audit import EntryType
from casino_brag.catalogue.operators import operator_names
from casino_brag.errors import Code, ServiceError, SetUpError
from casino_brag.odds.pages.parts import Table
from casino_brag.reports.kinds import KINDS, SIGNIFICANT, Kind, ReportName
from casino_brag.reports.making import Report, Wanted, WantedWrongly, make_report
from casino_brag.reports.pages import ROWS_MAX, html, parts, setting, shown
from casino_brag.rounds.reports import Period
from casino_brag.staff.access import SignedIn
from casino_brag.staff.people import Role
from casino_brag.web.console.forms import Form, asked
from casino_brag.web.console.looks import money, spoken
from casino_brag.web.console.shell import download, page, render

blueprint = Blueprint("reports", __name__)

READERS: Final = (Role.AUDITOR, Role.OPERATIONS)

SHOWN: Final = 500
"""So many items a page shows."""

DOWNLOADED: Final = 10_000
"""The most items of a file; the command ``report`` gives more."""

SPAN: Final = "span"

_MINOR: Final = " Amounts are in minor units."
"""What is true of tables for machines, and not of these pages."""

_SHARES: Final = ("_rtp", "_99", "_edge", "_frequency")
_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")

TELLS: Final = {
    ReportName.GAME_PERFORMANCE: "What each version of each game took and paid, for each operator",
    ReportName.SIGNIFICANT_EVENTS: "What happened beside play, and what was altered: by whom, by whose leave and why",
    ReportName.USERS_AND_RIGHTS: "Who may do what: staff with roles and tokens, operators with keys",
    ReportName.INTERRUPTED: "Rounds that are unfinished, what is held for them, and what follows",
    ReportName.VOIDS: "Rounds that were taken back, and what their players got",
    ReportName.RTP_CHECKS: "What was checked of the return to player, and what was found",
    ReportName.RTP_CASES: "What became of alerts of the return to player, step by step",
    ReportName.PAR_SHEET: "The exact figures of every paytable version",
}

PERIODS: Final = (
    (Period.DAY.value, "Today"),
    (Period.MONTH.value, "Month to date"),
    (Period.QUARTER.value, "Quarter to date"),
    (Period.YEAR.value, "Year to date"),
    (Period.LIFE.value, "Life to date"),
    (SPAN, "The days given"),
)


@page(blueprint, "/reports", roles=READERS, nav="reports")
def reports(conn: psycopg.Connection[Any], who: SignedIn) -> Response:
    """Which reports there are."""
    return render("reports.html.j2", kinds=KINDS, tells=TELLS)


@page(blueprint, "/reports/<name>", roles=READERS, nav="reports")
def report(conn: psycopg.Connection[Any], who: SignedIn, name: str) -> Response:
    """One report, of the time and the operator that the query names."""
    wanted, query, made = _name(name), asked(), None
    kind = KINDS[wanted]
    with query.attempt():
        made = _made(conn, wanted, query, SHOWN)
    return render(
        "reports_one.html.j2",
        name=wanted,
        kind=kind,
        form=query,
        shown=None if made is None else parts(made, kind.says.replace(_MINOR, ""), _table),
        made=made,
        periods=PERIODS,
        operators=[("", "All operators"), *((operator, operator) for operator in operator_names(conn))],
        types=[("", "All significant ones"), *((type_, type_) for type_ in sorted(SIGNIFICANT))],
        query=f"?{urlencode(request.args.to_dict())}" if request.args else "",
        status=query.status,
    )


@page(blueprint, "/reports/<name>/file.<any(csv, json, html):form>", roles=READERS, nav="reports")
def report_file(conn: psycopg.Connection[Any], who: SignedIn, name: str, form: str) -> Response:
    """The same as a file: a table, a document, or a page to print."""
    wanted = _name(name)
    made = _made(conn, wanted, asked(), ROWS_MAX if form == "html" else DOWNLOADED)
    match form:
        case "csv":
            text, content_type = made.csv(), "text/csv; charset=utf-8; header=present"
        case "json":
            text, content_type = made.json(), "application/json"
        case _:
            text, content_type = html(made), "text/html; charset=utf-8"
    return download(f"{wanted}.{form}", text, content_type)


def _table(columns: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Columns in words, amounts in their currency's own units, and shares as percents."""
    cells = tuple(dict.fromkeys(tuple(_cell(row, column) for column in columns) for row in rows))
    heads = tuple((_head(column), setting(column)) for column in columns)
    return Table("One row" if len(cells) == 1 else f"{len(cells):,} rows", heads, cells)


def _head(column: str) -> str:
    """What a column is called.

    >>> _head("main_theoretical_rtp"), _head("staked_minor"), _head("tolerance_99")
    ('Main theoretical RTP', 'Staked', 'Tolerance, 99 in 100')
    """
    words = spoken(column.removesuffix("_minor")).removesuffix(" 99")
    words = re.sub(r"\b(rtp|sd|id)\b", lambda short: short[0].upper(), words, flags=re.IGNORECASE)
    return f"{words}, 99 in 100" if column.endswith("_99") else words


def _cell(row: Mapping[str, Any], column: str) -> str:
    value = row[column]
    if column.endswith("_minor") and value is not None and row.get("currency"):
        return money(value, row["currency"])
    if column.endswith(_SHARES) and value is not None and _DECIMAL.fullmatch(value):
        return f"{100 * float(value):.4f} %"
    return shown(value)


def _name(text: str) -> ReportName:
    if text not in tuple(ReportName):
        raise ServiceError(Code.NOT_FOUND, "There is no such report.")
    return ReportName(text)


def _made(conn: psycopg.Connection[Any], name: ReportName, query: Form, limit: int) -> Report:
    """The report that a query asks for; `ServiceError` invalid with what is wrong at its field."""
    wanted = _wanted(KINDS[name], query, limit)
    if query.errors:
        raise ServiceError(Code.INVALID, "The report was not made.", errors=query.errors)
    try:
        return make_report(conn, name, wanted)
    except SetUpError as refused:
        field = refused.field if isinstance(refused, WantedWrongly) else "operator"
        raise ServiceError(
            Code.INVALID, "The report was not made.", errors={field: [str(refused)]}
        ) from refused


def _wanted(kind: Kind, query: Form, limit: int) -> Wanted:
    """What a query asks for; what makes no sense is told at its field."""
    said: dict[str, Any] = {"limit": limit}
    if kind.of_time:
        period = query.value("period", Period.DAY.value)
        first, last = query.day("from"), query.day("to")
        if period == SPAN:
            if not query.value("from"):
                query.errors["from"] = ["Give the first day."]
            elif first and last and last < first:
                query.errors["to"] = ["This is before the first day."]
            said["since"] = first
            said["until"] = query.day("to", later=1)
        elif period not in tuple(Period):
            query.errors["period"] = ["Choose one that there is."]
        elif query.value("from") or query.value("to"):
            query.errors["period"] = ["Days are given too: choose “The days given”, or leave them out."]
        else:
            said["period"] = Period(period)
    if operator := query.value("operator"):
        said["operator"] = operator if operator.isprintable() else "?"
    if type_ := query.value("type"):
        if type_ in tuple(EntryType):
            said["types"] = frozenset({EntryType(type_)})
        else:
            query.errors["type"] = ["Choose one that there is."]
    return Wanted(**said)
