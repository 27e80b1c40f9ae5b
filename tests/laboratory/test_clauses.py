"""The clause table names code and tests that exist."""

from __future__ import annotations

import pytest

from casino_brag.laboratory.clauses import Clause, clauses
from tests.named import exists

CLAUSES = clauses()
every_clause = pytest.mark.parametrize(
    "clause", CLAUSES, ids=lambda clause: f"{clause.standard} {clause.section}"
)


@every_clause
def test_a_clause_names_code_and_tests_that_exist(clause: Clause) -> None:
    assert clause.code
    assert all("::" in name for name in clause.code)
    assert clause.tests
    assert all(name.startswith("tests/") and "::test_" in name for name in clause.tests)
    assert [name for name in clause.code + clause.tests if not exists(name)] == []


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
