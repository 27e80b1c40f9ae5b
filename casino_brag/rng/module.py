"""Which module this is: the digest of each of its files, and one over all, stored with every round it deals."""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
from collections.abc import Mapping
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path, PurePath
from typing import Final

DIRECTORY: Final = Path(__file__).parent
MANIFEST: Final = "MANIFEST.sha256"

_LINE: Final = re.compile(r"([0-9a-f]{64})  ([\w./-]+)", re.ASCII)


class IntegrityFailure(Exception):
    """The module's files are not those of its manifest."""


def module_files(directory: Path = DIRECTORY) -> list[Path]:
    """What the module consists of beside its manifest: source and known answers, by name."""
    return sorted(path for suffix in ("py", "txt") for path in directory.glob(f"*.{suffix}"))


def module_digest(directory: Path = DIRECTORY) -> str:
    """SHA-256 (hex) over the names and contents of the module's files, in the order of their names."""
    digest = hashlib.sha256()
    for file in module_files(directory):
        content = file.read_bytes()
        digest.update(f"{file.name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def check_manifest(directory: Path = DIRECTORY) -> int:
    """How many files were compared with the manifest.

    Raises `IntegrityFailure` for a file that is altered, missing or not listed, whatever its name: an extension
    or a package by a module's name would be loaded in its place.  So for bytecode that is not of its source, and
    where assertions were switched off, which hold the limits of the algorithm.
    """
    if sys.flags.optimize:
        raise IntegrityFailure("Python was told to leave assertions out (-O)")
    try:
        files = {
            written(PurePath(path.name)): path
            for path in directory.iterdir()
            if path.name not in (MANIFEST, "__pycache__")
        }
        wrong, doctored = compare(directory / MANIFEST, files)
    except OSError as unreadable:
        raise IntegrityFailure("the module's files or their manifest cannot be read") from unreadable
    if wrong:
        raise IntegrityFailure(f"not as in the module's manifest: {', '.join(wrong)}")
    if doctored:
        raise IntegrityFailure(f"bytecode that is not of its source: {', '.join(doctored)}")
    return len(files)


def compare(manifest: Path, files: Mapping[str, Path]) -> tuple[list[str], list[str]]:
    """Names of files that are not as in a manifest, whose lines are those of ``sha256sum``, and of doctored bytecode.

    `files` by the names that the manifest has for them.  Raises `OSError` for what cannot be read, and
    `IntegrityFailure` for a manifest that is damaged.
    """
    listed: dict[str, str] = {}
    for line in manifest.read_text(encoding="ascii", errors="replace").splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None or parts[2] in listed:
            raise IntegrityFailure(f"a manifest is damaged: {manifest.parent.name}/{manifest.name}")
        listed[parts[2]] = parts[1]
    found = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    wrong = [name for name in listed.keys() | found.keys() if listed.get(name) != found.get(name)]
    doctored = [name for name, path in files.items() if path.suffix == ".py" and bytecode_differs(path)]
    return sorted(wrong), sorted(doctored)


def written(path: PurePath) -> str:
    """A path as it can be written down, even where a name in it is no text."""
    return path.as_posix().encode(errors="backslashreplace").decode()


def bytecode_differs(source: Path) -> bool:
    """Whether Python keeps bytecode that it would load for this source, and that does not come from it."""
    try:
        kept = Path(cache_from_source(str(source))).read_bytes()
    except OSError:
        return False  # there is none
    status = source.stat()
    stamp = b"".join(
        (n & 0xFFFFFFFF).to_bytes(4, "little") for n in (status.st_mtime_ns // 1_000_000_000, status.st_size)
    )
    by_stamp = kept[4:8] == bytes(4)
    if kept[:4] != MAGIC_NUMBER or (by_stamp and kept[8:16] != stamp):
        return False  # Python would not load it
    try:
        loaded = marshal.loads(kept[16:])  # noqa: S302 - to be compared, and never run
        return bool(loaded != compile(source.read_bytes(), str(source), "exec", dont_inherit=True))
    except (EOFError, TypeError, ValueError, SyntaxError):
        return True


MODULE_DIGEST: Final = module_digest()
