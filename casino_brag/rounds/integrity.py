"""Whether the program and the paytables are the ones that were shipped and published."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import psycopg

from casino_brag.config import shipped
from casino_brag.errors import SetUpError
from casino_brag.rng.module import bytecode_differs

PACKAGE: Final = Path(__file__).parents[1]
MANIFEST: Final = PACKAGE / "MANIFEST.sha256"

_LINE: Final = re.compile(r"([0-9a-f]{64})  ((?:casino_brag|migrations)/[\w./-]+)")
_CARRIED: Final = ("migrations", "paytables")  # a wheel carries them inside the package


@dataclass(frozen=True, slots=True)
class Integrity:
    """What a check compared, and what did not agree, a sentence each."""

    manifest_digest: str
    files: int
    paytables: int
    problems: tuple[str, ...]


def check_integrity(conn: psycopg.Connection[Any]) -> Integrity:
    """Compares the package's files with its manifest, and every published paytable with its digest.

    The manifest has the lines of ``sha256sum``; `verification/digests.sh` makes and checks it without this program.
    """
    problems = []
    try:
        manifest = MANIFEST.read_bytes()
        listed = _listed(manifest.decode("ascii"))
        files = package_files()
        found = {name: sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
        doctored = [name for name, file in files.items() if file.suffix == ".py" and bytecode_differs(file)]
    except (OSError, UnicodeDecodeError, SetUpError, ValueError):
        problems.append("The package's files or their manifest cannot be read.")
        manifest, listed, found, doctored = b"", {}, {}, []
    names = listed.keys() | found.keys()
    if wrong := sorted(name for name in names if listed.get(name) != found.get(name)):
        problems.append(
            f"Not as in the package's manifest: {', '.join(wrong[:5])}{', …' * (len(wrong) > 5)}."
        )
    if doctored:
        problems.append(f"Bytecode that is not of its source: {', '.join(sorted(doctored)[:5])}.")
    rows = conn.execute(
        "SELECT game, version, digest = encode(sha256(convert_to(document, 'UTF8')), 'hex') FROM paytable_version"
        " ORDER BY game, version"
    ).fetchall()
    problems += [f"Version {number} of {game} was altered." for game, number, agrees in rows if not agrees]
    return Integrity(sha256(manifest).hexdigest(), len(found), len(rows), tuple(problems))


def package_files() -> dict[str, Path]:
    """The files that the manifest covers, by the name that each has in a checkout."""
    own = (
        path
        for path in PACKAGE.rglob("*")
        if (path.is_file() or path.is_symlink())
        and path != MANIFEST
        and "__pycache__" not in path.parts
        and path.relative_to(PACKAGE).parts[0] not in _CARRIED
    )
    files = {f"casino_brag/{_name(path)}": path for path in own}
    return files | {f"migrations/{path.name}": path for path in shipped("migrations").glob("*.sql")}


def _name(path: Path) -> str:
    """A path as it can be written down, even where its name is no text."""
    return path.relative_to(PACKAGE).as_posix().encode(errors="backslashreplace").decode()


def _listed(manifest: str) -> dict[str, str]:
    listed = {}
    for line in manifest.splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None or parts[2] in listed:
            raise ValueError("the manifest is damaged")
        listed[parts[2]] = parts[1]
    return listed
