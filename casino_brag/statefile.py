"""The file from which a long run goes on after an interruption."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from casino_brag.errors import SetUpError

SAVE_SECONDS: Final = 5.0
"""The most work that is lost where a run is killed that saves when it is due."""

FILE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest file that is read.  A replay of a thousand million rounds has about 10 MiB, a simulation of a thousand
stakes 1 MiB.
"""


class Progress(Protocol):
    """How far a run has come."""

    def document(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""


P = TypeVar("P", bound=Progress)


@dataclass(slots=True)
class StateFile(Generic[P]):
    """The file that keeps the progress of one run, as JSON with a digest against damage.

    `read` makes the progress of its document again; its ValueError says why it cannot.
    """

    path: Path
    read: Callable[[Mapping[str, Any]], P]
    _saved_at: float = float("-inf")

    def load(self) -> P | None:
        """The progress in the file, None when there is no file; `SetUpError` when it cannot be used."""
        try:
            if not self.path.exists():
                return None
            if not self.path.is_file():
                raise ValueError("it is no ordinary file")
            if self.path.stat().st_size > FILE_BYTES_MAX:
                raise ValueError("it is too large")
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.pop("sha256", None) != content_digest(content):
                raise ValueError("its content and its digest do not belong together")
            return self.read(content)
        except OSError as failure:
            raise SetUpError(f"{self.path} cannot be read: {failure.strerror}.") from failure
        except (ValueError, RecursionError) as unusable:
            raise SetUpError(
                f"{self.path} cannot be gone on from: {unusable}. Name another --state to begin anew."
            ) from unusable

    def save_if_due(self, progress: P) -> None:
        """Saves when the last time is more than some seconds ago."""
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self.save(progress)

    def save(self, progress: P) -> None:
        """Replaces the file in one step; `SetUpError` when it cannot be written."""
        content = progress.document()
        content["sha256"] = content_digest(content)
        aside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with aside.open("w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.path)
        except OSError as failure:
            with suppress(OSError):
                aside.unlink()
            raise SetUpError(f"{self.path} cannot be written: {failure.strerror}.") from failure
        self._saved_at = time.monotonic()


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of a file's content without its digest.

    >>> content_digest({})[:16]
    '44136fa355b3678a'
    """
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
