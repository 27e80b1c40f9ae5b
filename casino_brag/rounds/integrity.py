"""Whether the program and the paytables are the ones that were shipped and published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import psycopg

from casino_brag.config import shipped
from casino_brag.errors import SetUpError
from casino_brag.rng.module import IntegrityFailure, compare, written

PACKAGE: Final = Path(__file__).parents[1]
MANIFEST: Final = PACKAGE / "MANIFEST.sha256"

_LOADED: Final = MANIFEST.read_bytes() if MANIFEST.is_file() else b""
"""The manifest of the program that runs; a process that was forked later runs this one too."""

LOADED_DIGEST: Final = sha256(_LOADED).hexdigest()
"""Its digest, which tells one program from another of the same version."""

NAMED_MAX: Final = 5
"""How many files a problem names."""

_CARRIED: Final = ("jurisdictions", "migrations", "paytables")  # a wheel carries them inside the package


@dataclass(frozen=True, slots=True)
class Integrity:
    """What a check compared, and what did not agree, a sentence each."""

    manifest_digest: str
    files: int
    paytables: int
    problems: tuple[str, ...]


def check_integrity(conn: psycopg.Connection[Any]) -> Integrity:
    """Compares the package's files with its manifest, and every paytable and PAR sheet with its digest."""
    of_files = check_files()
    rows = conn.execute(
        "SELECT v.game, v.version, v.digest = encode(sha256(convert_to(v.document, 'UTF8')), 'hex')"
        " AND s.digest IS NOT DISTINCT FROM encode(sha256(convert_to(s.document, 'UTF8')), 'hex')"
        " FROM paytable_version AS v LEFT JOIN paytable_par_sheet AS s USING (version_id) ORDER BY v.game, v.version"
    ).fetchall()
    altered = tuple(f"Version {number} of {game} was altered." for game, number, agrees in rows if not agrees)
    return replace(of_files, paytables=len(rows), problems=of_files.problems + altered)


def check_files() -> Integrity:
    """Compares the package's files with its manifest, and nothing else.

    The manifest has the lines of ``sha256sum``; `verification/digests.sh` makes and checks it without this program.
    """
    problems, files, manifest = [], dict[str, Path](), b""
    try:
        manifest, files = MANIFEST.read_bytes(), package_files()
        wrong, doctored = compare(MANIFEST, files)
    except (OSError, SetUpError, IntegrityFailure):
        problems.append("The package's files or their manifest cannot be read.")
    else:
        problems += _named("Not as in the package's manifest", wrong)
        problems += _named("Bytecode that is not of its source", doctored)
        if not problems and manifest != _LOADED:
            problems.append("The files changed, and their manifest with them, after the program was loaded.")
    return Integrity(sha256(manifest).hexdigest(), len(files), 0, tuple(problems))


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
    files = {f"casino_brag/{written(path.relative_to(PACKAGE))}": path for path in own}
    for name, suffix in (("jurisdictions", "toml"), ("migrations", "sql")):
        files |= {f"{name}/{path.name}": path for path in shipped(name).glob(f"*.{suffix}")}
    return files


def _named(problem: str, names: list[str]) -> list[str]:
    return [f"{problem}: {', '.join(names[:NAMED_MAX])}{', …' * (len(names) > NAMED_MAX)}."] if names else []
