"""The database's schema as numbered files, applied once each and never changed afterwards.

A file is called ``NNNN_what_it_does.sql``; the numbers run from 0001 without a gap.  There is no way back:
a mistake is corrected by the next file.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, scalar_row

from casino_brag.config import shipped
from casino_brag.errors import SetUpError

LOCK_KEY: Final = int.from_bytes(b"3cb migr")
"""The advisory lock held while migrating: any number that nothing else in the database uses."""
POLL_SECONDS: Final = 0.1

ATTEMPTS_MAX: Final = 20
"""How often a migration is begun, where statements of running processes hold its tables in another order."""

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9]+(?:_[a-z0-9]+)*)\.sql")

_CREATE_TABLE: Final = """
CREATE TABLE public.migration (
    number     integer     CONSTRAINT migration_number_is_unique PRIMARY KEY
                           CONSTRAINT migration_number_is_positive CHECK (number > 0),
    name       text        NOT NULL,
    checksum   text        NOT NULL
                           CONSTRAINT migration_checksum_is_sha256 CHECK (checksum ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz NOT NULL DEFAULT now(),
    applied_by text        NOT NULL DEFAULT session_user
);
COMMENT ON TABLE public.migration IS 'The migrations that made this schema; rows are only ever added.';

CREATE FUNCTION public.migration_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'migration is append-only: % refused', tg_op USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER migration_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.migration
    FOR EACH STATEMENT EXECUTE FUNCTION public.migration_is_append_only();
ALTER TABLE public.migration ENABLE ALWAYS TRIGGER migration_is_append_only;
REVOKE EXECUTE ON FUNCTION public.migration_is_append_only() FROM PUBLIC;
"""

_GRANT_READING: Final = """
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'casino_brag_app')
        AND NOT has_table_privilege('casino_brag_app', 'public.migration', 'SELECT')
    THEN
        GRANT SELECT ON public.migration TO casino_brag_app;
    END IF;
END
$$
"""

Connection = psycopg.Connection[Any]
"""An autocommit connection outside a transaction, whatever the shape of its rows."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, the name after the number, its text, and the SHA-256 of its bytes in hex."""

    number: int
    name: str
    sql: str
    checksum: str

    @property
    def file_name(self) -> str:
        """The file's name.

        >>> Migration(7, "rounds", "", "").file_name
        '0007_rounds.sql'
        """
        return _file_name(self.number, self.name)


@dataclass(frozen=True, slots=True)
class _Applied:
    """A row of the table ``migration``."""

    number: int
    name: str
    checksum: str
    applied_at: datetime

    @property
    def file_name(self) -> str:
        return _file_name(self.number, self.name)


def _file_name(number: int, name: str) -> str:
    return f"{number:04}_{name}.sql"


def read_migrations(directory: Path) -> tuple[Migration, ...]:
    """The migrations in ``directory``, by number.

    Raises SetUpError, naming the file, for a file of another name, a number that is missing or used twice,
    and text that is not UTF-8; and for a directory without any.
    """
    if not directory.is_dir():
        raise SetUpError(f"{directory} is not a directory of migrations. Install the package again.")
    migrations = tuple(_read_migration(path) for path in sorted(directory.iterdir()))
    if not migrations:
        raise SetUpError(f"There are no migrations in {directory}. Install the package again.")
    for expected, migration in enumerate(migrations, start=1):
        if migration.number < expected:
            raise SetUpError(
                f"{directory / migration.file_name}: its number is used twice or is not above 0000."
            )
        if migration.number > expected:
            raise SetUpError(f"{directory / migration.file_name}: there is no file numbered {expected:04}.")
    return migrations


@cache
def shipped_migrations() -> tuple[Migration, ...]:
    """The migrations that belong to this version of the package, read once."""
    return read_migrations(shipped("migrations"))


def _read_migration(path: Path) -> Migration:
    name = _FILE_NAME.fullmatch(path.name)
    if name is None or not path.is_file():
        raise SetUpError(
            f"{path} is not a migration: the name should be like 0001_accounts_and_transfers.sql."
        )
    content = path.read_bytes()
    try:
        sql = content.decode()
    except UnicodeDecodeError as error:
        raise SetUpError(f"{path} is not UTF-8: {error}.") from error
    return Migration(int(name[1]), name[2], sql, hashlib.sha256(content).hexdigest())


