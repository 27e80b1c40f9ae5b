"""Answers as tables: CSV, sent page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from flask import Response, request

from casino_brag.db.csv_text import csv_lines
from casino_brag.rounds.reports import NO_ACTIVITY

ROWS_MAX: Final = 100_000
"""The most rows of one table; what is left is asked for with a cursor."""
PAGE_ROWS: Final = 1_000


def wants_csv(wanted: str | None) -> bool:
    """Whether the caller wants a table: `wanted` says so, or the ``Accept`` header where that is None."""
    preferred = request.accept_mimetypes.best_match(["application/json", "text/csv"])
    return wanted == "csv" if wanted is not None else preferred == "text/csv"


def pages(read: Callable[[Any, int], list[dict[str, Any]]], key: str, after: Any, most: int) -> Iterator[Any]:
    """Pages of a list, one after the other, up to `most` rows in all.

    `read` takes what the last row before goes by, which is its member `key`, and how many to read.
    """
    while most:
        rows = read(after, min(PAGE_ROWS, most))
        yield rows
        if len(rows) < min(PAGE_ROWS, most):
            return
        after, most = rows[-1][key], most - len(rows)


def table(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Mapping[str, Any]]], *, stating: bool = False
) -> Response:
    """A table of rows that come in pages; a column that a row lacks is empty.

    The first page is read before anything is answered, so that an error has an answer of its own; one that comes
    later cuts the answer short, which its receiver notices by the transfer's missing end.  With `stating` a table
    without rows says that there was no activity.
    """
    coming = iter(rows)
    first = next(coming, [])
    if stating and not first:
        first = [{columns[0]: NO_ACTIVITY}]
    lines = (
        csv_lines([[row.get(column) for column in columns] for row in page])
        for page in chain([first], coming)
    )
    return Response(
        chain([csv_lines([columns])], lines),
        content_type="text/csv; charset=utf-8; header=present",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )
