"""The operating-system account that runs Postgres, and commands run under it.

Postgres refuses to run as root.  When this process is root, every Postgres command therefore runs under an
unprivileged account; otherwise it runs as the caller.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from casino_brag.errors import SetUpError


@dataclass(frozen=True, slots=True)
class Account:
    """A user and a group, by number."""

    uid: int
    gid: int

    @classmethod
    def current(cls) -> Account:
        """The account of this process."""
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def for_server(cls, *owned: Path) -> Account:
        """The account to run Postgres under.

        Not root: the caller's own.  Root: the owner of the first of ``owned`` that exists and is not root's;
        else the user ``postgres``; else ``nobody``.  Raises SetUpError when there is none of them.
        """
        if os.geteuid() != 0:
            return cls.current()
        for status in (path.stat() for path in owned if path.exists()):
            if status.st_uid != 0:
                return cls(status.st_uid, status.st_gid)
        for name in ("postgres", "nobody"):
            with suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(entry.pw_uid, entry.pw_gid)
        raise SetUpError(
            "Postgres does not run as root, and there is no user 'postgres' or 'nobody' to run it. "
            "Create one, or run this command as an ordinary user."
        )

    @property
    def is_other(self) -> bool:
        """Whether commands have to change the user."""
        return self.uid != os.geteuid()

    def run(
        self,
        *command: str | Path,
        output: IO[bytes],
        seconds: float,
        variables: Mapping[str, str] | None = None,
    ) -> int:
        """Run a command under this account and give its exit status.

        It gets a session of its own, so that a terminal's Ctrl-C does not reach it or what it starts; a
        plain environment, so that the caller's ``PG*`` variables do not reach it either; and ``output`` for
        both its streams.  Raises ``subprocess.TimeoutExpired`` after ``seconds``.
        """
        finished = subprocess.run(  # noqa: S603 -- fixed programs, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(variables or {})},
            user=self.uid if self.is_other else None,
            group=self.gid if self.is_other else None,
            extra_groups=[] if self.is_other else None,
            start_new_session=True,
            timeout=seconds,
            check=False,
        )
        return finished.returncode

    def ask(self, *command: str | Path, seconds: float = 10) -> tuple[int, str]:
        """Run a command as ``run`` does and give its exit status and everything it printed."""
        with tempfile.TemporaryFile() as output:
            status = self.run(*command, output=output, seconds=seconds)
            output.seek(0)
            return status, output.read().decode(errors="replace").strip()

    def can_enter(self, path: Path) -> bool:
        """Whether this account reaches ``path`` and may search it (a directory) or run it (a program)."""
        return self.ask("test", "-x", path)[0] == 0

    def make_directory(self, path: Path) -> None:
        """Create ``path`` with mode 0700 for this account; raises FileExistsError if something is there."""
        path.mkdir(mode=0o700)
        self.receive(path)

    def receive(self, path: Path) -> None:
        """Make this account the owner of ``path``, which this process has just created."""
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
