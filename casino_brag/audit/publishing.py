"""Checkpoints outside of the database: files, for a directory that storage can make write-once.

    2026/11/30/00000000000000001234.checkpoint    a checkpoint: the day it was made, the size of its tree
    keys/8d7a64ab.vkey                            the key that checks its signature

What was published is found by looking, so a pass goes on from where any other was ended.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog

from casino_brag.audit.notes import NoteError, VerifierKey, opened
from casino_brag.audit.records import StoredCheckpoint, checkpoint_of, newest_checkpoint, verifier_keys
from casino_brag.db.clock import clock

log = structlog.get_logger("casino_brag.audit")

_SUFFIX: Final = ".checkpoint"
_PLACE: Final = ("[0-9]{4}", "[0-9]{2}", "[0-9]{2}", r"[0-9]{20}\.checkpoint")
"""How the directories and the file of a checkpoint are called.  What is called otherwise was put there by others."""


class PublishedDiffers(Exception):
    """A published file and the database disagree: one of them was changed, or an older database was restored."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Where checkpoints are published, and after how many seconds the next."""

    directory: Path
    every_seconds: int

    def publish(self, conn: psycopg.Connection[Any], keys: Iterable[VerifierKey]) -> int:
        """Publishes the newest checkpoint, if it is due; how many files that made.

        Raises `PublishedDiffers`, which is logged too.  What the disk refuses is logged, and left to the next pass.
        """
        try:
            made = sum(self._add(self._key_path(key), key.text() + "\n") for key in keys)
            due = self._due(conn)
            return made + (0 if due is None else self._add(self._path(due), due.note))
        except PublishedDiffers as differs:
            log.error("published_differs", problem=str(differs))
            raise
        except OSError as failure:
            log.error("checkpoint_not_published", problem=failure.strerror, file=failure.filename)
            return 0

    def _due(self, conn: psycopg.Connection[Any]) -> StoredCheckpoint | None:
        newest = newest_checkpoint(conn)
        published = _last(self.directory, _PLACE)
        if published is None:
            return newest
        last = self._checkpoint_in(published, conn)
        # One that was made in the future, by a clock that was wrong, must not keep others waiting until then.
        waits = timedelta() <= clock(conn) - last.made_at < timedelta(seconds=self.every_seconds)
        return None if waits else newest

    def _checkpoint_in(self, published: Path, conn: psycopg.Connection[Any]) -> StoredCheckpoint:
        """The checkpoint that a file holds; `PublishedDiffers` if that is not the one of its name."""
        note = published.read_bytes()
        try:
            signed, _ = opened(note.decode(), verifier_keys(conn))
        except (NoteError, UnicodeDecodeError):
            raise PublishedDiffers(
                f"{published} holds no checkpoint that was signed by this log's keys."
            ) from None
        found = checkpoint_of(conn, signed.size)
        if found is None or found.note.encode() != note:
            raise PublishedDiffers(f"{published} is no checkpoint of this database.")
        if self._path(found) != published:
            raise PublishedDiffers(
                f"{published} is a copy of the checkpoint of {signed.size} leaves, which belongs in"
                f" {self._path(found)}."
            )
        return found

    def _path(self, checkpoint: StoredCheckpoint) -> Path:
        day = checkpoint.made_at.astimezone(UTC).strftime("%Y/%m/%d")
        return self.directory / day / f"{checkpoint.tree_size:020}{_SUFFIX}"

    def _key_path(self, key: VerifierKey) -> Path:
        return self.directory / "keys" / f"{key.key_hash.hex()}.vkey"

    def _add(self, path: Path, text: str) -> bool:
        """Makes a file, whole or not at all; False if it is there already, with these bytes."""
        content = text.encode()
        with suppress(FileNotFoundError):
            if path.read_bytes() != content:
                raise PublishedDiffers(f"{path} holds something else than what is to be published.")
            return False
        _make_directory(path.parent)
        aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(aside, path)  # which replaces nothing
            except FileExistsError:
                return self._add(path, text)
        finally:
            aside.unlink(missing_ok=True)
        _sync(path.parent)
        return True


def _last(directory: Path, names: Sequence[str]) -> Path | None:
    """The last file, in the order of their names, of those that are called like this; None where there is none."""
    name, *below = names
    try:
        entries = list(os.scandir(directory))
    except FileNotFoundError:
        return None
    fitting = [
        Path(entry)
        for entry in entries
        if re.fullmatch(name, entry.name) and (entry.is_dir() if below else entry.is_file())
    ]
    found = (_last(path, below) if below else path for path in sorted(fitting, reverse=True))
    return next((path for path in found if path is not None), None)


def _make_directory(directory: Path) -> None:
    if not directory.is_dir():
        _make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        _sync(directory.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
