"""The module's edge: what it takes from elsewhere, and what it could not do though somebody wished it to."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import casino_brag.rng

MODULE = Path(casino_brag.rng.__file__).parent
TREES = {file.name: ast.parse(file.read_text()) for file in sorted(MODULE.glob("*.py"))}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of the module's source, with the file that it stands in."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            yield name, node


def asked_of(library: str) -> set[str]:
    """What the module asks of a module of the standard library."""
    return {
        node.attr
        for _, node in nodes()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == library
    }


def run(script: str, environment: dict[str, str] | None = None, *arguments: str) -> list[str]:
    """The lines that a program prints."""
    finished = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=MODULE.parents[1],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=os.environ | (environment or {}),
    )
    return finished.stdout.splitlines()


def test_the_module_imports_little_of_the_standard_library_and_nothing_else() -> None:
    imported = set()
    for _, node in nodes():
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module))
    own = {name for name in imported if name.startswith("casino_brag.rng")}
    assert imported - own == {
        "__future__",
        "collections",
        "collections.abc",
        "dataclasses",
        "enum",
        "hashlib",
        "hmac",
        "importlib.util",
        "marshal",
        "math",
        "os",
        "pathlib",
        "re",
        "sys",
        "threading",
        "time",
        "typing",
        "uuid",
    }


def test_the_module_asks_the_system_for_random_bytes_and_its_process_number_only() -> None:
    """No environment, no date, no wall clock: nothing waits for its day, and nobody sets a variable to choose cards."""
    assert asked_of("os") == {"getpid", "getrandom", "register_at_fork"}
    assert asked_of("time") == {"monotonic"}
    assert asked_of("threading") == {"Lock"}
    assert asked_of("sys") == {"flags"}
    assert asked_of("marshal") == {"loads"}
    uuid = [
        alias.name
        for _, node in nodes()
        if isinstance(node, ast.ImportFrom) and node.module == "uuid"
        for alias in node.names
    ]
    assert uuid == ["UUID"]


def test_the_module_takes_no_way_around_its_source() -> None:
    """Nothing is looked up by name, evaluated, or imported while it runs, and there is no other generator."""
    names = {node.id for _, node in nodes() if isinstance(node, ast.Name)}
    compiling = {name for name, node in nodes() if isinstance(node, ast.Name) and node.id == "compile"}
    assert compiling == {"module.py"}, "which compares what it compiles, and runs nothing of it"
    assert not names & {
        "__import__",
        "delattr",
        "eval",
        "exec",
        "getattr",
        "globals",
        "locals",
        "open",
        "setattr",
        "vars",
    }
    for name, node in nodes():
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert node in TREES[name].body, f"{name}: an import that is not at the top"


CLOCK = {
    ("generator.py", "self.reseeded_at = 0.0"),
    ("generator.py", "self.checked_at = 0.0"),
    ("generator.py", "own.reseeded_at = time.monotonic()"),
    ("generator.py", "own.checked_at = time.monotonic()"),
    ("generator.py", "time.monotonic() - own.reseeded_at > RESEED_SECONDS_MAX"),
    ("generator.py", "time.monotonic() - own.checked_at > INTEGRITY_SECONDS"),
}
"""All that the module does with seconds, which are floats: it notes a time, and compares how long ago that was.

The outcome of either comparison is that a check is made or that nothing comes out."""


def test_the_module_computes_with_integers_only() -> None:
    """Beside the clock there is no float and no division that gives one; a slash between paths is no division."""
    clock = set()
    for name, node in nodes():
        text = ast.unparse(node)
        if isinstance(node, ast.Constant):
            assert not isinstance(node.value, float | complex) or node.value == 0.0, (name, text)
        if isinstance(node, ast.Assign | ast.Compare) and ("monotonic" in text or "0.0" in text):
            clock.add((name, text))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            assert (name, text) == ("module.py", "directory / MANIFEST")
        if isinstance(node, ast.Name):
            assert node.id not in {"float", "round", "pow", "complex", "Decimal", "Fraction"}, name
        if isinstance(node, ast.ImportFrom) and node.module == "math":
            assert [alias.name for alias in node.names] == ["perm"], name
        assert not (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Pow)), (name, text)
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)), (name, text)
    assert clock == CLOCK
    calls = sum(
        1 for _, node in nodes() if isinstance(node, ast.Attribute) and ast.unparse(node) == "time.monotonic"
    )
    floats = sum(1 for _, node in nodes() if isinstance(node, ast.Constant) and type(node.value) is float)
    assert (calls, floats) == (5, 2)


@pytest.mark.parametrize("name", TREES)
def test_annotations_promise_no_float_but_for_the_clock(name: str) -> None:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.arg) and node.annotation is not None:
            assert "float" not in ast.unparse(node.annotation)
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            assert "float" not in ast.unparse(node.returns)


def test_importing_the_module_loads_nothing_else_of_ours_or_others() -> None:
    script = """
import sys
before = set(sys.modules)
import casino_brag.rng
for name in sorted(set(sys.modules) - before):
    print(name)
"""
    loaded = run(script)
    ours = {name for name in loaded if name.split(".")[0] == "casino_brag"}
    assert ours == {"casino_brag"} | {
        "casino_brag.rng" if file == "__init__.py" else f"casino_brag.rng.{file.removesuffix('.py')}"
        for file in TREES
    }
    assert {name.split(".")[0] for name in set(loaded) - ours} <= sys.stdlib_module_names
    assert not {"random", "secrets", "ssl"} & set(loaded)


def test_importing_the_module_draws_nothing() -> None:
    script = """
import os
os.getrandom = lambda size, flags=0: print("asked")
import casino_brag.rng
casino_brag.rng.Generator()
"""
    assert run(script) == []


ONCE = """
from uuid import UUID
from casino_brag.rng import Generator, draw_seed
generator = Generator()
print(*(draw_seed(generator, UUID(int=number)).output.hex() for number in range(20)))
"""


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
def test_nothing_outside_makes_a_program_draw_the_same_again(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    drawn = [seed for _ in range(2) for seed in run(ONCE, environment, *arguments)[0].split()]
    assert len(drawn) == len(set(drawn)) == 40
