"""The embedded server: Postgres for a first run, for development and for tests.

One server per data directory, shared by all processes that attach to it; the last one to leave stops it.  It
listens on a Unix socket only.
"""

from __future__ import annotations

import fcntl
import math
import os
import shlex
import subprocess
import time
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self
from urllib.parse import quote

import psycopg

from casino_brag.db.binaries import Binaries, find_binaries, reachable_by
from casino_brag.db.cluster import PORT, Place, set_up_database
from casino_brag.db.locks import FileLock, exclusively, open_for_owner
from casino_brag.errors import SetUpError

STOP_SECONDS: Final = 30
POLL_SECONDS: Final = 0.05
LOG_BYTES_MAX: Final = 1_000_000

_SETTINGS: Final = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements, parameters and rows hold cards and secrets.  Whoever sent a failing statement is told about
    # it; the log is for the server's own affairs.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
}

_PASSING_START_FAILURES: Final = (
    "pre-existing shared memory block",  # the back ends of a killed server have not noticed yet
    'lock file "postmaster.pid" already exists',  # somebody was killed just after starting one
)


class Role(StrEnum):
    """Who connects to the database."""

    APP = "app"
    """The service: connects, and may do what migrations grant it."""
    OWNER = "owner"
    """Owns the database and everything in it; runs migrations."""
    SUPERUSER = "superuser"
    """Administers the whole server."""


_USERS: Final = {Role.APP: "casino_brag_app", Role.OWNER: "casino_brag_owner", Role.SUPERUSER: "postgres"}


class _MainProcess(StrEnum):
    """The state of the server's main process."""

    ABSENT = "absent"
    """There is none: start one."""
    DEAD = "dead"
    """It was killed and its parent has not noticed; until then Postgres refuses to start another."""
    ALIVE = "alive"
    """It works, starts, recovers or stops."""


