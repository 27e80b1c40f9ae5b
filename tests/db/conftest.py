"""Real servers of every Postgres version found here, run by everybody this process can act as."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from people import Child, Person, people

from casino_brag.db import binaries
from casino_brag.db.binaries import Binaries, find_binaries
from casino_brag.db.embedded import EmbeddedServer, Role


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


@pytest.fixture(params=people(), ids=lambda person: person.name)
def person(request: pytest.FixtureRequest) -> Person:
    chosen = request.param
    assert isinstance(chosen, Person)
    return chosen


@pytest.fixture(params=[max(VERSIONS)])
def major(request: pytest.FixtureRequest) -> int:
    """The newest version; parametrise it over VERSIONS for every version."""
    chosen = request.param
    assert isinstance(chosen, int)
    return chosen


@pytest.fixture
def scene(person: Person, major: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    home = Path(tempfile.mkdtemp(prefix="cb-"))
    home.chmod(0o755)
    monkeypatch.setattr(binaries, "SHARED_DIR", home / "shared")
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))
    (home / "tmp").mkdir()
    (home / "tmp").chmod(0o1777)
    if person.account is not None:
        os.chown(home, person.account.uid, person.account.gid)
    scene = Scene(person, VERSIONS[major].bindir, major, home)
    before = permissions(home, home / "tmp", scene.bindir, Path("/var/lib"))
    try:
        yield scene
        assert permissions(home, home / "tmp", scene.bindir, Path("/var/lib")) == before
        assert processes_in(scene.cluster) == set()
    finally:
        shutil.rmtree(home)


@pytest.fixture(scope="session", params=VERSIONS, ids=lambda major: f"postgres {major}")
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A running server of each version."""
    home = Path(tempfile.mkdtemp(prefix="cb-"))
    home.chmod(0o755)
    try:
        with EmbeddedServer.attach(home / "data", bindir=VERSIONS[request.param].bindir) as server:
            yield server
    finally:
        shutil.rmtree(home)


@pytest.fixture
def owner(server: EmbeddedServer) -> Iterator[psycopg.Connection]:
    """The database's owner on an autocommit connection, and a database that is empty again afterwards."""
    with psycopg.connect(server.url(Role.OWNER), autocommit=True) as connection:
        yield connection
    with psycopg.connect(server.url(Role.SUPERUSER), autocommit=True) as superuser:
        superuser.execute("DROP SCHEMA public CASCADE")
        superuser.execute("CREATE SCHEMA public AUTHORIZATION pg_database_owner")
        superuser.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
