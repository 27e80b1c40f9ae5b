"""The digest that says which random number module dealt a round."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import casino_brag.rng
from casino_brag.rng import MODULE_DIGEST
from casino_brag.rng.module import module_digest

MODULE = Path(casino_brag.rng.__file__).parent

PIPELINE = """
LC_ALL=C; export LC_ALL
for file in *.py; do printf '%s\\n%s\\n' "$file" "$(($(wc -c < "$file")))"; cat "$file"; done | sha256sum
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the module's source."""
    return Path(shutil.copytree(MODULE, tmp_path / "rng", ignore=shutil.ignore_patterns("__pycache__")))


def test_the_digest_can_be_computed_without_python() -> None:
    printed = subprocess.run(
        ["/bin/sh", "-c", PIPELINE], cwd=MODULE, capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert printed.split()[0] == MODULE_DIGEST


def test_the_digest_is_of_the_source_wherever_it_lies(copy: Path) -> None:
    assert module_digest(copy) == MODULE_DIGEST
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "deal.cpython-311.pyc").write_bytes(b"compiled")
    assert module_digest(copy) == MODULE_DIGEST


@pytest.mark.parametrize("name", sorted(file.name for file in MODULE.glob("*.py")))
def test_the_digest_changes_with_a_single_bit_of_any_file(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    assert module_digest(copy) != MODULE_DIGEST


def test_the_digest_changes_when_a_file_comes_goes_or_is_renamed(copy: Path) -> None:
    digests = {MODULE_DIGEST}
    (copy / "extra.py").write_bytes(b"")
    digests.add(module_digest(copy))
    (copy / "extra.py").unlink()
    (copy / "deal.py").rename(copy / "deals.py")
    digests.add(module_digest(copy))
    (copy / "deals.py").unlink()
    digests.add(module_digest(copy))
    assert len(digests) == 4


def test_the_digest_changes_when_a_line_moves_from_one_file_to_the_next(tmp_path: Path) -> None:
    """Lengths are under the digest, so that what follows one file cannot pass for the beginning of another."""
    digests = set()
    for number, (first, second) in enumerate([(b"a\n", b"b\n"), (b"a\nb.py\n2\nb\n", b""), (b"", b"a\nb\n")]):
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "a.py").write_bytes(first)
        (directory / "b.py").write_bytes(second)
        digests.add(module_digest(directory))
    assert len(digests) == 3
