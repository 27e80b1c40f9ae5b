"""The clause table names code and tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from casino_brag.laboratory.clauses import Clause, clauses

ROOT = Path(__file__).parents[2]
CLAUSES = clauses()
every_clause = pytest.mark.parametrize(
    "clause", CLAUSES, ids=lambda clause: f"{clause.standard} {clause.section}"
)


@cache
def names_in(file: str) -> frozenset[str]:
    """What a Python file defines at its top and in its classes."""
    if not (ROOT / file).is_file():
        return frozenset()
    found = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            }
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return frozenset(found)


def missing(names: tuple[str, ...]) -> list[str]:
    split = ((name, *name.partition("::")) for name in names)
    return [name for name, file, _, inside in split if inside not in names_in(file)]


@every_clause
def test_a_clause_names_code_that_exists(clause: Clause) -> None:
    assert clause.code
    assert missing(clause.code) == []


@every_clause
def test_a_clause_names_tests_that_exist(clause: Clause) -> None:
    assert clause.tests
    assert all(name.startswith("tests/") and "::test_" in name for name in clause.tests)
    assert missing(clause.tests) == []


@every_clause
def test_a_clause_says_what_is_asked_and_how_it_is_met(clause: Clause) -> None:
    assert clause.asks.endswith(".")
    assert clause.met.endswith(".")
    assert "certified" not in f"{clause.asks} {clause.met}".lower()


def test_every_standard_that_is_answered_is_there() -> None:
    assert list(dict.fromkeys(clause.standard for clause in CLAUSES)) == [
        "GLI-19 v3.0",
        "UKGC RTS 7",
        "NIST SP 800-90A rev. 1",
        "NIST SP 800-90B",
        "AGCO 21.1",
    ]
    sections = {(clause.standard, clause.section) for clause in CLAUSES}
    assert {
        ("GLI-19 v3.0", section) for section in ("3.2", "3.2.1", "3.2.2", "3.3", "4.4.4", "4.5.2")
    } <= sections
    assert {("UKGC RTS 7", "7A"), ("UKGC RTS 7", "7B")} <= sections


@pytest.mark.parametrize(
    "name", ["casino_brag/rng/deal.py::nobody", "casino_brag/rng/none.py::unrank", "unrank"]
)
def test_a_name_that_is_nowhere_is_noticed(name: str) -> None:
    assert missing((name,)) == [name]
