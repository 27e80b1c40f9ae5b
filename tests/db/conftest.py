"""Real servers of every Postgres version found here, run by everybody this process can act as."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from embedded_scenes import VERSIONS, Person, Scene, people, permissions, processes_in, with_scripts

from casino_brag.db import binaries
from casino_brag.db.embedded import EmbeddedServer, Role


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


@pytest.fixture(scope="session")
def quick_programs() -> Iterator[dict[int, Path]]:
    """Programs of each version that make a small cluster and leave writing it out to the kernel."""
    home = Path(tempfile.mkdtemp(prefix="cb-"))
    home.chmod(0o755)
    for major, programs in VERSIONS.items():
        (home / str(major)).mkdir()
        initdb = programs.bindir / "initdb"
        script = (
            f'{initdb} --no-sync --wal-segsize=1 "$@" && echo fsync=off >> "${{1#--pgdata=}}/postgresql.conf"'
        )
        with_scripts(programs.bindir, home / str(major), initdb=script)
    yield {major: home / str(major) for major in VERSIONS}
    shutil.rmtree(home)


@pytest.fixture
def scene(
    person: Person, major: int, quick_programs: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    home = Path(tempfile.mkdtemp(prefix="cb-"))
    home.chmod(0o755)
    monkeypatch.setattr(binaries, "SHARED_DIR", home / "shared")
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))
    (home / "tmp").mkdir()
    (home / "tmp").chmod(0o1777)
    if person.account is not None:
        os.chown(home, person.account.uid, person.account.gid)
    scene = Scene(person, quick_programs[major], major, home)
    before = permissions(home, home / "tmp", VERSIONS[major].bindir, Path("/var/lib"))
    try:
        yield scene
        assert permissions(home, home / "tmp", VERSIONS[major].bindir, Path("/var/lib")) == before
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
