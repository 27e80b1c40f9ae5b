"""Migrations: what is applied, what is refused, and two who migrate at once."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import LOCK_KEY, Migration, migrate, read_migrations, status, verify
from casino_brag.errors import SetUpError

ACCOUNTS = "CREATE TABLE account (id int); CREATE TABLE transfer (id int);"
ROUNDS = "CREATE TABLE round (id int);"


def migration(number: int, name: str, sql: str) -> Migration:
    return Migration(number, name, sql, hashlib.sha256(sql.encode()).hexdigest())


FIRST = migration(1, "accounts", ACCOUNTS)
SECOND = migration(2, "rounds", ROUNDS)
THIRD = migration(3, "audit", "CREATE TABLE audit (id int);")


def tables(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


# Reading the files


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "0002_rounds.sql").write_text(ROUNDS)
    (tmp_path / "0001_accounts.sql").write_text(ACCOUNTS)
    assert read_migrations(tmp_path) == (FIRST, SECOND)


def test_a_checksum_is_of_the_bytes_and_so_sees_a_changed_line_ending(tmp_path: Path) -> None:
    (tmp_path / "0001_accounts.sql").write_bytes(b"SELECT 1;\r\n")
    (read,) = read_migrations(tmp_path)
    assert read.checksum == hashlib.sha256(b"SELECT 1;\r\n").hexdigest()


@pytest.mark.parametrize(
    "name",
    ["1_accounts.sql", "0001-accounts.sql", "0001_Accounts.sql", "0001_.sql", "0001_a.sql.orig", "notes.txt"],
)
def test_a_file_of_another_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(SetUpError, match=name):
        read_migrations(tmp_path)


def test_a_directory_named_like_a_migration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_accounts.sql").mkdir()
    with pytest.raises(SetUpError, match="0001_accounts"):
        read_migrations(tmp_path)


def test_a_missing_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_accounts.sql").write_text(ACCOUNTS)
    (tmp_path / "0003_audit.sql").write_text(ROUNDS)
    with pytest.raises(SetUpError, match=r"0003_audit\.sql: there is no file numbered 0002"):
        read_migrations(tmp_path)


def test_a_number_used_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_accounts.sql").write_text(ACCOUNTS)
    (tmp_path / "0001_rounds.sql").write_text(ROUNDS)
    with pytest.raises(SetUpError, match=r"0001_rounds\.sql: its number is used twice"):
        read_migrations(tmp_path)


def test_number_zero_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0000_accounts.sql").write_text(ACCOUNTS)
    with pytest.raises(SetUpError, match="0000_accounts"):
        read_migrations(tmp_path)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_accounts.sql").write_bytes("-- caf\u00e9".encode("latin-1"))
    with pytest.raises(SetUpError, match=r"0001_accounts\.sql is not UTF-8"):
        read_migrations(tmp_path)


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetUpError, match="no migrations"):
        read_migrations(tmp_path)


def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetUpError, match="not a directory"):
        read_migrations(tmp_path / "nowhere")


# Applying them


def test_pending_migrations_are_applied_once(owner: psycopg.Connection) -> None:
    assert migrate(owner, [FIRST]) == (FIRST,)
    assert migrate(owner, [FIRST, SECOND]) == (SECOND,)
    assert migrate(owner, [FIRST, SECOND]) == ()
    assert tables(owner) == {"migration", "account", "transfer", "round"}


def test_who_applied_what_and_when_is_recorded(owner: psycopg.Connection) -> None:
    migrate(owner, [FIRST])
    row = owner.execute(
        "SELECT number, name, checksum, applied_by, now() - applied_at < '1 minute' FROM migration"
    ).fetchone()
    assert row == (1, "accounts", FIRST.checksum, "casino_brag_owner", True)


def test_the_shape_of_the_callers_rows_does_not_matter(
    server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    with psycopg.connect(server.url(Role.OWNER), autocommit=True, row_factory=dict_row) as connection:
        assert migrate(connection, [FIRST]) == (FIRST,)
        verify(connection, [FIRST])
        assert tables(owner) >= {"account", "migration"}
        assert [applied is not None for _, applied in status(connection, [FIRST, SECOND])] == [True, False]


def test_status_of_an_untouched_database_is_all_pending(owner: psycopg.Connection) -> None:
    assert status(owner, [FIRST, SECOND]) == [(FIRST, None), (SECOND, None)]
    assert tables(owner) == set()


def test_a_percent_sign_in_a_migration_is_only_a_percent_sign(owner: psycopg.Connection) -> None:
    assert migrate(owner, [migration(1, "share", "SELECT '%s 100%' LIKE '%(x)s';")])


def test_a_failing_migration_is_rolled_back_and_named_and_those_before_it_stay(
    owner: psycopg.Connection,
) -> None:
    failing = migration(2, "broken", "CREATE TABLE half (id int); SELECT 1 FROM nowhere;")
    with pytest.raises(SetUpError, match=r'0002_broken\.sql failed.*relation "nowhere" does not exist'):
        migrate(owner, [FIRST, failing, THIRD])
    assert tables(owner) == {"migration", "account", "transfer"}
    assert migrate(owner, [FIRST, SECOND, THIRD]) == (SECOND, THIRD)


def test_a_check_that_is_put_off_to_the_commit_can_still_refuse_a_migration(
    owner: psycopg.Connection,
) -> None:
    failing = migration(
        1,
        "deferred",
        "CREATE TABLE a (id int PRIMARY KEY);"
        "CREATE TABLE b (id int CONSTRAINT b_names_an_a REFERENCES a DEFERRABLE INITIALLY DEFERRED);"
        "INSERT INTO b VALUES (1);",
    )
    with pytest.raises(SetUpError, match=r"0001_deferred\.sql failed.*b_names_an_a"):
        migrate(owner, [failing])
    assert tables(owner) == {"migration"}


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_a_migration_that_ends_its_transaction_is_found_out(owner: psycopg.Connection, ending: str) -> None:
    with pytest.raises(SetUpError, match=r"0001_sly\.sql ends the transaction"):
        migrate(owner, [migration(1, "sly", f"CREATE TABLE half (id int); {ending};")])
    assert status(owner, [FIRST]) == [(FIRST, None)]


# Refusing them


REFUSALS = {
    "a changed file": (
        [FIRST, SECOND],
        [FIRST, migration(2, "rounds", ROUNDS + "--"), THIRD],
        "0002_rounds.sql is not",
    ),
    "a renamed file": (
        [FIRST, SECOND],
        [FIRST, migration(2, "deals", ROUNDS), THIRD],
        "0002_deals.sql is not",
    ),
    "a missing file": ([FIRST, SECOND], [FIRST], "0002_rounds.sql was applied"),
    "a file below an applied one": (
        [FIRST, THIRD],
        [FIRST, SECOND, THIRD],
        "0002_rounds.sql comes before 0003_audit",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_files_that_do_not_continue_the_database_are_refused(owner: psycopg.Connection, case: str) -> None:
    applied, files, complaint = REFUSALS[case]
    migrate(owner, applied)
    before = tables(owner)
    with pytest.raises(SetUpError, match=complaint):
        migrate(owner, files)
    with pytest.raises(SetUpError, match=complaint):
        verify(owner, files)
    assert tables(owner) == before


def test_verify_names_what_is_pending(owner: psycopg.Connection) -> None:
    with pytest.raises(SetUpError, match=r"migrate up.*0001_accounts\.sql, 0002_rounds\.sql"):
        verify(owner, [FIRST, SECOND])
    migrate(owner, [FIRST, SECOND])
    verify(owner, [FIRST, SECOND])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE migration SET checksum = repeat('0', 64)",
        "DELETE FROM migration",
        "DELETE FROM migration WHERE number = 99",
        "TRUNCATE migration",
    ],
)
def test_the_record_of_migrations_is_append_only(owner: psycopg.Connection, statement: str) -> None:
    migrate(owner, [FIRST])
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        owner.execute(statement.encode())
    verify(owner, [FIRST])


# Sharing the database


def test_the_application_may_verify_but_not_record(server: EmbeddedServer, owner: psycopg.Connection) -> None:
    migrate(owner, [FIRST])
    with psycopg.connect(server.url(Role.APP), autocommit=True) as app:
        verify(app, [FIRST])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("INSERT INTO migration (number, name, checksum) VALUES (2, 'x', repeat('0', 64))")


def test_of_two_who_migrate_at_once_the_second_waits_and_finds_nothing_to_do(
    server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    slow = migration(1, "slow", "SELECT pg_sleep(0.5); CREATE TABLE account (id int);")
    start = threading.Barrier(2)
    applied: list[tuple[Migration, ...]] = []

    def run() -> None:
        with psycopg.connect(server.url(Role.OWNER), autocommit=True) as connection:
            start.wait(10)
            applied.append(migrate(connection, [slow, SECOND]))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(applied, key=len) == [(), (slow, SECOND)]
    verify(owner, [slow, SECOND])


def test_the_wait_for_another_who_migrates_is_bounded(
    server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    with psycopg.connect(server.url(Role.OWNER), autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (LOCK_KEY,))
        with pytest.raises(SetUpError, match="still migrating"):
            migrate(owner, [FIRST], wait_seconds=0.2)
    assert tables(owner) == set()


def test_the_lock_is_given_back_whether_migrations_fail_or_not(
    server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    migrate(owner, [FIRST])
    with pytest.raises(SetUpError):
        migrate(owner, [FIRST, migration(2, "broken", "SELECT 1 FROM nowhere")])
    with psycopg.connect(server.url(Role.OWNER), autocommit=True) as other:
        assert other.execute("SELECT pg_try_advisory_lock(%s)", (LOCK_KEY,)).fetchone() == (True,)


def test_a_migration_that_waits_in_a_ring_with_a_running_statement_is_begun_again(
    server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    migrate(owner, [FIRST])
    # The statement has waited for long when the ring closes, so that it is the migration that is given up.
    ring = migration(
        2, "ring", "LOCK TABLE account; SELECT pg_sleep(1.5); LOCK TABLE transfer; CREATE TABLE round ();"
    )
    locked = threading.Event()

    def run() -> None:
        with psycopg.connect(server.url(Role.OWNER)) as running:
            running.execute("LOCK TABLE transfer")
            locked.set()
            while not running.execute(
                "SELECT 1 FROM pg_locks WHERE relation = 'account'::regclass"
            ).fetchone():
                pass
            running.execute("LOCK TABLE account")

    thread = threading.Thread(target=run)
    thread.start()
    locked.wait(10)
    assert migrate(owner, [FIRST, ring]) == (ring,)
    thread.join(10)
    assert "round" in tables(owner)
