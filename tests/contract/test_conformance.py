"""docs/conformance.md covers all that is asked, in states of a closed set, and names only what exists."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.contract.test_guarantees import exists
from tests.named import ROOT

DOCUMENT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

ASKED = 37
"""How many requirements were found in the standards and regulations; a row for each."""

STATES = ("met", "part", "platform", "open")
NOTHING = "–"


class Row(NamedTuple):
    """A requirement, and the cells that say where it is met; names stand in backticks."""

    number: str
    asked: str
    source: str
    state: str
    how: str
    code: str
    tests: str


def rows() -> list[Row]:
    cells = (line.strip("|").split(" | ") for line in DOCUMENT.splitlines() if re.match(r"\| \d", line))
    return [Row(*(cell.strip() for cell in row)) for row in cells]


ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)


def names(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def test_all_that_is_asked_has_a_row_in_its_order() -> None:
    assert [row.number for row in ROWS] == [str(number) for number in range(1, ASKED + 1)]


@every_row
def test_a_row_says_what_is_asked_where_and_how_it_stands(row: Row) -> None:
    assert row.asked.endswith(".")
    assert row.source
    assert row.state.strip("`") in STATES
    assert row.how.endswith(".")


@every_row
def test_what_meets_a_row_and_what_tries_to_break_it_exists(row: Row) -> None:
    if row.state in ("`met`", "`part`"):
        assert names(row.code)
        assert names(row.tests)
    else:
        assert (row.code, row.tests) == (NOTHING, NOTHING)
    assert [name for name in names(row.code) if not (exists(name) or (ROOT / name).is_file())] == []
    assert [name for name in names(row.tests) if not (name.startswith("tests/") and exists(name))] == []


@every_row
def test_a_row_that_is_met_in_part_says_what_is_missing_and_no_other_does(row: Row) -> None:
    assert ("Missing: " in row.how) == (row.state == "`part`")


def test_the_states_are_those_that_are_explained_and_counted() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    assert explained == list(STATES)
    counted = Counter(row.state.strip("`") for row in ROWS)
    told = "Of {} rows {} are `met`, {} `part`, {} `platform` and {} `open`."
    assert told.format(ASKED, *(counted[state] for state in STATES)) in DOCUMENT
