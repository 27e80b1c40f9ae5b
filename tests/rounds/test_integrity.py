"""The files of the program against their manifests: by the program, by a shell script, and out of a wheel."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode
from types import SimpleNamespace
from typing import Any, cast
from zipfile import ZipFile

import psycopg
import pytest

import casino_brag
from casino_brag.rng import MODULE_DIGEST
from casino_brag.rng.module import IntegrityFailure, check_manifest
from casino_brag.rounds import integrity
from casino_brag.rounds.integrity import Integrity, check_integrity, package_files

ROOT = Path(casino_brag.__file__).parents[1]
CANNOT_BE_READ = "The package's files or their manifest cannot be read."

Damage = Callable[[Path], object]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the checkout, whose manifests were made anew."""
    for name in ("casino_brag", "migrations", "paytables", "jurisdictions", "verification"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    assert digests(tmp_path, "--write").returncode == 0
    return tmp_path


def digests(tree: Path, *option: str) -> subprocess.CompletedProcess[str]:
    """What the shell script says of a tree, wherever it is called from."""
    script = tree / "verification" / "digests.sh"
    return subprocess.run(
        ["/bin/sh", script, *option], cwd="/", capture_output=True, text=True, timeout=60, check=False
    )


class NoPaytables:
    """In a connection's place, a database in which nothing was published."""

    def execute(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(fetchall=list)


@pytest.fixture
def check(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Integrity]:
    """Has the program look at the tree."""
    package = tree / "casino_brag"
    monkeypatch.setattr(integrity, "PACKAGE", package)
    monkeypatch.setattr(integrity, "MANIFEST", package / "MANIFEST.sha256")
    monkeypatch.setattr(integrity, "shipped", lambda name: tree / name)
    monkeypatch.setattr(integrity, "_LOADED", manifest(tree).read_bytes())
    return lambda: check_integrity(cast("psycopg.Connection[Any]", NoPaytables()))


def manifest(tree: Path) -> Path:
    return tree / "casino_brag" / "MANIFEST.sha256"


def append(name: str, text: str = "\n") -> Damage:
    return lambda tree: (tree / name).write_text((tree / name).read_text() + text)


def add(name: str) -> Damage:
    def damage(tree: Path) -> None:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).touch()

    return damage


def remove(name: str) -> Damage:
    return lambda tree: (tree / name).unlink()


def one_bit(name: str) -> Damage:
    def damage(tree: Path) -> None:
        content = bytearray((tree / name).read_bytes())
        content[len(content) // 2] ^= 1
        (tree / name).write_bytes(content)

    return damage


def rewrite(edit: Callable[[list[str]], list[str]]) -> Damage:
    """Does something to the lines of the package's manifest."""
    return lambda tree: manifest(tree).write_text(
        "\n".join(edit(manifest(tree).read_text().splitlines())) + "\n"
    )


FILES: dict[str, tuple[Damage, str]] = {
    "altered": (one_bit("casino_brag/game/hands.py"), "casino_brag/game/hands.py"),
    "longer": (append("casino_brag/web/templates/docs.html"), "casino_brag/web/templates/docs.html"),
    "altered migration": (one_bit("migrations/0001_audit.sql"), "migrations/0001_audit.sql"),
    "missing": (remove("casino_brag/py.typed"), "casino_brag/py.typed"),
    "missing migration": (remove("migrations/0002_operators.sql"), "migrations/0002_operators.sql"),
    "not listed": (add("casino_brag/extra.py"), "casino_brag/extra.py"),
    "not listed, in a new place": (add("casino_brag/more/__init__.py"), "casino_brag/more/__init__.py"),
    "not listed, compiled": (add("casino_brag/rng/deal.abi3.so"), "casino_brag/rng/deal.abi3.so"),
    "not listed, hidden": (add("casino_brag/.more"), "casino_brag/.more"),
    "not listed, of another case": (add("casino_brag/Errors.py"), "casino_brag/Errors.py"),
    "not listed migration": (add("migrations/9999_more.sql"), "migrations/9999_more.sql"),
    "in the module": (one_bit("casino_brag/rng/deal.py"), "casino_brag/rng/deal.py"),
    "module's manifest": (append("casino_brag/rng/MANIFEST.sha256"), "casino_brag/rng/MANIFEST.sha256"),
}

LINES: dict[str, tuple[Damage, str | None]] = {
    "another digest": (rewrite(lambda lines: ["0" * 64 + lines[0][64:], *lines[1:]]), "__init__.py"),
    "a line less": (rewrite(lambda lines: lines[1:]), "__init__.py"),
    "a line more": (rewrite(lambda lines: [*lines, f"{'0' * 64}  casino_brag/zzz.py"]), "zzz.py"),
    "names exchanged": (
        rewrite(lambda lines: [lines[0][:66] + lines[1][66:], lines[1][:66] + lines[0][66:], *lines[2:]]),
        "__init__.py",
    ),
    "a line twice": (rewrite(lambda lines: [lines[0], *lines]), None),
    "a name twice": (rewrite(lambda lines: ["0" * 64 + lines[0][64:], *lines]), None),
    "an empty line": (rewrite(lambda lines: ["", *lines]), None),
    "a comment": (rewrite(lambda lines: ["# made by hand", *lines]), None),
    "one blank": (rewrite(lambda lines: [lines[0].replace("  ", " "), *lines[1:]]), None),
    "a digest too short": (rewrite(lambda lines: [lines[0][1:], *lines[1:]]), None),
    "a file elsewhere": (rewrite(lambda lines: [f"{'0' * 64}  /etc/passwd", *lines]), "/etc/passwd"),
    "not ASCII": (rewrite(lambda lines: [f"{'0' * 64}  casino_brag/é.py", *lines]), None),
    "missing": (lambda tree: manifest(tree).unlink(), None),
    "what is no text": (lambda tree: manifest(tree).write_bytes(b"\xff\xfe"), None),
}


def test_a_tree_as_it_was_shipped_agrees(tree: Path, check: Callable[[], Integrity]) -> None:
    found = check()
    assert found.problems == ()
    assert found.files == len(manifest(tree).read_text().splitlines()) == len(package_files())
    assert found.manifest_digest == sha256(manifest(tree).read_bytes()).hexdigest()
    assert (found.paytables, check_manifest(tree / "casino_brag" / "rng")) == (0, 10)


@pytest.mark.parametrize("damage", FILES)
def test_program_and_script_both_notice_a_file_that_is(
    tree: Path, check: Callable[[], Integrity], damage: str
) -> None:
    do, name = FILES[damage]
    do(tree)
    assert check().problems == (f"Not as in the package's manifest: {name}.",)
    assert digests(tree).returncode != 0


@pytest.mark.parametrize("damage", LINES)
def test_program_and_script_both_notice_a_manifest_with(
    tree: Path, check: Callable[[], Integrity], damage: str
) -> None:
    do, name = LINES[damage]
    do(tree)
    (problem,) = check().problems
    assert problem == CANNOT_BE_READ if name is None else name in problem
    assert digests(tree).returncode != 0


@pytest.mark.parametrize(
    "edit",
    [
        lambda line: line[:64].upper() + line[64:],
        lambda line: line.replace("  ", " *"),
    ],
    ids=["in capitals", "marked as binary"],
)
def test_the_program_takes_no_other_form_of_a_line_though_the_script_does(
    tree: Path, check: Callable[[], Integrity], edit: Callable[[str], str]
) -> None:
    rewrite(lambda lines: [edit(lines[0]), *lines[1:]])(tree)
    assert check().problems[0] == CANNOT_BE_READ


def test_an_empty_manifest_agrees_with_nothing(tree: Path, check: Callable[[], Integrity]) -> None:
    manifest(tree).write_bytes(b"")
    (problem,) = check().problems
    assert problem.startswith("Not as in the package's manifest: casino_brag/__init__.py, ")
    assert problem.endswith(", ….")  # it names the first of very many
    assert problem.count(",") == 5
    assert digests(tree).returncode != 0


def test_what_python_compiles_for_itself_and_what_is_no_part_of_it_is_not_compared(
    tree: Path, check: Callable[[], Integrity]
) -> None:
    before = check()
    for name in ("casino_brag", "casino_brag/rng"):
        (tree / name / "__pycache__").mkdir()
        (tree / name / "__pycache__" / "errors.cpython-311.pyc").write_bytes(b"compiled")
    (tree / "migrations" / "README.md").touch()
    (tree / "notes.txt").touch()
    assert check() == before
    assert before.problems == ()
    assert digests(tree).returncode == 0


def test_bytecode_that_python_would_load_is_compared_with_its_source(
    tree: Path, check: Callable[[], Integrity]
) -> None:
    """Such as is loaded whatever the source says; `PycInvalidationMode.UNCHECKED_HASH`."""
    source = tree / "casino_brag" / "game" / "hands.py"
    kept = cache_from_source(str(source))
    unchecked = PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), cfile=kept, doraise=True, invalidation_mode=unchecked)
    assert check().problems == ()
    other = tree / "other.py"
    other.write_text(source.read_text().replace("return", "return not", 1))
    py_compile.compile(str(other), cfile=kept, doraise=True, invalidation_mode=unchecked)
    (problem,) = check().problems
    assert "casino_brag/game/hands.py" in problem
    assert digests(tree).returncode == 0  # it knows of files only