class EmbeddedServer:
    """One process's use of the server in a data directory; a context manager that releases it at the end."""

    def __init__(self, place: Place, binaries: Binaries) -> None:
        """Use :meth:`attach`."""
        self._place = place
        self._binaries = binaries
        self._attached_by = os.getpid()
        self._users: FileLock | None = None
        self._sockets = place.data_dir / "run"

    @classmethod
    def attach(
        cls, data_dir: Path, *, bindir: Path | None = None, wait_seconds: float = 60
    ) -> EmbeddedServer:
        """Join the server in ``data_dir``, creating and starting it first if need be.

        ``bindir`` names the Postgres programs to use instead of those found.  ``wait_seconds`` bounds the
        wait for others who start or stop it and for crash recovery, but not the making of a new cluster,
        which takes a second or two.  Raises SetUpError, which says what to do.
        """
        deadline = time.monotonic() + wait_seconds
        try:
            place = Place.at(data_dir)
            with exclusively(place.data_dir / "lifecycle.lock", deadline):
                binaries = reachable_by(place.account, find_binaries(bindir, major=place.major))
                server = cls(place, binaries)
                server._join(deadline)
        except (OSError, psycopg.Error, subprocess.SubprocessError) as error:
            raise SetUpError(f"The database in {data_dir} could not be started: {error}") from error
        return server

    def url(self, role: Role = Role.APP) -> str:
        """The address to connect to as ``role``, for psycopg and for Postgres's own programs."""
        return f"postgresql://{_USERS[role]}@/casino_brag?host={quote(str(self._sockets))}&port={PORT}"

    def release(self) -> None:
        """Stop using the server, and stop it if nobody else uses it; again is allowed and does nothing.

        In a forked child this only lets go of the child's copy: the process that attached is the user.
        Raises SetUpError when the server does not stop.
        """
        users, self._users = self._users, None
        if users is None:
            return
        if os.getpid() != self._attached_by:
            users.forget()
            return
        try:
            with exclusively(self._place.data_dir / "lifecycle.lock", time.monotonic() + STOP_SECONDS):
                self._stop_if_last(users)
        except (OSError, subprocess.SubprocessError) as error:
            raise SetUpError(f"The database in {self._place.data_dir} could not be left: {error}") from error
        finally:
            users.unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _join(self, deadline: float) -> None:
        """Become a user of a ready server; the caller holds the lifecycle lock."""
        users = FileLock(self._place.data_dir / "users.lock")
        try:
            users.wait(fcntl.LOCK_SH, deadline)
            if not self._place.has_cluster:
                began = time.monotonic()
                self._place.make_cluster(self._binaries)
                deadline += time.monotonic() - began  # it has its own bound
            self._sockets = self._place.make_socket_directory()
            self._be_ready(deadline)
        except SetUpError:
            users.unlock()  # a server that is still recovering goes on, and is there for the next attempt
            raise
        except BaseException:
            self._stop_if_last(users)
            users.unlock()
            raise
        self._users = users

    def _be_ready(self, deadline: float) -> None:
        """Start the server if it does not run, wait until it answers, and complete what is in it."""
        while True:
            try:
                with self._connect() as superuser:
                    self._check_identity(superuser)
                    set_up_database(superuser)
                    return
            except psycopg.OperationalError as error:
                problem = str(error)
            if time.monotonic() >= deadline:
                raise SetUpError(
                    f"The database in {self._place.data_dir} is not ready in time: {problem} "
                    f"It may be recovering from a crash, see {self._place.log}; try again."
                )
            if self._main_process() is _MainProcess.ABSENT:
                self._start(deadline)
            time.sleep(POLL_SECONDS)

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self._sockets),
            port=PORT,
            user="postgres",
            dbname="postgres",
            connect_timeout=5,
            autocommit=True,
        )

    def _check_identity(self, superuser: psycopg.Connection[tuple[object, ...]]) -> None:
        """Refuse a server that belongs to a copy of this data directory."""
        serves = superuser.execute("SHOW data_directory").fetchone()
        if serves != (str(self._place.cluster),):
            raise SetUpError(
                f"The server at {self._sockets} serves another data directory. "
                f"Remove {self._place.data_dir / 'run'} and try again."
            )

    def _start(self, deadline: float) -> None:
        """Start the server and wait for it; returns when it is worth trying again."""
        settings = _SETTINGS | {"unix_socket_directories": str(self._sockets)}
        options = " ".join("-c " + shlex.quote(f"{name}={value}") for name, value in settings.items())
        with self._open_log() as log:
            before = log.tell()
            seconds = max(1, math.ceil(deadline - time.monotonic()))
            status = self._pg_ctl(log, "start", f"--options={options}", seconds=seconds)
        said = self._place.log.read_bytes()[before:].decode(errors="replace").strip()
        passing = self._main_process() is not _MainProcess.ABSENT or any(
            text in said for text in _PASSING_START_FAILURES
        )
        if status != 0 and not passing:
            raise SetUpError(f"Postgres {self._binaries} did not start in {self._place.data_dir}: {said}")

    def _stop_if_last(self, users: FileLock) -> None:
        """Stop the server unless others use it; the caller holds the lifecycle lock."""
        if not users.take_now(fcntl.LOCK_EX) or self._main_process() is not _MainProcess.ALIVE:
            return
        with self._open_log() as log:
            for mode in ("fast", "immediate"):  # the second is what a crash would be, and as safe
                status = self._pg_ctl(log, "stop", f"--mode={mode}", seconds=STOP_SECONDS)
                if status == 0 or self._main_process() is not _MainProcess.ALIVE:
                    return
        raise SetUpError(f"The database in {self._place.data_dir} does not stop; see {self._place.log}.")

    def _pg_ctl(self, log: BinaryIO, *arguments: str, seconds: int) -> int:
        return self._place.account.run(
            self._binaries.bindir / "pg_ctl",
            *arguments,
            *("--silent", "--wait", f"--timeout={seconds}"),
            output=log,
            seconds=seconds + 10,
            # Not --pgdata: pg_ctl puts that into a shell command between double quotes.
            variables={"PGDATA": str(self._place.cluster)},
        )

    def _main_process(self) -> _MainProcess:
        """What became of the process that the cluster's own note names."""
        try:
            number = int((self._place.cluster / "postmaster.pid").read_text().partition("\n")[0])
            process = Path(f"/proc/{number}/stat").read_text()  # such as "4711 (postgres) S ..."
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return _MainProcess.ABSENT
        if not process.startswith(f"{number} (postgres) "):  # the number has been given to another program
            return _MainProcess.ABSENT
        return _MainProcess.DEAD if process.startswith(f"{number} (postgres) Z") else _MainProcess.ALIVE

    def _open_log(self) -> BinaryIO:
        """The log, opened at its end; a long one is put aside first."""
        log = self._place.log
        if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
            log.replace(log.with_suffix(".log.1"))
        return os.fdopen(open_for_owner(log, os.O_APPEND), "ab")
