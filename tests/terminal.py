"""Commands as a person runs them, and what they print."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
import requests

from casino_brag.cli import main

SECONDS = 60
READY_SECONDS = 30
OURS = ("CASINO_BRAG_", "DATABASE_URL", "PG")


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one sentence of a command that could not do what it was told; AssertionError if it was anything else."""
        assert self.code == 1, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        assert self.out == ""
        assert self.err.startswith("casino-brag: ")
        return self.err.removeprefix("casino-brag: ").strip()


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without anything that names a database or sets us up, and what is given."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return plain | dict(given or {})


def command(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Finished:
    """Runs a command in this process, which is faster, to its end."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, environment(env), clear=True),
        mock.patch.object(sys, "argv", ["casino-brag", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Finished(
        ended.value.code if isinstance(ended.value.code, int) else 0, out.getvalue(), err.getvalue()
    )


def casino_brag(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Finished:
    """Runs a command as a process of its own, to its end."""
    finished = subprocess.run(
        [sys.executable, "-m", "casino_brag", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment(env),
        stdin=subprocess.DEVNULL,
    )
    return Finished(finished.returncode, finished.stdout, finished.stderr)


@dataclass
class Serving:
    """A process that serves HTTP, and the file that it prints to."""

    process: subprocess.Popen[bytes]
    log: Path
    base: str

    def wait_for(self, path: str = "/readyz", status: int = 200) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.printed()
            try:
                if requests.get(self.base + path, timeout=5).status_code == status:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.1)
        raise AssertionError(self.printed())

    def printed(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=SECONDS)


@contextmanager
def serving(
    directory: Path, port: int, *command: str | Path, env: Mapping[str, str] | None = None
) -> Iterator[Serving]:
    """Runs a command that serves on a port until the block ends; it has ended then, whatever happened."""
    log = directory / f"{port}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *map(str, command)],
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            env=environment(env),
            start_new_session=True,
        )
    running = Serving(process, log, f"http://127.0.0.1:{port}")
    try:
        yield running
    finally:
        try:
            running.stop()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=SECONDS)
            raise
