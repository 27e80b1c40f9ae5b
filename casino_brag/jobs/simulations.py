"""The job that has queued simulations played: by a process of its own, so that nothing here waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import structlog

from casino_brag.catalogue.simulations import waits
from casino_brag.db.pool import Connect

PROGRAM: Final = "casino_brag.cli.simulating"

log = structlog.get_logger("casino_brag.jobs")


class Simulations:
    """The child that plays, as long as there is something to play.

    It ends by itself when nothing waits any more, and is ended by the kernel with the thread that started it.  Which of
    several workers' children plays is settled in the database.
    """

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process that plays at this moment."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def attend(self, connect: Connect) -> int:
        """Starts the child when something waits; how many it started."""
        if self.pid is not None:
            return 0
        if self._child is not None and self._child.returncode:
            log.warning("simulation_interrupted", code=self._child.returncode)
        self._child = None
        with connect() as conn:
            if not waits(conn):
                return 0
        self._child = subprocess.Popen(  # noqa: S603 - this very program, no shell
            [sys.executable, "-m", PROGRAM, str(os.getpid())],
            env={**os.environ, "DATABASE_URL": self._database_url},
            stdin=subprocess.DEVNULL,
        )
        return 1
