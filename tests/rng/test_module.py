"""The digest that says which random number module dealt a round, and the manifest that its files must agree with."""

from __future__ import annotations

import hashlib
import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

import pytest

import casino_brag.rng
from casino_brag.rng import MODULE_DIGEST
from casino_brag.rng.module import (
    MANIFEST,
    IntegrityFailure,
    bytecode_differs,
    check_manifest,
    module_digest,
    module_files,
)

MODULE = Path(casino_brag.rng.__file__).parent
FILES = [file.name for file in module_files()]

PIPELINE = """
LC_ALL=C; export LC_ALL
for file in $(printf '%s\\n' *.py *.txt | sort); do
    printf '%s\\n%s\\n' "$file" "$(($(wc -c < "$file")))"; cat "$file"
done | sha256sum
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the module's files, in a package that can be imported."""
    package = tmp_path / "casino_brag"
    package.mkdir()
    shutil.copy(MODULE.parent / "__init__.py", package)
    return Path(shutil.copytree(MODULE, package / "rng", ignore=shutil.ignore_patterns("__pycache__")))


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


def test_the_module_is_its_source_and_its_known_answers() -> None:
    assert FILES == [
        "__init__.py",
        "bounded.py",
        "deal.py",
        "entropy.py",
        "generator.py",
        "hmac_drbg.py",
        "known_answers.py",
        "known_answers.txt",
        "module.py",
        "seeds.py",
    ]


@pytest.mark.parametrize("name", FILES)
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


# The manifest


def write_manifest(directory: Path) -> None:
    """As ``sha256sum`` writes it."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in module_files(directory)
    ]
    (directory / MANIFEST).write_text("".join(lines))


def appended(name: str, text: bytes) -> Callable[[Path], object]:
    def alter(directory: Path) -> object:
        file = directory / name
        return file.write_bytes((file.read_bytes() if file.exists() else b"") + text)

    return alter


def removed(name: str) -> Callable[[Path], object]:
    return lambda directory: (directory / name).unlink()


def replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    def alter(directory: Path) -> object:
        text = (directory / name).read_text()
        assert text.count(old) >= 1
        return (directory / name).write_text(text.replace(old, new, 1))

    return alter


def cut_off(directory: Path) -> object:
    lines = (directory / MANIFEST).read_text().splitlines(keepends=True)
    return (directory / MANIFEST).write_text("".join(lines[:-1]))


def doubled(directory: Path) -> object:
    manifest = (directory / MANIFEST).read_text()
    return (directory / MANIFEST).write_text(manifest + manifest.splitlines(keepends=True)[0])


def with_a_package(directory: Path) -> object:
    (directory / "bounded").mkdir()
    return (directory / "bounded" / "__init__.py").write_text("from casino_brag.rng.bounded_before import *")


ALTERATIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a comment more": (appended("deal.py", b"# harmless\n"), "deal.py"),
    "a known answer altered": (
        replaced("known_answers.txt", "ReturnedBits = e", "ReturnedBits = f"),
        "known_answers.txt",
    ),
    "a file missing": (removed("known_answers.txt"), "known_answers.txt"),
    "a file too many": (appended("extra.py", b""), "extra.py"),
    "an extension, which comes before source": (appended("notes.abi3.so", b"\x7fELF"), "notes.abi3.so"),
    "a package, which comes before source": (with_a_package, "cannot be read"),
    "a file of another kind": (appended("notes.md", b"text"), "notes.md"),
    "a line of the manifest missing": (cut_off, "known_answers.txt"),
    "a line of the manifest twice": (doubled, "manifest is damaged"),
    "a line that is none": (appended(MANIFEST, b"# by hand\n"), "manifest is damaged"),
    "an empty line": (appended(MANIFEST, b"\n"), "manifest is damaged"),
    "a letter in capitals": (replaced(MANIFEST, "a", "A"), "manifest is damaged"),
    "a path in the manifest": (replaced(MANIFEST, "  deal.py", "  ../rng/deal.py"), "not as in"),
    "a letter that is not ASCII": (appended(MANIFEST, "é\n".encode()), "manifest is damaged"),
    "an empty manifest": (lambda directory: (directory / MANIFEST).write_bytes(b""), "not as in"),
    "no manifest": (removed(MANIFEST), "cannot be read"),
}


def test_the_files_are_as_in_the_manifest_that_ships_with_them(copy: Path) -> None:
    assert check_manifest() == check_manifest(copy) == len(FILES)
    shipped = (copy / MANIFEST).read_text()
    write_manifest(copy)
    assert sorted((copy / MANIFEST).read_text().splitlines()) == sorted(shipped.splitlines())


def test_what_the_interpreter_keeps_beside_the_source_is_no_file_of_the_module(copy: Path) -> None:
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "deal.cpython-311.pyc").write_bytes(b"compiled")
    assert check_manifest(copy) == len(FILES)


@pytest.mark.parametrize("name", ALTERATIONS)
def test_whatever_is_altered_is_noticed_and_named(name: str, copy: Path) -> None:
    alter, said = ALTERATIONS[name]
    alter(copy)
    with pytest.raises(IntegrityFailure, match=said):
        check_manifest(copy)


@pytest.mark.parametrize("name", FILES)
def test_a_single_bit_of_any_file_is_noticed(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[-2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(IntegrityFailure, match=name):
        check_manifest(copy)


DEALING = """
import sys
from pathlib import Path
from casino_brag.rng import Generator, RngUnavailable

