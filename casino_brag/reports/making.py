"""Reports over the whole installation, for staff and auditors: made, and as JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

import psycopg

from casino_brag.audit import EntryType
from casino_brag.catalogue.operators import operator_id_of
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.csv_text import csv_lines
from casino_brag.db.instant import one_instant
from casino_brag.errors import SetUpError
from casino_brag.reports.kinds import KINDS, SIGNIFICANT, Kind, ReportName
from casino_brag.reports.sources import Asked, Items
from casino_brag.rounds.integrity import LOADED_DIGEST
from casino_brag.rounds.reports import NO_ACTIVITY, Period, period_start

ITEMS_MAX: Final = 100_000
"""The most items of one report; one that has more says so, and is asked for in shorter times."""

PROGRAM: Final = {"version": version("casino-brag"), "manifest_digest": LOADED_DIGEST}
"""Which program makes a report."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of what a report is wanted: of which time, which ends now unless `until` is given, and of whom.

    `since` stands in for `period`, which is the day where neither is given.  `types` are the events that are wanted,
    all significant ones where none are named.
    """

    period: Period | None = None
    since: datetime | None = None
    until: datetime | None = None
    operator: str | None = None
    types: frozenset[EntryType] = frozenset()
    limit: int = ITEMS_MAX


class WantedWrongly(SetUpError):
    """A report cannot be of what it is wanted of; `field` says which part of that: type, period, from, to, operator."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was made: of what, when, and its items in full.

    `since` and `until` are None in one of how things stand; `complete` says whether these are all items.
    """

    name: ReportName
    made_at: datetime
    since: datetime | None
    until: datetime | None
    operator: str | None
    items: Items
    totals: Items
    complete: bool

    @property
    def kind(self) -> Kind:
        """What it is."""
        return KINDS[self.name]

    def rows(self) -> list[Mapping[str, Any]]:
        """Its items as rows: texts, whole numbers and None, by the names of its kind's columns."""
        flat = (row for item in self.items for row in self.kind.flat(item))
        return [{column: _cell(row.get(column)) for column in self.kind.columns} for row in flat]

    def about(self) -> dict[str, Any]:
        """Everything but the items, as plain data."""
        return {
            "report": self.name.value,
            "title": self.kind.title,
            "operator": self.operator,
            "from": None if self.since is None else rfc3339(self.since),
            "to": None if self.until is None else rfc3339(self.until),
            "made_at": rfc3339(self.made_at),
            "program": PROGRAM,
            "activity": "Activity" if self.items else NO_ACTIVITY,
            "complete": self.complete,
        }

    def json(self) -> str:
        """The report as one JSON document."""
        document = self.about() | {"totals": self.totals, "items": self.items}
        return json.dumps(document, ensure_ascii=False, default=_plain)

    def csv(self) -> str:
        """The report as one table; each row says of which time it is, and when and by which program it was made.

        Without items it has one row, which says that there was no activity.
        """
        about, columns = self.about(), self.kind.columns
        said = (about["from"], about["to"], about["made_at"], PROGRAM["version"], self.complete)
        rows = [tuple(row.values()) for row in self.rows()] or [(NO_ACTIVITY, *[None for _ in columns[1:]])]
        heads = (*HEADS, *columns)
        return csv_lines([heads, *((*said, *row) for row in rows)])


HEADS: Final = ("from", "to", "reported_at", "program", "complete")
"""What each row of a table says of the report, before its own columns."""


def make_report(conn: psycopg.Connection[Any], name: ReportName, wanted: Wanted) -> Report:
    """Makes a report of what is on record at one instant.

    `WantedWrongly` where it cannot be of what is wanted, `SetUpError` for an operator that there is not.
    """
    kind = KINDS[name]
    _check(kind, wanted)
    with one_instant(conn):
        now = clock(conn)
        operator_id = None if wanted.operator is None else operator_id_of(conn, wanted.operator)
        since = wanted.since or period_start(conn, operator_id, wanted.period or Period.DAY, now)
        until = wanted.until or now
        asked = Asked(now, since, until, operator_id, wanted.types or SIGNIFICANT, wanted.limit + 1)
        items, totals = kind.read(conn, asked), kind.totals(conn, asked)
    return Report(
        name=name,
        made_at=now,
        since=since if kind.of_time else None,
        until=until if kind.of_time else None,
        operator=wanted.operator,
        items=items[: wanted.limit],
        totals=totals,
        complete=len(items) <= wanted.limit,
    )


def _check(kind: Kind, wanted: Wanted) -> None:
    """Refuses what a report would not heed."""
    if wanted.types and not kind.of_types:
        raise WantedWrongly("type", f"{kind.title} are of no types of entries: leave the type out.")
    if not kind.of_time:
        for field, given in (("period", wanted.period), ("from", wanted.since), ("to", wanted.until)):
            if given is not None:
                raise WantedWrongly(field, f"{kind.title} are of how things stand now: leave {field} out.")
    if wanted.operator is not None and not kind.of_operator:
        raise WantedWrongly(
            "operator", f"{kind.title} are of the whole installation: leave the operator out."
        )


def _cell(value: Any) -> str | int | None:
    match value:
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=_plain)
        case str() | int() | None:
            return value
        case _:
            return _plain(value)


def _plain(value: Any) -> str:
    return rfc3339(value) if isinstance(value, datetime) else str(value)
