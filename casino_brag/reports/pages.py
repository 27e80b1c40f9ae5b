"""Reports as pages to read and print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from casino_brag.game.paytable import Paytable
from casino_brag.odds.pages import rendered
from casino_brag.odds.pages.parts import Block, Page, Section, Setting, Table, Text
from casino_brag.odds.pages.sheet import page
from casino_brag.reports.kinds import ReportName
from casino_brag.reports.making import Report
from casino_brag.rounds.reports import NO_ACTIVITY

ROWS_MAX: Final = 2_000
"""The most items of a page: more is for a table."""

_CODES: Final = ("_id", "_digest", "_exact", "before", "after", "payload", "token_or_key")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}Z")
_NUMBERS: Final = (
    "_minor",
    "_rtp",
    "_99",
    "_edge",
    "_sd",
    "_frequency",
    "rounds",
    "settled",
    "voids",
    "attempts",
)


Tabled = Callable[[tuple[str, ...], Sequence[Mapping[str, Any]]], Table]
"""Makes a table of these columns of rows."""


def html(report: Report) -> str:
    """A report as one HTML file, which loads nothing and runs nothing."""
    return rendered(parts(report, report.kind.says, table))


def parts(report: Report, says: str, tabled: Tabled) -> Page:
    """What a report's page shows: what it `says` of itself, and its rows as `tabled` shows them."""
    about = report.about()
    time = "as things stood when it was made" if report.since is None else f"{about['from']} to {about['to']}"
    identity = (
        ("Time", time),
        ("Operator", report.operator or "all"),
        ("Made at", about["made_at"]),
        ("Program", " ".join(about["program"].values())),
    )
    return Page(report.kind.title, identity, tuple(_sections(report, says, tabled)))


def _sections(report: Report, says: str, tabled: Tabled) -> Iterator[Section]:
    said: list[Block] = [Text(says), Text("Times are UTC.")]
    if not report.items:
        said.append(Text(f"{NO_ACTIVITY}."))
    if not report.complete:
        said.append(Text(f"There are more than these {len(report.items):,}: ask for a shorter time."))
    yield Section("About", tuple(said))
    if report.totals:
        yield Section("Totals", (tabled(tuple(report.totals[0]), report.totals),))
    rows = report.rows()
    for title, columns in report.kind.tables if rows else ():
        yield Section(title, (tabled((*report.kind.key, *columns), rows),))
    if report.name is ReportName.PAR_SHEET:
        for item in report.items:
            sheet = page(Paytable.from_document(item["paytable"]), item["par_sheet"])
            for section in sheet.sections:
                of = f"{item['game']} {item['paytable_version']}"
                yield Section(f"{of}: {section.title}", section.blocks)


def table(columns: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Columns by their names, and values as a table for machines has them."""
    # What is the same in these columns is shown once: of an operator with two keys, who it is.
    cells = tuple(dict.fromkeys(tuple(shown(row[column]) for column in columns) for row in rows))
    return Table(
        f"Rows: {len(cells):,}", tuple((_heading(column), setting(column)) for column in columns), cells
    )


def _heading(column: str) -> str:
    return column.removesuffix("_minor").replace("_", " ")


def setting(column: str) -> Setting:
    """How the cells of a column are set."""
    if column.endswith(_CODES):
        return Setting.CODE
    return Setting.NUMBER if column.endswith(_NUMBERS) else Setting.WORDS


def shown(value: Any) -> str:
    """A cell."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case _ if time := _TIME.fullmatch(value):
            return f"{time[1]} {time[2]}".replace("-", "\u2011")  # not to be divided
        case _:
            return str(value)
