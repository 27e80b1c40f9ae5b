"""Processes and threads never deal the same, however they came about, and nothing outside makes them."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import casino_brag.rng
from casino_brag.rng import draw_deal
from casino_brag.rng.source import word

MODULE = Path(casino_brag.rng.__file__).parent
WORDS_EACH = 500

FORK = """
import os
from casino_brag.rng import draw_deal
draw_deal()
for _ in range(6):
    if os.fork() == 0:
        line = " ".join(str(draw_deal().index) for _ in range(20)) + chr(10)
        os.write(1, line.encode())
        os._exit(0)
for _ in range(6):
    os.wait()
"""

MULTIPROCESSING = """
import multiprocessing, sys
from casino_brag.rng import draw_deal

def deals(_):
    return " ".join(str(draw_deal().index) for _ in range(20))

if __name__ == "__main__":
    draw_deal()
    with multiprocessing.get_context("fork").Pool(6) as pool:
        for line in pool.map(deals, range(12), chunksize=1):
            print(line)
"""

ONCE = "from casino_brag.rng import draw_deal; print(*(draw_deal().index for _ in range(20)))"


def run(script: str, environment: dict[str, str] | None = None, *arguments: str) -> list[str]:
    """The lines that a program prints."""
    finished = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=os.environ | (environment or {}),
    )
    return finished.stdout.splitlines()


@pytest.mark.parametrize(
    ("script", "lines"), [(FORK, 6), (MULTIPROCESSING, 12)], ids=["fork", "multiprocessing"]
)
def test_children_of_one_process_deal_differently(script: str, lines: int) -> None:
    dealt = run(script)
    assert len(dealt) == lines
    assert len(set(dealt)) == lines
    assert {len(line.split()) for line in dealt} == {20}


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({}, ()),
        ({"PYTHONHASHSEED": "0"}, ()),
        ({"RANDOM_SEED": "1", "SEED": "1", "CASINO_BRAG_SEED": "1", "CASINO_BRAG_RNG_SEED": "1"}, ()),
        ({}, ("--seed", "1")),
        ({"SOURCE_DATE_EPOCH": "0", "FAKETIME": "@2020-01-01 00:00:00"}, ()),
    ],
)
def test_nothing_outside_makes_a_program_deal_the_same_again(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    first, second = (run(ONCE, environment, *arguments) for _ in range(2))
    assert first != second


def test_threads_share_no_words() -> None:
    def words(_: int) -> list[int]:
        return [word() for _ in range(WORDS_EACH)]

    with ThreadPoolExecutor(8) as pool:
        drawn = [value for values in pool.map(words, range(8)) for value in values]
    assert len(set(drawn)) == 8 * WORDS_EACH


def test_whoever_draws_can_choose_nothing() -> None:
    assert list(inspect.signature(draw_deal).parameters) == []
    assert list(inspect.signature(word).parameters) == []


def test_the_module_imports_little_of_the_standard_library_and_nothing_else() -> None:
    imported, asked = set(), set()
    for file in MODULE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported.add(str(node.module))
            elif (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
            ):
                asked.add(node.attr)
    own = {name for name in imported if name.startswith("casino_brag.rng.")}
    assert imported - own == {"__future__", "dataclasses", "hashlib", "math", "os", "pathlib", "typing"}
    assert asked == {"getrandom"}, "no clock, no environment, no process number"


def test_the_module_computes_with_integers_only() -> None:
    for name in ("source.py", "deal.py"):
        for node in ast.walk(ast.parse((MODULE / name).read_text())):
            assert not isinstance(node, ast.Div), name
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), name


def test_importing_the_module_loads_nothing_else_of_ours_or_others() -> None:
    script = """
import sys, sysconfig
before = set(sys.modules)
import casino_brag.rng
for name in sorted(set(sys.modules) - before):
    print(name)
"""
    loaded = run(script)
    ours = {name for name in loaded if name.split(".")[0] == "casino_brag"}
    assert ours == {"casino_brag"} | {
        "casino_brag.rng" if file.stem == "__init__" else f"casino_brag.rng.{file.stem}"
        for file in MODULE.glob("*.py")
    }
    assert {name.split(".")[0] for name in set(loaded) - ours} <= sys.stdlib_module_names
