"""Checkpoints that are kept elsewhere, as whoever verifies the log is given them: files and directories of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from casino_brag.audit.notes import NOTE_MAX, NoteError, VerifierKey
from casino_brag.errors import SetUpError

_FILE_NAME = re.compile(r"[0-9]{20}\.checkpoint", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """A file with a signed checkpoint, and the size of the tree that it is of, as far as can be seen from outside."""

    size: int
    path: Path

    @property
    def day(self) -> date | None:
        """The day that its directory says it was published on, where it lies in one of a day."""
        try:
            return date(*map(int, self.path.absolute().parts[-4:-1]))
        except (ValueError, TypeError):
            return None

    def note(self) -> str:
        """What is in the file; `NoteError` when that cannot be a note, or is of another size than the file's name."""
        note = _text(self.path)
        if note.split("\n", 2)[1:2] != [str(self.size)]:
            raise NoteError("it is of another size than its name says")
        return note


def kept_checkpoints(places: Iterable[Path]) -> list[Kept]:
    """The checkpoints in files, and in directories as `casino_brag.audit.publishing` lays them out, by size.

    `SetUpError` for a place that is neither.
    """
    found: list[Kept] = []
    for place in places:
        if place.is_dir():
            found += _in_directory(place)
        else:
            found.append(Kept(_size(place), place))
    return sorted(found)


def kept_keys(places: Iterable[Path]) -> list[VerifierKey]:
    """The keys in the directories among `places`, which lie there beside the checkpoints."""
    keys = []
    for path in sorted(file for place in places for file in (place / "keys").glob("*.vkey")):
        try:
            keys.append(VerifierKey.parse(_text(path).strip()))
        except NoteError as wrong:
            raise SetUpError(f"{path} is no key: {wrong}. Restore it, or name the key with --key.") from wrong
    return keys


def _in_directory(directory: Path) -> Iterator[Kept]:
    for parent, _, names in os.walk(directory):
        for name in names:
            if _FILE_NAME.fullmatch(name):
                yield Kept(int(name[:20]), Path(parent, name))


def _size(path: Path) -> int:
    """The size of a checkpoint in a file of any name."""
    try:
        return int(_text(path).split("\n", 2)[1])
    except (NoteError, IndexError, ValueError):
        raise SetUpError(
            f"{path} is no checkpoint: give a file of the published checkpoints, or their directory."
        ) from None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(4 * NOTE_MAX + 1)
        if len(content) > 4 * NOTE_MAX:
            raise NoteError("it is too long")
        return content.decode()
    except UnicodeDecodeError:
        raise NoteError("it is not UTF-8") from None
    except OSError as failure:
        raise SetUpError(f"{path} cannot be read: {failure.strerror}.") from failure