@pytest.mark.parametrize("to", ["elsewhere.py", "migrations"])
def test_program_and_script_both_notice_a_link_that_is_not_listed(
    tree: Path, check: Callable[[], Integrity], to: str
) -> None:
    (tree / "elsewhere.py").touch()
    (tree / "casino_brag" / "linked").symlink_to(tree / to)
    assert len(check().problems) == 1
    assert digests(tree).returncode != 0


def test_a_file_whose_name_is_no_text_is_named_in_what_can_be_written_down(
    tree: Path, check: Callable[[], Integrity]
) -> None:
    (tree / "casino_brag" / os.fsdecode(b"sneaked\xff.py")).touch()
    (problem,) = check().problems
    assert "sneaked" in problem
    assert problem.encode()
    assert digests(tree).returncode != 0


def test_the_script_makes_both_manifests_and_the_program_agrees_with_them(
    tree: Path, check: Callable[[], Integrity], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = check().manifest_digest
    append("casino_brag/rng/deal.py", "# more\n")(tree)
    add("casino_brag/more.py")(tree)
    assert check().problems
    with pytest.raises(IntegrityFailure, match=r"deal\.py"):
        check_manifest(tree / "casino_brag" / "rng")
    assert digests(tree, "--write").returncode == 0
    (problem,) = check().problems
    assert problem == "The files changed, and their manifest with them, after the program was loaded."
    monkeypatch.setattr(integrity, "_LOADED", manifest(tree).read_bytes())  # as when it is started again
    again = check()
    assert again.problems == ()
    assert again.manifest_digest != first
    assert check_manifest(tree / "casino_brag" / "rng") == 10
    assert not list(tree.rglob("*.new"))


def test_the_script_prints_the_digests_that_are_kept_with_rounds_and_checks(
    tree: Path, check: Callable[[], Integrity]
) -> None:
    done = digests(tree)
    assert (done.returncode, done.stderr) == (0, "")
    module, *files = done.stdout.splitlines()
    assert module == f"random number module  {MODULE_DIGEST}"
    printed = {name: digest for digest, name in (line.split("  ") for line in files)}
    assert printed["casino_brag/MANIFEST.sha256"] == check().manifest_digest
    assert set(printed) == {"casino_brag/MANIFEST.sha256"} | {
        f"paytables/{paytable.name}" for paytable in (ROOT / "paytables").glob("*.toml")
    }


OUT_OF_A_WHEEL = """
from types import SimpleNamespace
from casino_brag.rng import Generator, MODULE_DIGEST
from casino_brag.rounds.integrity import PACKAGE, check_integrity
found = check_integrity(SimpleNamespace(execute=lambda _: SimpleNamespace(fetchall=list)))
Generator().start()
print(PACKAGE, found.manifest_digest, found.files, MODULE_DIGEST, *found.problems, sep="\\n")
"""


def test_a_wheel_carries_both_manifests_and_agrees_with_them(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with ZipFile(wheel) as archive:
        archive.extractall(site)

    def told() -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", OUT_OF_A_WHEEL],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.splitlines()

    listed = (ROOT / "casino_brag" / "MANIFEST.sha256").read_bytes()
    expected = [
        str(site / "casino_brag"),
        sha256(listed).hexdigest(),
        str(listed.count(b"\n")),
        MODULE_DIGEST,
    ]
    assert told() == expected
    append("casino_brag/migrations/0001_audit.sql")(site)
    assert told() == [*expected, "Not as in the package's manifest: migrations/0001_audit.sql."]
