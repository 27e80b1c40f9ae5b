"""PostgreSQL for tests: a new cluster is a copy of one that was made before, and nobody waits for the disk.

What a process has written outlives that process without ``fsync`` too, whoever is killed; only a power cut, which no
test makes, would show the difference.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import psycopg

from casino_brag.config import shipped
from casino_brag.db.account import Account
from casino_brag.db.binaries import find_binaries, reachable_by
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import migrate, read_migrations

_INITDB = """\
directory="${{1#--pgdata=}}"; shift
ready={directory}/$(id -u)-$(echo "$*" | cksum | cut -d' ' -f1)
exec 9>>$ready.lock; flock 9
if [ ! -d $ready ]; then
    rm -rf $ready.new
    {initdb} --pgdata=$ready.new --no-sync --wal-segsize=1 "$@" || exit
    printf 'fsync=off\\nmax_wal_size=1GB\\n' >> $ready.new/postgresql.conf
    mv $ready.new $ready
fi
cp -a $ready/. "$directory"
"""


@cache
def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="cb-postgres-"))
    home.chmod(0o755)
    maker = os.getpid()  # whose forked children may come to their end before it does
    atexit.register(lambda: shutil.rmtree(home) if os.getpid() == maker else None)
    return home


def _new_home() -> Path:
    """A directory in which each account that runs a server may keep a cluster."""
    directory = Path(tempfile.mkdtemp(dir=_home()))
    directory.chmod(0o1777)
    return directory


@cache
def quick_programs(bindir: Path | None = None) -> Path:
    """A directory with the programs of ``bindir``, or of the product, whose ``initdb`` copies a cluster."""
    bindir = reachable_by(Account.for_server(), find_binaries(bindir)).bindir
    directory = _new_home()
    script = _INITDB.format(directory=directory, initdb=bindir / "initdb")
    return with_scripts(bindir, directory, initdb=script)


@cache
def furnished_programs(bindir: Path | None = None) -> Path:
    """The same programs, but the cluster that ``initdb`` copies has the schema already: migrating finds it applied."""
    programs = quick_programs(bindir)
    directory = _new_home()
    data_dir = directory / "data"
    with (
        EmbeddedServer.attach(data_dir, bindir=programs) as server,
        psycopg.connect(server.url(Role.OWNER), autocommit=True) as conn,
    ):
        migrate(conn, read_migrations(shipped("migrations")))
    ready = directory / "ready"
    subprocess.run(["cp", "-a", (data_dir / "postgres").resolve(), ready], check=True)
    forget(data_dir)
    return with_scripts(programs, directory, initdb=f'cp -a {ready}/. "${{1#--pgdata=}}"')


def forget(data_dir: Path) -> None:
    """Removes a stopped server's cluster that had to be kept outside its data directory."""
    cluster = data_dir / "postgres"
    if cluster.is_symlink():
        shutil.rmtree(cluster.resolve().parent)


def with_scripts(bindir: Path, directory: Path, **scripts: str) -> Path:
    """Fills a directory with the programs of another, some of them replaced by shell scripts."""
    for program in bindir.iterdir():
        if program.name not in scripts:
            (directory / program.name).symlink_to(program)
    for name, script in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    return directory
