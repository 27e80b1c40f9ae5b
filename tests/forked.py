"""The command `casino-brag` for tests that start it often: forked from a process that has imported the program.

To import it takes longer than all else that a start does.  A fork is the command as a person starts it, in a session of
its own and with an environment of its own; `tests/cli/test_serve.py` and `tests/packaging` start it in the usual way.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from casino_brag.cli import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["casino_brag.cli.serve", "casino_brag.cli.sandbox", __name__])


class Forked:
    """A command that runs: what of `subprocess.Popen` is needed, and as it is there."""

    def __init__(self, *arguments: str | Path, log: Path, env: Mapping[str, str] | None = None) -> None:
        told = (list(map(str, arguments)), log, dict(os.environ | (env or {})))
        self._process = _FORKS.Process(target=_run, args=told)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """The exit code, once it has ended; subprocess.TimeoutExpired when it does not."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("casino-brag", timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], log: Path, environment: dict[str, str]) -> None:
    """The forked process: becomes the command."""
    os.setsid()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["casino-brag", *arguments]
    main()
