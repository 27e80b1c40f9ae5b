"""docs/guarantees.md names only what exists: whatever holds a promise, and every test that tries to break it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import NamedTuple

import pytest

from casino_brag.rng.deal import DEALS
from casino_brag.rounds.round import sealed_form
from casino_brag.sealing import Sealer
from tests import named
from tests.named import ROOT

DOCUMENT = (ROOT / "docs" / "guarantees.md").read_text()
MIGRATIONS = "\n".join(path.read_text() for path in sorted((ROOT / "migrations").glob("*.sql")))


class Guarantee(NamedTuple):
    """A row of a table: the promise, the names in backticks of what holds it, and those of the tests."""

    promise: str
    holders: list[str]
    tests: list[str]


def guarantees() -> list[Guarantee]:
    found = []
    for line in DOCUMENT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "guarantee":
            promise, held, tried = cells
            found.append(Guarantee(promise, re.findall("`([^`]+)`", held), re.findall("`([^`]+)`", tried)))
    return found


GUARANTEES = guarantees()
every_guarantee = pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda row: row.promise.strip("*. "))


@cache
def names_in_migrations() -> frozenset[str]:
    """Constraints, indexes, triggers and functions of the schema."""
    defined = r"\b(?:CONSTRAINT|CREATE (?:UNIQUE )?INDEX|CREATE TRIGGER|CREATE FUNCTION) (\w+)"
    return frozenset(re.findall(defined, re.sub(r"--.*", "", MIGRATIONS)))


@cache
def import_rules() -> frozenset[str]:
    """The contracts of the import linter, which `make check` runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return frozenset(contract["name"] for contract in project["tool"]["importlinter"]["contracts"])


def exists(name: str) -> bool:
    """`file::name` in Python, `pyproject.toml::contract`, else a name of the schema."""
    file, found, inside = name.partition("::")
    if not found:
        return name in names_in_migrations()
    if file == "pyproject.toml":
        return inside in import_rules()
    return named.exists(name)


def test_there_are_guarantees() -> None:
    assert len(GUARANTEES) > 20
    assert len({row.promise for row in GUARANTEES}) == len(GUARANTEES)


@every_guarantee
def test_what_holds_a_guarantee_exists(guarantee: Guarantee) -> None:
    assert guarantee.holders
    assert [name for name in guarantee.holders if not exists(name)] == []


@every_guarantee
def test_a_test_tries_to_break_each_guarantee(guarantee: Guarantee) -> None:
    assert guarantee.tests
    assert [name for name in guarantee.tests if not (name.startswith("tests/") and exists(name))] == []


def test_only_rounds_imports_the_random_number_module() -> None:
    """But for the laboratory and its commands, which deal to nobody, replay, which deals again what was dealt, and the
    simulation, which takes bare numbers."""
    importing: dict[str, set[str]] = {}
    imports = re.compile(
        r"^\s*(?:from|import) casino_brag(?:\.rng[\w.]*| import .*\brng\b)(?: import (.*))?$", re.MULTILINE
    )
    for path in (ROOT / "casino_brag").rglob("*.py"):
        for names in imports.findall(path.read_text()):
            importing.setdefault(path.relative_to(ROOT / "casino_brag").parts[0], set()).update(
                names.split(", ")
            )
    assert set(importing) == {"rng", "rounds", "laboratory", "cli", "simulation", "replay"}
    assert importing["cli"] == {"MODULE_DIGEST", "Generator", "RngUnavailable", "known_answers"}
    assert importing["simulation"] == {"CARDS_DEALT", "DEALS", "PACK_SIZE", "WORDS"}


def test_every_deal_is_sealed_at_one_length() -> None:
    sealer = Sealer({"k1": bytes(32)})
    lengths = {
        len(sealer.seal(sealed_form(index), context="")) for index in (0, 9, 10**10 - 1, 10**10, DEALS - 1)
    }
    assert len(lengths) == 1
    assert int(sealed_form(DEALS - 1)) == DEALS - 1


def test_every_trigger_holds_a_guarantee() -> None:
    triggers = set(re.findall(r"CREATE TRIGGER (\w+)", MIGRATIONS))
    assert triggers
    assert triggers - {name for row in GUARANTEES for name in row.holders} == set()


@pytest.mark.parametrize(
    "name",
    [
        "no_such_constraint",
        "tests/contract/test_guarantees.py::test_missing",
        "tests/x.py::test_a",
        "pyproject.toml::No",
    ],
)
def test_a_name_that_is_nowhere_is_noticed(name: str) -> None:
    assert not exists(name)
