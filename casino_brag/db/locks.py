"""File locks that the kernel drops when their holder dies.

``flock`` belongs to the open file, not to the process: a forked child shares its parent's lock, and a program
started by exec does not get it, because Python opens every file close-on-exec.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from casino_brag.errors import SetUpError

POLL_SECONDS: Final = 0.02


def open_for_owner(path: Path, flags: int) -> int:
    """Open ``path`` for writing, creating it with mode 0600 for the owner of its directory.

    Root may work in the directory of an ordinary user; what it leaves there must not lock that user out.
    A symbolic link at ``path`` is refused with ``OSError``, so nobody can send root's writing elsewhere.
    """
    flags |= os.O_WRONLY | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    owner = path.parent.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


class FileLock:
    """One opening of a lock file; two openings compete even inside one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = open_for_owner(path, 0)

    def wait(self, mode: int, deadline: float) -> None:
        """Take the lock in ``mode``, which is ``fcntl.LOCK_SH`` or ``fcntl.LOCK_EX``.

        Raises SetUpError when others keep it beyond ``deadline`` (in seconds of ``time.monotonic``).
        """
        while not self.take_now(mode):
            if time.monotonic() >= deadline:
                raise SetUpError(
                    f"Another process is still starting or stopping the database (it holds {self._path}). "
                    "Wait for it, or end it, and try again."
                )
            time.sleep(POLL_SECONDS)

    def take_now(self, mode: int) -> bool:
        """Take the lock in ``mode``, or turn a held one into it, if that needs no waiting.

        A failed change of mode may lose the lock that was held.
        """
        try:
            fcntl.flock(self._descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self) -> None:
        """Give the lock up, for forked children that share it too."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Close this process's copy; the lock stays with the processes that share it."""
        os.close(self._descriptor)


@contextmanager
def exclusively(path: Path, deadline: float) -> Iterator[None]:
    """Hold the lock file ``path`` exclusively for the block; raises SetUpError after ``deadline``."""
    lock = FileLock(path)
    try:
        lock.wait(fcntl.LOCK_EX, deadline)
        yield
    finally:
        lock.unlock()
