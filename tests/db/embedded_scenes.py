"""What tests of the embedded server share: who runs it, with which programs, and where.

It is run by this process as it is and, under root, by an ordinary user too.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from casino_brag.db import binaries
from casino_brag.db.account import Account
from casino_brag.db.binaries import Binaries, find_binaries
from casino_brag.db.embedded import EmbeddedServer

PATIENCE_SECONDS = 60

Meet = Callable[[], None]
"""Called in a child: tells the parent that this point is reached and waits for its word to go on."""


@dataclass(frozen=True)
class Person:
    """An account that tests act under; ``account`` is None for the one that runs the tests."""

    name: str
    account: Account | None = None

    @property
    def is_root(self) -> bool:
        return self.account is None and os.geteuid() == 0

    def does(self, body: Callable[[], None]) -> None:
        """Run ``body`` as this person."""
        if self.account is None:
            body()
        else:
            self.begins(lambda meet: body()).end()

    def begins(self, body: Callable[[Meet], None]) -> Child:
        """Run ``body`` as this person in another process, at the same time."""
        return Child(self, body)


def people() -> list[Person]:
    """Everybody that this process can act as."""
    if os.geteuid() != 0:
        return [Person("ordinary user")]
    nobody = pwd.getpwnam("nobody")
    return [Person("root"), Person("ordinary user", Account(nobody.pw_uid, nobody.pw_gid))]


class Child:
    """A forked process in a process group of its own.

    It ends without Python's clean-up, so what it does not release explicitly is left to the kernel.
    """

    def __init__(self, person: Person, body: Callable[[Meet], None]) -> None:
        self._reached, reached = os.pipe()
        go_on, self._go_on = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self._reached)
                os.close(self._go_on)
                os.setpgid(0, 0)
                if person.account is not None and os.geteuid() != person.account.uid:
                    os.setgroups([])
                    os.setresgid(*[person.account.gid] * 3)
                    os.setresuid(*[person.account.uid] * 3)

                def meet() -> None:
                    os.write(reached, b".")
                    if os.read(go_on, 1) == b"":
                        raise EOFError("the test has ended")

                body(meet)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(reached)
        os.close(go_on)

    def reach(self) -> None:
        """Wait until the child meets its parent."""
        ready, _, _ = select.select([self._reached], [], [], PATIENCE_SECONDS)
        assert ready, "the child did not get here in time"
        assert os.read(self._reached, 1) == b".", "the child failed; see its traceback"

    def go_on(self) -> None:
        """Let a child that has met its parent go on."""
        os.write(self._go_on, b".")

    def end(self) -> None:
        """Wait for the child to end well."""
        ready, _, _ = select.select([self._reached], [], [], PATIENCE_SECONDS)
        assert ready, "the child did not end in time"
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._close()
        assert status == 0, "the child failed; see its traceback"

    def kill(self) -> None:
        """End the child as a crash would."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._close()

    def _close(self) -> None:
        os.close(self._reached)
        os.close(self._go_on)


def versions_found() -> dict[int, Binaries]:
    """The programs to test with, newest first; raises SetUpError if there are none at all."""
    found: dict[int, Binaries] = {}
    for bindir in binaries.usual_places():
        inspected = Binaries.inspect(bindir)
        if inspected is not None and inspected.major >= binaries.OLDEST_MAJOR:
            found.setdefault(inspected.major, inspected)
    newest = find_binaries()
    return {newest.major: newest} | found


VERSIONS = versions_found()
Snapshot = dict[Path, tuple[int, int, int]]


def permissions(*paths: Path) -> Snapshot:
    """Mode and owner of the paths and of every directory above them."""
    above = {each for path in paths for each in (path, *path.parents)}
    return {path: (s.st_mode, s.st_uid, s.st_gid) for path in sorted(above) for s in [path.stat()]}


def processes_in(cluster: Path) -> set[int]:
    """The live processes of the server that runs ``cluster``: all of them work in that directory."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == cluster:
                found.add(int(process.name))
        except OSError:
            continue  # it has ended, or is not ours to look at
    return found


@dataclass(frozen=True)
class Scene:
    """A person, Postgres programs, and a place of their own, outside of which nothing is written."""

    person: Person
    bindir: Path
    major: int
    home: Path

    @property
    def data_dir(self) -> Path:
        return self.home / "data"

    @property
    def cluster(self) -> Path:
        return (self.data_dir / "postgres").resolve()

    def attach(self, *, wait_seconds: float = 60) -> EmbeddedServer:
        return EmbeddedServer.attach(self.data_dir, bindir=self.bindir, wait_seconds=wait_seconds)

    def attached_child(self) -> Child:
        """A process that has attached, and releases when it is told to go on."""

        def body(meet: object) -> None:
            assert callable(meet)
            with self.attach():
                meet()

        child = self.person.begins(body)
        child.reach()
        return child

    def make_directory(self, *names: str, mode: int = 0o755) -> Path:
        """A directory of this person's below the home."""
        path = self.home
        for name in names:
            path /= name
            if not path.exists():
                path.mkdir()
                path.chmod(mode)
                if self.person.account is not None:
                    os.chown(path, self.person.account.uid, self.person.account.gid)
        return path
