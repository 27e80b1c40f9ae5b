"""Which module this is: the digest of each of its files, and one over all, stored with every round it deals."""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent
MANIFEST: Final = "MANIFEST.sha256"

_LINE: Final = re.compile(r"([0-9a-f]{64})  ([a-z0-9_.]+)")


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
    """How many files were compared with the manifest, whose lines are those of ``sha256sum``.

    Raises `IntegrityFailure` for a file that is altered, missing or not listed, whatever its name: an extension
    or a package by a module's name would be loaded in its place.  So for bytecode that is not of its source, and
    where assertions were switched off, which hold the limits of the algorithm.
    """
    if sys.flags.optimize:
        raise IntegrityFailure("Python was told to leave assertions out (-O)")
    try:
        listed = _listed((directory / MANIFEST).read_text(encoding="ascii"))
        found = {
            file.name.encode(errors="backslashreplace").decode(): hashlib.sha256(
                file.read_bytes()
            ).hexdigest()
            for file in directory.iterdir()
            if file.name not in (MANIFEST, "__pycache__")
        }
    except (OSError, UnicodeDecodeError) as unreadable:
        raise IntegrityFailure("the module's files or their manifest cannot be read") from unreadable
    wrong = sorted(name for name in listed.keys() | found.keys() if listed.get(name) != found.get(name))
    if wrong:
        raise IntegrityFailure(f"not as in the module's manifest: {', '.join(wrong)}")
    if doctored := [source.name for source in sorted(directory.glob("*.py")) if bytecode_differs(source)]:
        raise IntegrityFailure(f"bytecode that is not of its source: {', '.join(doctored)}")
    return len(found)


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
    except (EOFError, TypeError, ValueError):
        return True
    return bool(loaded != compile(source.read_bytes(), str(source), "exec", dont_inherit=True))


def _listed(manifest: str) -> dict[str, str]:
    listed = {}
    for line in manifest.splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None or parts[2] in listed:
            raise IntegrityFailure("the module's manifest is damaged")
        listed[parts[2]] = parts[1]
    return listed


MODULE_DIGEST: Final = module_digest()
