"""Where an embedded server's files are, and what a new database cluster is made of.

Below the data directory::

    postgres        the cluster, or a symbolic link to it
    run             the socket's directory, or a symbolic link to it
    postgres.log    what the server says, with the file before it in postgres.log.1
    lifecycle.lock  held while somebody starts or stops the server
    users.lock      shared by everybody who uses the server

The links lead elsewhere when the account that runs Postgres cannot enter the data directory, or when the
socket's path would be too long.  No permission of a directory that was there before is ever changed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from casino_brag.db.account import Account
from casino_brag.db.binaries import Binaries, shared_directory
from casino_brag.errors import SetUpError

PORT: Final = 5432
INITDB_SECONDS: Final = 120

_SOCKET_PATH_BYTES_MAX: Final = 107  # sun_path has 108 bytes, the last of them a zero
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~+-]+")  # a comma separates hosts; a blank trips people's scripts
_ACCESS_RULES: Final = b"""\
# Whoever can enter the socket's directory may come in.  Nobody comes by network.
local all all trust
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A data directory and the account that runs its server."""

    data_dir: Path
    account: Account

    @classmethod
    def at(cls, data_dir: Path) -> Place:
        """The place at ``data_dir``, which is created (for its owner alone) if it does not exist.

        Raises SetUpError when the cluster in it is somebody else's or has gone.
        """
        data_dir = data_dir.absolute()
        place = cls(data_dir, Account.for_server(data_dir / "postgres", data_dir))
        if place.has_cluster and (owner := place.cluster.stat().st_uid) != place.account.uid:
            raise SetUpError(
                f"The database in {data_dir} belongs to user number {owner}, and user number "
                f"{place.account.uid} would have to run it. Run this command as its user (not root), "
                "or choose another data directory."
            )
        place._make_data_dir()
        return place

    @property
    def cluster(self) -> Path:
        """The cluster's own path, free of links."""
        return (self.data_dir / "postgres").resolve()

    @property
    def log(self) -> Path:
        """The file that the server writes its messages to."""
        return self.data_dir / "postgres.log"

    @property
    def has_cluster(self) -> bool:
        """Whether there is a cluster; raises SetUpError for a link to one that has gone."""
        entry = self.data_dir / "postgres"
        if entry.is_symlink() and not entry.exists():
            raise SetUpError(
                f"{entry} leads to a database that is gone. "
                "Restore it, or remove the link to begin with an empty one."
            )
        return entry.exists()

    @property
    def major(self) -> int | None:
        """The version of Postgres that made the cluster; None if there is no cluster yet."""
        if not self.has_cluster:
            return None
        try:
            return int((self.cluster / "PG_VERSION").read_text())
        except (FileNotFoundError, ValueError):
            raise SetUpError(f"{self.cluster} is not a Postgres cluster. Move it out of the way.") from None

    def make_cluster(self, binaries: Binaries) -> None:
        """Create the cluster, complete or not at all; the caller holds the lifecycle lock.

        It is prepared under another name each time: an ``initdb`` whose caller was killed may still be
        writing, and on failure empties the directory it was given.
        """
        entry = self.data_dir / "postgres"
        home = self._home()
        for leftover in home.glob("postgres.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)  # what is still being written goes the next time
        unfinished = home / f"postgres.new-{secrets.token_hex(6)}"
        try:
            self.account.make_directory(unfinished)
            self._initdb(binaries, unfinished)
            _write_access_rules(unfinished / "pg_hba.conf")
            unfinished.rename(home / "postgres")
            _sync_directory(home)
            if home != self.data_dir:
                entry.symlink_to(home / "postgres")
                _sync_directory(self.data_dir)
        except BaseException:
            shutil.rmtree(unfinished if home == self.data_dir else home, ignore_errors=True)
            raise

    def make_socket_directory(self) -> Path:
        """The private directory for the socket, made anew if it has gone.

        The caller holds the lifecycle lock, and the cluster exists.

        Raises SetUpError when somebody else could enter it or put a socket there.
        """
        entry = self.data_dir / "run"
        if not entry.exists() or not _holds_a_socket(entry.resolve()):
            if entry.is_symlink():
                entry.unlink()
            elif entry.exists():  # the data directory has been moved to a longer path
                shutil.rmtree(entry)
            directory = self.cluster.parent / "run"
            if not _holds_a_socket(directory):
                directory = Path(tempfile.mkdtemp(prefix="casino-brag-"))
                self.account.receive(directory)
            elif not directory.exists():
                self.account.make_directory(directory)
            if directory != entry.resolve():
                entry.symlink_to(directory)
        directory = entry.resolve()
        status = directory.stat()
        if status.st_uid != self.account.uid or status.st_mode & 0o077:
            raise SetUpError(
                f"{directory} should belong to user number {self.account.uid} and be closed to everybody "
                f"else. Find out who made it, then remove {entry} and try again."
            )
        return directory

    def _make_data_dir(self) -> None:
        """Create the data directory and what is missing above it, passable if Postgres has to pass."""
        missing = [path for path in (self.data_dir, *self.data_dir.parents) if not path.exists()]
        if not missing:
            return
        passable = self.account.is_other and self.account.can_enter(missing[-1].parent)
        for path in reversed(missing):
            with suppress(FileExistsError):  # another process may be making it too
                path.mkdir(mode=0o700)
                path.chmod(0o711 if passable else 0o700)

    def _home(self) -> Path:
        """The directory to put a new cluster in."""
        if not self.account.is_other or self.account.can_enter(self.data_dir):
            return self.data_dir
        home = shared_directory("clusters") / secrets.token_hex(8)
        home.mkdir(mode=0o700)
        home.chmod(0o711)
        return home

    def _initdb(self, binaries: Binaries, directory: Path) -> None:
        for locale in ("C.UTF-8", "C"):
            status, answer = self.account.ask(
                binaries.bindir / "initdb",
                f"--pgdata={directory}",
                "--username=postgres",
                "--encoding=UTF8",
                f"--locale={locale}",
                "--data-checksums",
                "--auth-local=trust",
                "--auth-host=reject",
                "--no-instructions",
                seconds=INITDB_SECONDS,
            )
            if status == 0:
                return
            if "invalid locale name" not in answer:
                break
        raise SetUpError(f"The database could not be created: {answer}")


def _holds_a_socket(directory: Path) -> bool:
    """Whether a socket in ``directory`` has a path that the kernel and every client take."""
    socket = directory / f".s.PGSQL.{PORT}"
    return (
        _PLAIN_PATH.fullmatch(str(socket)) is not None and len(os.fsencode(socket)) <= _SOCKET_PATH_BYTES_MAX
    )


def _write_access_rules(path: Path) -> None:
    """Replace the text of ``pg_hba.conf``, which lies in a directory that is not root's."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW), "wb") as rules:
        rules.write(_ACCESS_RULES)
        rules.flush()
        os.fsync(rules.fileno())


def _sync_directory(directory: Path) -> None:
    """Make a rename in ``directory`` last through a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_up_database(superuser: psycopg.Connection[tuple[object, ...]]) -> None:
    """Create what is missing of the two roles and the database; the caller holds the lifecycle lock.

    ``superuser`` is an autocommit connection to the database ``postgres``.  The database takes no connections
    until the last statement has run, so that a half-made one is told from a finished one.
    """
    state = superuser.execute("SELECT datallowconn FROM pg_database WHERE datname = 'casino_brag'").fetchone()
    if state == (True,):
        return
    roles = {name for (name,) in superuser.execute("SELECT rolname FROM pg_roles")}
    if "casino_brag_owner" not in roles:
        superuser.execute("CREATE ROLE casino_brag_owner LOGIN")
    if "casino_brag_app" not in roles:
        superuser.execute("CREATE ROLE casino_brag_app LOGIN")
    if state is None:
        superuser.execute(
            "CREATE DATABASE casino_brag OWNER casino_brag_owner"
            " TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false"
        )
    superuser.execute("REVOKE ALL ON DATABASE postgres, template1, casino_brag FROM PUBLIC")
    superuser.execute("GRANT CONNECT ON DATABASE casino_brag TO casino_brag_app")
    superuser.execute("ALTER DATABASE casino_brag ALLOW_CONNECTIONS true")
