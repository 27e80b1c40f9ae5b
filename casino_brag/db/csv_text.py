"""Rows as CSV: as RFC 4180 has it, and safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    """A line for each row, ended by CR and LF.  A text that a spreadsheet would take for a formula begins with an
    apostrophe.

    >>> print(csv_lines([("=1+1", -5, None, True, "a, b", {"a": 1})]).rstrip())
    '=1+1,-5,,true,"a, b","{""a"": 1}"
    """
    written = io.StringIO()
    csv.writer(written).writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str() if value.startswith(_FORMULA):
            return "'" + value
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