generator = Generator()
exec(sys.argv[1])
for attempt in range(2):
    try:
        print(len(generator.generate(16, "a test").output), "bytes")
    except RngUnavailable as refused:
        print(refused)
    exec(sys.argv[2])
print(generator.state)
"""


def dealing(copy: Path, before: str = "", after: str = "") -> list[str]:
    """What a program prints that loads this copy, does something, asks twice with something between, and its state."""
    finished = subprocess.run(
        [sys.executable, "-c", DEALING, before, after],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return finished.stdout.splitlines()


def test_a_module_that_is_as_it_should_be_serves(copy: Path) -> None:
    assert dealing(copy) == ["16 bytes", "16 bytes", "ready"]


@pytest.mark.parametrize(
    "name", ["a comment more", "a file missing", "a file too many", "a line that is none"]
)
def test_an_altered_module_serves_nothing(name: str, copy: Path) -> None:
    alter, said = ALTERATIONS[name]
    alter(copy)
    first, second, state = dealing(copy)
    assert (first, state) == (second, "error")
    assert said in first


def test_an_altered_known_answer_is_found_by_running_it_though_the_manifest_agrees(copy: Path) -> None:
    alter, _ = ALTERATIONS["a known answer altered"]
    alter(copy)
    write_manifest(copy)
    first, second, state = dealing(copy)
    assert (first, state) == (second, "error")
    assert "the answer is not the known one" in first


def test_a_file_that_changes_after_it_was_loaded_stops_the_module_though_the_manifest_agrees(
    copy: Path,
) -> None:
    """And putting it back does not start it again; a new process does."""
    change = """
import hashlib
file, manifest = Path("deal.py"), Path("MANIFEST.sha256")
before = file.read_bytes(), manifest.read_text()
file.write_bytes(before[0] + b"# harmless")
digests = [hashlib.sha256(content).hexdigest() for content in (before[0], file.read_bytes())]
manifest.write_text(before[1].replace(*digests))
"""
    put_back = "file.write_bytes(before[0]); manifest.write_text(before[1])"
    first, second, state = dealing(copy, change, put_back)
    assert (first, state) == (second, "error")
    assert "changed after they were loaded" in first
    assert dealing(copy) == ["16 bytes", "16 bytes", "ready"]


def bytecode(source: Path, text: str) -> Path:
    """Bytecode of this text, kept where Python would load it for that source."""
    kept = Path(cache_from_source(str(source)))
    kept.parent.mkdir(exist_ok=True)
    status = source.stat()
    header = MAGIC_NUMBER + bytes(4)
    header += b"".join(int(number).to_bytes(4, "little") for number in (status.st_mtime, status.st_size))
    kept.write_bytes(header + marshal.dumps(compile(text, str(source), "exec", dont_inherit=True)))
    return kept


def test_bytecode_that_is_not_of_its_source_serves_nothing(copy: Path) -> None:
    """Python loads it, though every file of the module is as it should be."""
    source = copy / "deal.py"
    original = source.read_text()
    for text in (
        original,
        original.replace("index, pick = divmod(index, radix)", "index, pick = 0, index % 7"),
    ):
        bytecode(source, text)
        assert bytecode_differs(source) is (text != original)
    first, second, state = dealing(copy)
    assert (first, state) == (second, "error")
    assert "bytecode that is not of its source: deal.py" in first


def test_bytecode_that_python_would_not_load_is_none(copy: Path) -> None:
    source = copy / "deal.py"
    kept = bytecode(source, "doctored = True")
    assert bytecode_differs(source)
    content = kept.read_bytes()
    for place in (0, 8, 12):  # another Python's, of another time, of a source of another size
        kept.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert not bytecode_differs(source)
    kept.write_bytes(content[:-5])
    assert bytecode_differs(source), "damaged"
    assert not bytecode_differs(copy / "seeds.py"), "none is kept"


def test_a_source_that_is_no_program_any_more_is_a_difference_and_no_crash(copy: Path) -> None:
    """As when a disk lost a block, while the time and the size of the file stayed."""
    source = copy / "deal.py"
    bytecode(source, source.read_text())
    text = source.read_text().replace("def unrank", "dgf unrank")
    status = source.stat()
    source.write_text(text)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert bytecode_differs(source)
    with pytest.raises(IntegrityFailure, match=r"deal\.py"):
        check_manifest(copy)


def test_without_assertions_it_serves_nothing(copy: Path) -> None:
    """They hold the limits of the algorithm."""
    refused = subprocess.run(
        [sys.executable, "-O", "-c", DEALING, "", ""],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "leave assertions out" in refused.stdout
    assert refused.stdout.splitlines()[-1] == "error"
