"""Who uses the random number module and for what, and who else asks for randomness: read from the source itself.

An examiner need not take our word for where random numbers go: this is what the package's syntax trees say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1]
MODULE: Final = "casino_brag.rng"

OTHER_SOURCES: Final = (
    "os.urandom",
    "os.getrandom",
    "secrets.",
    "random.",
    "numpy.random.",
    "uuid.uuid1",
    "uuid.uuid4",
    "ssl.RAND_",
    "casino_brag.ids.uuid7",
)
"""Calls whose names begin so give random numbers, or numbers that pass for random."""


Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Use:
    """A function of ours that uses something.

    ``where`` is a path in the package and a qualified name in it, ``names`` what is used there.  ``purpose`` is how
    the function is described in the source, or its file where it has no description of its own.
    """

    where: str
    names: tuple[str, ...]
    purpose: str


@dataclass(frozen=True, slots=True)
class _Function:
    """What a function says of itself, the dotted names that it uses, and what it asks the generator for."""

    where: str
    purpose: str
    names: frozenset[str]
    asks_for: tuple[str, ...]


def module_uses(package: Path = PACKAGE) -> list[Use]:
    """Every function outside of the module that uses one of its names, by file; its constants are not counted."""
    module = f"{package.name}/rng/"
    return _uses((found for found in _read(package) if not found.where.startswith(module)), (f"{MODULE}.",))


def other_uses(package: Path = PACKAGE) -> list[Use]:
    """Every function in the package that asks another source than the module, or a new identifier, by file."""
    return _uses(_read(package), OTHER_SOURCES)


def purposes(package: Path = PACKAGE) -> list[tuple[str, str]]:
    """What the generator is asked for: the place and the purpose of each request in the source, by file."""
    return [(found.where, text) for found in _read(package) for text in found.asks_for]


def _uses(functions: Iterable[_Function], wanted: tuple[str, ...]) -> list[Use]:
    found = []
    for function in functions:
        used = {name for name in function.names if name.startswith(wanted)}
        # Of a.b.c, which holds a.b, the longest is told.
        told = {each for each in used if not any(other.startswith(f"{each}.") for other in used)}
        shown = sorted(
            each.removeprefix(f"{MODULE}.") for each in told if not each.rpartition(".")[2].isupper()
        )
        if shown:
            found.append(Use(function.where, tuple(shown), function.purpose))
    return found


@cache  # a running program's source stays as it is
def _read(package: Path) -> tuple[_Function, ...]:
    """Every function of a package, by file."""
    return tuple(found for file in sorted(package.rglob("*.py")) for found in _read_file(package, file))


def _read_file(package: Path, file: Path) -> Iterator[_Function]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported, texts = dict(_imports(tree)), dict(_constants(tree))
    place = f"{package.name}/{file.relative_to(package).as_posix()}"
    for name, function in _functions(tree):
        nodes = list(_own(function))
        described = ast.get_docstring(function) or ast.get_docstring(tree) or ""
        yield _Function(
            f"{place}::{name}",
            " ".join(described.split("\n\n")[0].split()),
            frozenset(_full_name(node, imported) for node in nodes),
            tuple(text for node in nodes if (text := _asked_for(node, texts))),
        )


def _asked_for(node: ast.AST, texts: dict[str, str]) -> str:
    """The purpose that a request to the generator names; empty for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(attr="generate"), args=[_, ast.Constant(value=str() as text), *_]):
            return text
        case ast.Call(func=ast.Attribute(attr="generate"), args=[_, ast.Name(id=constant), *_]):
            return texts.get(constant, "")
    return ""


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names in a file, and what they stand for in full."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
            case ast.ImportFrom(module=str() as module, names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"


def _functions(tree: ast.Module) -> Iterator[tuple[str, Scope]]:
    """Functions and methods with their qualified names; what stands at the top of a file or a class is one too."""
    pending: list[tuple[str, Scope]] = [("", tree)]
    while pending:
        name, node = pending.pop(0)
        yield name or "(at import)", node
        for child in _children(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                pending.append((f"{name}.{child.name}".lstrip("."), child))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """What a function's code consists of, without functions inside of it, annotations and imports."""
    for child in _children(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from _own(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _full_name(node: ast.AST, imported: dict[str, str]) -> str:
    """What a dotted name stands for; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return imported.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            left = _full_name(value, imported)
            return f"{left}.{attribute}" if left else ""
    return ""


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str() as text)):
                yield name, text
