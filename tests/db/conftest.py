"""Real servers of every Postgres version found here, run by everybody this process can act as."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from embedded_scenes import VERSIONS, Person, Scene, people, permissions, processes_in

from casino_brag.db import binaries
from casino_brag.db.embedded import EmbeddedServer, Role
from tests.postgres import quick_programs


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
    programs = quick_programs(
        VERSIONS[major].bindir
    )  # made before there is another place for temporary files
    home = Path(tempfile.mkdtemp(prefix="cb-"))
    home.chmod(0o755)
    monkeypatch.setattr(binaries, "SHARED_DIR", home / "shared")
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))
    (home / "tmp").mkdir()
    (home / "tmp").chmod(0o1777)
    if person.account is not None:
        os.chown(home, person.account.uid, person.account.gid)
    scene = Scene(person, programs, major, home)
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
        with EmbeddedServer.attach(
            home / "data", bindir=quick_programs(VERSIONS[request.param].bindir)
        ) as server:
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