def migrate(
    connection: Connection, migrations: Sequence[Migration], *, wait_seconds: float = 60
) -> tuple[Migration, ...]:
    """Apply the migrations that are pending, each in its own transaction, and return them.

    Only one process does so at a time; the others wait up to ``wait_seconds`` and then find nothing to do.
    Raises SetUpError before anything is applied when the database and the files disagree, as in ``verify``;
    when a migration fails, which leaves no trace of that one; and when the wait was too long.
    """
    assert connection.autocommit
    assert connection.info.transaction_status == TransactionStatus.IDLE
    with _alone(connection, time.monotonic() + wait_seconds):
        if not _has_table(connection):
            with connection.transaction():
                connection.execute(_CREATE_TABLE)
        pending = _pending(_applied(connection), migrations)
        for migration in pending:
            _apply(connection, migration)
        connection.execute(_GRANT_READING)  # the first migration makes the role, where nobody did before
        return pending


def status(
    connection: Connection, migrations: Sequence[Migration]
) -> list[tuple[Migration, datetime | None]]:
    """Each migration with the time it was applied, None for those that are pending."""
    applied = _applied(connection)
    return [
        (migration, applied[migration.number].applied_at if migration.number in applied else None)
        for migration in migrations
    ]


def verify(connection: Connection, migrations: Sequence[Migration]) -> None:
    """Check that the database was made by exactly these migrations.

    Raises SetUpError when a file was changed or removed after it was applied, when one was added below an
    applied one, and when some are pending.
    """
    pending = _pending(_applied(connection), migrations)
    if pending:
        names = ", ".join(migration.file_name for migration in pending)
        raise SetUpError(f"The database is not up to date. Run 'casino-brag migrate up' to apply {names}.")


def _pending(applied: dict[int, _Applied], migrations: Sequence[Migration]) -> tuple[Migration, ...]:
    """The migrations to apply; raises SetUpError if they do not continue the applied ones."""
    files = {migration.number: migration for migration in migrations}
    for row in applied.values():
        file = files.get(row.number)
        if file is None:
            raise SetUpError(
                f"{row.file_name} was applied to this database, but there is no such file. "
                "This program is older than the database: install the version that made it, or a newer one."
            )
        if (file.name, file.checksum) != (row.name, row.checksum):
            raise SetUpError(
                f"{file.file_name} is not what was applied to this database on {row.applied_at:%Y-%m-%d} as "
                f"{row.file_name}. Restore that file; write what should change as a new migration."
            )
    pending = tuple(migration for migration in migrations if migration.number not in applied)
    for migration in pending:
        if applied and migration.number < max(applied):
            raise SetUpError(
                f"{migration.file_name} comes before {applied[max(applied)].file_name}, which was applied "
                "already. Give it the next free number."
            )
    return pending


def _apply(connection: Connection, migration: Migration) -> None:
    """Applies one, and again where it and a running statement waited for each other: it is one transaction."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            _apply_once(connection, migration)
        except psycopg.errors.DeadlockDetected as error:
            if attempt == ATTEMPTS_MAX:
                raise _failed(migration, error) from error
        except psycopg.Error as error:
            raise _failed(migration, error) from error
        else:
            return


def _failed(migration: Migration, error: psycopg.Error) -> SetUpError:
    said = error.diag.message_primary or str(error)
    return SetUpError(f"{migration.file_name} failed and was rolled back: {said}")


def _apply_once(connection: Connection, migration: Migration) -> None:
    with connection.transaction():
        connection.execute(migration.sql.encode())
        if connection.info.transaction_status != TransactionStatus.INTRANS:
            raise SetUpError(
                f"{migration.file_name} ends the transaction it runs in, and part of it may have been "
                "applied. Remove its COMMIT or ROLLBACK, and restore the database from a backup."
            )
        connection.execute(
            "INSERT INTO public.migration (number, name, checksum) VALUES (%s, %s, %s)",
            (migration.number, migration.name, migration.checksum),
        )


def _has_table(connection: Connection) -> bool:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute("SELECT to_regclass('public.migration') IS NOT NULL").fetchone())


def _applied(connection: Connection) -> dict[int, _Applied]:
    """The table's rows by number, in order; none when there is no table yet."""
    if not _has_table(connection):
        return {}
    with connection.cursor(row_factory=class_row(_Applied)) as cursor:
        cursor.execute("SELECT number, name, checksum, applied_at FROM public.migration ORDER BY number")
        return {row.number: row for row in cursor}


@contextmanager
def _alone(connection: Connection, deadline: float) -> Iterator[None]:
    """Hold the advisory lock; raises SetUpError when another process keeps it beyond ``deadline``."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        while not cursor.execute("SELECT pg_try_advisory_lock(%s)", (LOCK_KEY,)).fetchone():
            if time.monotonic() >= deadline:
                raise SetUpError(
                    "Another process is still migrating the database. Try again when it has ended."
                )
            time.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            if not connection.closed:  # a lost connection has lost the lock with it
                cursor.execute("SELECT pg_advisory_unlock(%s)", (LOCK_KEY,))
