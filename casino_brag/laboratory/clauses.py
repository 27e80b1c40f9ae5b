"""The clauses of standards that the random number module answers to, and what answers them: ``clauses.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("clauses.toml")


@dataclass(frozen=True, slots=True)
class Clause:
    """A requirement in our words, how it is met, the code that meets it and the tests that would notice if not.

    Code and tests are named ``file::name``, as from the root of the source.
    """

    standard: str
    section: str
    asks: str
    met: str
    code: tuple[str, ...]
    tests: tuple[str, ...]


def clauses() -> list[Clause]:
    """All clauses, by standard.

    >>> clauses()[0].standard
    'GLI-19 v3.0'
    """
    with FILE.open("rb") as file:
        rows = tomllib.load(file)["clause"]
    return [Clause(**row | {key: tuple(row[key]) for key in ("code", "tests")}) for row in rows]
