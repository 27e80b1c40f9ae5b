"""The usage map is read from the source, and nothing that draws escapes it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from casino_brag.laboratory.usage import PACKAGE, Use, module_uses, other_uses, purposes


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package that uses the module in every way of importing it."""
    files = {
        "rng/seeds.py": """
            import os
            def draw_seed(generator):
                return generator.generate(48, "round seed")
            def fresh():
                "Fresh bytes."
                return os.getrandom(8)
        """,
        "rounds/opening.py": '''
            """How rounds are opened."""
            from casino_brag.rng import DEALS, Generator, draw_seed as draw
            from casino_brag.rng import seeds
            from typing import Final

            PURPOSE: Final = "a bonus"

            def only_annotated(generator: Generator) -> Generator:
                return generator

            def only_numbers():
                return DEALS

            def opened(generator):
                """Opens a round.

                More is not told.
                """
                def inner():
                    return seeds.deal(b"")
                return draw(generator), inner()

            class Table:
                def bonus(self, generator):
                    return generator.generate(8, PURPOSE)
        ''',
        "web/tokens.py": """
            import casino_brag.rng
            import random
            import secrets as hidden
            from numpy import random as theirs
            MADE = casino_brag.rng.Generator()
            def token():
                "A token."
                return hidden.token_hex(8), theirs.default_rng(), random.random()
        """,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


def test_every_way_of_using_the_module_is_found(package: Path) -> None:
    found = {use.where.partition("/")[2]: use for use in module_uses(package)}
    assert set(found) == {
        "rounds/opening.py::opened",
        "rounds/opening.py::opened.inner",
        "web/tokens.py::(at import)",
    }
    assert found["rounds/opening.py::opened"].names == ("draw_seed",)
    assert found["rounds/opening.py::opened"].purpose == "Opens a round."
    assert found["rounds/opening.py::opened.inner"].names == ("seeds.deal",)
    assert found["rounds/opening.py::opened.inner"].purpose == "How rounds are opened."
    assert found["web/tokens.py::(at import)"].names == ("Generator",)


def test_other_sources_of_randomness_are_found(package: Path) -> None:
    assert [(use.where.partition("/")[2], use.names) for use in other_uses(package)] == [
        ("rng/seeds.py::fresh", ("os.getrandom",)),
        ("web/tokens.py::token", ("numpy.random.default_rng", "random.random", "secrets.token_hex")),
    ]


def test_purposes_are_found(package: Path) -> None:
    assert [(where.partition("/")[2], purpose) for where, purpose in purposes(package)] == [
        ("rng/seeds.py::draw_seed", "round seed"),
        ("rounds/opening.py::Table.bonus", "a bonus"),
    ]


def using(name: str, uses: list[Use]) -> set[str]:
    return {use.where for use in uses if any(used.rpartition(".")[2] == name for used in use.names)}


def test_a_seed_is_drawn_for_rounds_and_for_the_laboratory_alone() -> None:
    assert using("draw_seed", module_uses()) == {
        "casino_brag/rounds/commitments.py::make",
        "casino_brag/laboratory/collectors.py::deals",
    }
    assert purposes() == [
        ("casino_brag/laboratory/collectors.py::raw", "laboratory raw"),
        ("casino_brag/rng/seeds.py::draw_seed", "round seed"),
    ]


def test_the_package_asks_no_generator_that_is_for_simulation() -> None:
    repeatable = {
        use.where
        for use in other_uses()
        if any(name.startswith(("random.", "numpy.random.")) for name in use.names)
    }
    assert repeatable == {"casino_brag/sandbox/faults.py::Faults.replace"}  # which call of a trial goes wrong
    assert using("getrandom", other_uses()) == {
        "casino_brag/laboratory/health.py::kernel_facts",
        "casino_brag/rng/entropy.py::Entropy.draw",
    }


def test_the_map_is_of_this_package() -> None:
    assert (PACKAGE / "rng" / "generator.py").is_file()
