"""Lists that are read from the database: a page of them as JSON, or many as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import psycopg
from flask import Response

from casino_brag.web.api.tables import ROWS_MAX, pages, table
from casino_brag.web.service import service

LIMIT: Final = 50

CSV: Final = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
"""What a view that can answer with a table declares beside its JSON."""

Read = Callable[[psycopg.Connection[Any], Any, int], list[dict[str, Any]]]
"""Reads a list from behind what the last row before goes by, so many rows of it."""


def page(read: Read, key: str, query: Mapping[str, Any]) -> dict[str, Any]:
    """The page that a query asks for; its rows go by their member `key`."""
    limit = query.get("limit", LIMIT)
    with service().database.connection() as conn:
        rows = read(conn, query.get("cursor"), limit + 1)
    items = rows[:limit]
    return {"items": items, "next_cursor": str(items[-1][key]) if len(rows) > limit else None}


def listed(
    name: str,
    columns: tuple[str, ...],
    read: Read,
    key: str,
    query: Mapping[str, Any],
    *,
    flat: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
    stating: bool = False,
) -> Response:
    """The table that a query asks for: of up to `ROWS_MAX` rows, each made flat."""
    database = service().database

    def one_page(after: Any, limit: int) -> list[dict[str, Any]]:
        with database.connection() as conn:  # given back before the page is sent: its receiver may be slow
            return read(conn, after, limit)

    coming = pages(one_page, key, query.get("cursor"), query.get("limit", ROWS_MAX))
    return table(name, columns, ([flat(row) for row in rows] for rows in coming), stating=stating)
