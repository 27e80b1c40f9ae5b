"""The auditors' scripts, for tests that call what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

DIRECTORY = Path(__file__).parents[2] / "verification"


@pytest.fixture(scope="module")
def scripts() -> Iterator[SimpleNamespace]:
    """The scripts as modules, found as they find each other: in one directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DIRECTORY))
        yield SimpleNamespace(**{path.stem: import_module(path.stem) for path in DIRECTORY.glob("*.py")})
