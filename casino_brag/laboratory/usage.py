"""Who uses the random number module and for what, and who else asks for randomness: read from the source itself.

An examiner need not take our word for where random numbers go: this is what the package's syntax trees say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
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


def module_uses(package: Path = PACKAGE) -> list[Use]:
    """Every function outside of the module that uses one of its names, by file; its constants are not counted."""
    outside = (file for file in _files(package) if file.relative_to(package).parts[0] != "rng")
    return [use for file in outside for use in _uses(package, file, (f"{MODULE}.",))]


def other_uses(package: Path = PACKAGE) -> list[Use]:
    """Every function in the package that asks another source than the module, or a new identifier, by file."""
    return [use for file in _files(package) for use in _uses(package, file, OTHER_SOURCES)]


def purposes(package: Path = PACKAGE) -> list[tuple[str, str]]:
    """What the generator is asked for: the place and the purpose of each request in the source, by file."""
    found = []
    for file in _files(package):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        texts = dict(_constants(tree))
        for name, function in _functions(tree):
            for node in _own(function):
                match node:
                    case ast.Call(
                        func=ast.Attribute(attr="generate"), args=[_, ast.Constant(value=str() as text), *_]
                    ):
                        found.append((_where(package, file, name), text))
                    case ast.Call(func=ast.Attribute(attr="generate"), args=[_, ast.Name(id=constant), *_]):
                        if constant in texts:
                            found.append((_where(package, file, name), texts[constant]))
    return found


def _files(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def _where(package: Path, file: Path, name: str) -> str:
    return f"{package.name}/{file.relative_to(package).as_posix()}::{name}"


def _uses(package: Path, file: Path, wanted: tuple[str, ...]) -> Iterator[Use]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = dict(_imports(tree))
    for name, function in _functions(tree):
        used = {full for node in _own(function) if (full := _full_name(node, imported)).startswith(wanted)}
        # Of a.b.c, which holds a.b, the longest is told.
        told = {each for each in used if not any(other.startswith(f"{each}.") for other in used)}
        shown = sorted(
            each.removeprefix(f"{MODULE}.") for each in told if not each.rpartition(".")[2].isupper()
        )
        if shown:
            described = ast.get_docstring(function) or ast.get_docstring(tree) or ""
            purpose = " ".join(described.split("\n\n")[0].split())
            yield Use(_where(package, file, name), tuple(shown), purpose)


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
