"""Files of this checkout, and what they define: for documents that name them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def names_in(file: str) -> frozenset[str]:
    """What a Python file defines at its top and in its classes."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name, body=body):
                found |= {
                    name,
                    *(f"{name}.{inner.name}" for inner in body if isinstance(inner, ast.FunctionDef)),
                }
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
    return frozenset(found)


def exists(name: str) -> bool:
    """Whether there is what a name says: a path from the root of the checkout, or ``file::name`` in Python."""
    file, inside, defined = name.partition("::")
    return (ROOT / file).exists() and (not inside or defined in names_in(file))
