"""The sealer on a real database: every entry that is committed gets one leaf, whatever happens meanwhile."""

from __future__ import annotations

import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.conninfo import make_conninfo

from casino_brag.audit import Entry, EntryType, sealer
from casino_brag.audit.notes import Checkpoint, SigningKey, opened
from casino_brag.audit.records import (
    checkpoint_of,
    first_checkpoint_covering,
    newest_checkpoint,
    stored_hashes,
    verifier_keys,
)
from casino_brag.audit.sealer import LogBroken, seal, signing_keys
from casino_brag.audit.tree import consistency_proof, includes, inclusion_proof, is_consistent, leaf_hash
from casino_brag.config import shipped
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import migrate, read_migrations
from casino_brag.db.pool import Database
from casino_brag.errors import SetUpError
from casino_brag.ids import uuid7
from tests.postgres import furnished_programs

KEY = SigningKey("tests/log", bytes(range(32)))
MIGRATIONS = read_migrations(shipped("migrations"))
APPEND = "INSERT INTO audit_entry SELECT e.* FROM unnest(%s::text[]) AS t, audit_entry_of(t) AS e"


@dataclass
class Log:
    """A database with an empty log."""

    server: EmbeddedServer
    name: str
    database: Database

    @contextmanager
    def connect(self, role: Role = Role.OWNER) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(make_conninfo(self.server.url(role), dbname=self.name), autocommit=True) as conn:
            yield conn

    def seal(self, *keys: SigningKey, at_most: int = 20_000) -> int:
        return seal(self.database.connection, keys or [KEY], at_most=at_most)

    def seal_all(self, *, at_most: int = 20_000) -> None:
        """Seals until there is nothing to seal."""
        while self.seal(at_most=at_most):
            pass
        self.seal(at_most=at_most)

    def is_whole(self) -> int:
        """Checks the whole log by the definitions; how many leaves it has."""
        with self.connect() as conn:
            entries = dict(conn.execute("SELECT entry_id, bytes FROM audit_entry").fetchall())
            leaves = conn.execute("SELECT * FROM audit_leaf ORDER BY leaf_index").fetchall()
            checkpoints = conn.execute(
                "SELECT tree_size, root_hash, note FROM audit_checkpoint ORDER BY tree_size"
            ).fetchall()
            keys, hashes = verifier_keys(conn), stored_hashes(conn)
            assert [index for index, _, _ in leaves] == list(range(len(leaves)))
            assert sorted(entry for _, entry, _ in leaves) == sorted(entries)
            for _, entry, leaf in leaves:
                assert leaf == sha256(b"\0" + entries[entry]).digest()
            assert [size for size, _, _ in checkpoints][-1:] == ([len(leaves)] if leaves else [])
            before = (0, sha256(b"").digest())
            for size, root, note in checkpoints:
                assert root == root_of([leaf for _, _, leaf in leaves[:size]])
                checkpoint, signers = opened(note, keys)
                assert checkpoint == Checkpoint(KEY.name, size, root)
                assert signers
                assert is_consistent(
                    before[0], size, before[1], root, consistency_proof(hashes, before[0], size)
                )
                before = (size, root)
        return len(leaves)


def root_of(leaves: list[bytes]) -> bytes:
    """The root, level by level: pairs are joined, and what has no pair goes up as it is."""
    level = leaves or [sha256(b"").digest()]
    while len(level) > 1:
        pairs = [
            sha256(b"\1" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = pairs + (level[-1:] if len(level) % 2 else [])
    return level[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server whose own database has the whole schema, to be copied, and nothing in it."""
    data_dir = tmp_path_factory.mktemp("logs") / "data"
    with EmbeddedServer.attach(data_dir, bindir=furnished_programs()) as running:
        yield running


@contextmanager
def empty_log(server: EmbeddedServer, *, migrations: int | None = None) -> Iterator[Log]:
    """A log of no entries, whose schema is of so many migrations, or of all."""
    name = "log_" + secrets.token_hex(4)
    with psycopg.connect(server.url(Role.SUPERUSER), autocommit=True) as conn:
        owner = psycopg.conninfo.conninfo_to_dict(server.url(Role.OWNER))["user"]
        model = "casino_brag" if migrations is None else "template1"
        conn.execute(f"CREATE DATABASE {name} TEMPLATE {model} OWNER {owner}")
    database = Database(make_conninfo(server.url(Role.APP), dbname=name))
    made = Log(server, name, database)
    try:
        if migrations is not None:
            with made.connect() as conn:
                migrate(conn, MIGRATIONS[:migrations])
        yield made
    finally:
        database.close()
        with psycopg.connect(server.url(Role.SUPERUSER), autocommit=True) as conn:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def log(server: EmbeddedServer) -> Iterator[Log]:
    with empty_log(server) as made:
        yield made


def entry(entry_id: UUID | None = None) -> Entry:
    return Entry(
        type=EntryType.SESSION_OPENED,
        occurred_at=datetime.now(UTC),
        actor="system:tests",
        entry_id=entry_id or uuid7(),
    )


def write(conn: psycopg.Connection[Any], count: int = 1) -> list[UUID]:
    entries = [entry() for _ in range(count)]
    conn.execute(APPEND, [[one.text() for one in entries]])
    return [one.entry_id for one in entries]


def leaves_of(log: Log) -> list[UUID]:
    with log.connect() as conn:
        return [found for (found,) in conn.execute("SELECT entry_id FROM audit_leaf ORDER BY leaf_index")]


def attended_at(log: Log) -> datetime:
    with log.connect() as conn:
        row = conn.execute("SELECT attended_at FROM audit_sealing").fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment


def test_an_empty_log_is_sealed_and_has_no_checkpoint_but_its_keys(log: Log) -> None:
    log.seal_all()
    assert log.is_whole() == 1
    with log.connect() as conn:
        assert conn.execute("SELECT type, payload FROM audit_entry").fetchall() == [
            (EntryType.LOG_KEY_ADDED, {"verifier_key": KEY.verifier.text()})
        ]
    log.seal_all()
    assert log.is_whole() == 1


def test_entries_are_sealed_once_and_in_any_number_of_batches(log: Log) -> None:
    with log.connect() as conn:
        write(conn, 20)
        while log.seal(at_most=5):
            pass
        assert log.is_whole() == 21
        for _ in range(7):
            write(conn, 3)
        before = attended_at(log)
        assert [log.seal(at_most=10) for _ in range(4)] == [10, 10, 1, 0]
        assert attended_at(log) > before
    assert log.is_whole() == 42


def test_what_is_full_is_not_said_to_be_all(log: Log) -> None:
    log.seal_all()
    with log.connect() as conn:
        write(conn, 10)
    before = attended_at(log)
    assert log.seal(at_most=5) == 5
    assert attended_at(log) == before
    log.seal_all(at_most=5)
    assert attended_at(log) > before


def test_a_transaction_that_is_under_way_keeps_nobody_waiting_and_is_not_forgotten(log: Log) -> None:
    log.seal_all()
    with log.connect() as conn, log.connect() as slow, log.connect() as slower:
        slow.execute("BEGIN")
        slower.execute("BEGIN")
        first = write(slow, 2)
        second = write(slower, 2)
        for _ in range(3):  # sealed past, a pass after another, in batches that are full and that are not
            write(conn, 4)
            before = attended_at(log)
            log.seal_all(at_most=3)
            assert attended_at(log) > before
            assert not {*first, *second} & {*leaves_of(log)}
        slow.execute("COMMIT")
        write(conn, 4)
        log.seal_all(at_most=3)
        assert {*first} < {*leaves_of(log)}
        assert not {*second} & {*leaves_of(log)}
        second += write(slower, 1)
        slower.execute("COMMIT")
        log.seal_all(at_most=3)
        assert {*second} < {*leaves_of(log)}
    assert log.is_whole() == 1 + 3 * 4 + 4 + 5


def test_a_transaction_that_is_taken_back_leaves_nothing(log: Log) -> None:
    with log.connect() as conn, log.connect() as other:
        other.execute("BEGIN")
        write(other, 3)
        write(conn, 3)
        log.seal_all()
        other.execute("ROLLBACK")
        write(conn, 1)
        with conn.transaction(), conn.transaction(force_rollback=True):
            write(conn, 2)  # a savepoint's
        log.seal_all()
    assert log.is_whole() == 5


def test_the_sealers_own_transaction_may_write(log: Log) -> None:
    log.seal_all()
    with log.connect() as conn, log.connect() as other:
        for _ in range(3):
            with conn.transaction():
                write(conn, 2)
                write(other, 1)  # a later transaction, which is over first
                conn.execute("SELECT audit_order(100)")
                write(conn, 2)
    log.seal_all()
    assert log.is_whole() == 16


class Writers(threading.Thread):
    """Writes transactions of a few entries, of which some are taken back and some stay open for a while."""

    def __init__(self, log: Log, seed: int, rounds: int) -> None:
        super().__init__()
        self._log, self._random, self._rounds = log, random.Random(seed), rounds
        self.committed: list[UUID] = []

    def run(self) -> None:
        with self._log.connect() as conn:
            for _ in range(self._rounds):
                conn.execute("BEGIN")
                written = write(conn, self._random.randrange(1, 5))
                if self._random.random() < 0.2:
                    time.sleep(self._random.random() / 5)
                    written += write(conn)
                if self._random.random() < 0.3:
                    conn.execute("ROLLBACK")
                else:
                    conn.execute("COMMIT")
                    self.committed += written


@contextmanager
def written_to(log: Log, *, writers: int = 8, rounds: int = 40) -> Iterator[list[Writers]]:
    """For the length of the block, which has to last until they are done, many write at once."""
    threads = [Writers(log, seed, rounds) for seed in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.join(60)


def test_every_entry_that_is_committed_gets_one_leaf_while_many_write(log: Log) -> None:
    with written_to(log) as writers:
        passes = 0
        while any(thread.is_alive() for thread in writers):
            log.seal(at_most=7)
            passes += 1
    log.seal_all(at_most=7)
    committed = [written for thread in writers for written in thread.committed]
    assert len(committed) > 300
    assert passes > 4
    assert log.is_whole() == 1 + len(committed)
    assert {*committed} < {*leaves_of(log)}


def test_two_sealers_at_once_make_one_tree(log: Log) -> None:
    sealed: list[int] = []
    others = [Database(make_conninfo(log.server.url(Role.APP), dbname=log.name)) for _ in range(2)]
    with written_to(log, rounds=25) as writers:

        def work(database: Database) -> None:
            while any(thread.is_alive() for thread in writers):
                sealed.append(seal(database.connection, [KEY], at_most=50))

        sealers = [threading.Thread(target=work, args=[database]) for database in others]
        for thread in sealers:
            thread.start()
        for thread in sealers:
            thread.join(60)
    for database in others:
        database.close()
    assert len(sealed) > 4
    log.seal_all()
    assert log.is_whole() == 1 + sum(len(thread.committed) for thread in writers)


def test_one_sealer_waits_for_no_other(log: Log) -> None:
    with log.connect() as conn, log.database.connection() as other, other.transaction():
        other.execute("SELECT audit_sealer_take()")
        write(conn, 1)
        assert log.seal() == 0
        assert leaves_of(log) == []
    log.seal_all()
    assert log.is_whole() == 2


KILLED = """
import sys
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import seal
from casino_brag.db.pool import Database
database = Database(sys.argv[1])
while True:
    seal(database.connection, [SigningKey(sys.argv[2], bytes(range(32)))], at_most=3)
    print("sealed", flush=True)
"""


def test_a_sealer_that_is_killed_is_gone_on_from(log: Log) -> None:
    generator = random.Random(1)
    url = make_conninfo(log.server.url(Role.APP), dbname=log.name)
    with written_to(log, writers=4, rounds=60) as writers:
        for _ in range(6):
            command = [sys.executable, "-c", KILLED, url, KEY.name]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"sealed\n"
                time.sleep(generator.random() / 4)
                process.kill()
    sealed = len(leaves_of(log))
    assert sealed > 0
    log.seal_all(at_most=11)
    assert log.is_whole() == 1 + sum(len(thread.committed) for thread in writers)


@pytest.mark.parametrize(
    "step",
    ["verifier_keys", "newest_checkpoint", "stored_hashes", "Growth", "sign", "opened", "_grow", "_call"],
)
def test_a_pass_that_fails_changes_nothing(log: Log, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with log.connect() as conn:
        write(conn, 300)
        log.seal_all(at_most=100)
        write(conn, 300)
        before = leaves_of(log)

        def fail(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr(sealer, step, fail)
        with pytest.raises(ZeroDivisionError):
            log.seal(at_most=200)
        assert leaves_of(log) == before
        monkeypatch.undo()
        grow = sealer._grow

        def grow_and_fail(*given: Any) -> None:
            grow(*given)
            raise ZeroDivisionError

        monkeypatch.setattr(sealer, "_grow", grow_and_fail)
        with pytest.raises(ZeroDivisionError):
            log.seal(at_most=200)
        assert leaves_of(log) == before
        monkeypatch.undo()
    log.seal_all(at_most=200)
    assert log.is_whole() == 601


def test_leaves_without_a_checkpoint_are_signed_by_the_next_pass(log: Log) -> None:
    with log.connect() as conn:
        write(conn, 30)
        conn.execute("SELECT audit_order(100)")
        assert newest_checkpoint(conn) is None
        write(conn, 1)
    for _ in range(4):
        log.seal(at_most=10)
    assert log.is_whole() == 32


def test_what_is_stored_proves_every_entry(log: Log) -> None:
    with log.connect() as conn:
        for _ in range(3):
            write(conn, 200)
            log.seal_all()
        hashes = stored_hashes(conn)
        newest = newest_checkpoint(conn)
        assert newest is not None
        assert newest == checkpoint_of(conn, 601)
        assert checkpoint_of(conn, 600) is None
        leaves = conn.execute(
            "SELECT l.leaf_index, e.bytes FROM audit_leaf AS l JOIN audit_entry AS e USING (entry_id)"
        ).fetchall()
        for index, content in leaves[::17]:
            proof = inclusion_proof(hashes, index, newest.tree_size)
            assert includes(leaf_hash(content), index, newest.tree_size, proof, newest.root_hash)
            covering = first_checkpoint_covering(conn, index)
            assert covering is not None
            assert covering.tree_size - index in range(1, 202)
        assert first_checkpoint_covering(conn, 601) is None
        assert conn.execute("SELECT level, node_index FROM audit_node ORDER BY node_index").fetchall() == [
            (8, 0),
            (8, 1),
        ]


# What came from elsewhere


def test_what_was_written_before_the_migration_is_kept_and_gets_its_leaves(server: EmbeddedServer) -> None:
    with empty_log(server, migrations=10) as log, log.connect() as conn:
        texts = [entry().text() for _ in range(50)]
        conn.execute(
            "INSERT INTO audit_entry SELECT e.* FROM unnest(%s::text[]) AS t, audit_entry_of(t) AS e", [texts]
        )
        operator, endpoint = (
            uuid7(),
            "INSERT INTO webhook_endpoint (operator_id, url, sealed_secret, changed_at,",
        )
        conn.execute(
            "INSERT INTO operator (operator_id, name, added_at) VALUES (%s, 'acme', now())", [operator]
        )
        conn.execute(
            f"{endpoint} rests_until) VALUES (%s, 'http://127.0.0.1/', '', now(), now())", [operator]
        )
        told = Entry(type=EntryType.GAME_ENABLED, occurred_at=datetime.now(UTC), actor="system:tests")
        conn.execute("INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)", [told.text()])
        columns = "entry_id, type, occurred_at, actor, payload, bytes, leaf_hash"
        before = conn.execute(f"SELECT {columns} FROM audit_entry ORDER BY entry_id").fetchall()
        assert conn.execute("SELECT message_id FROM webhook_message").fetchall() == [(told.entry_id,)]

        migrate(conn, MIGRATIONS)
        assert conn.execute(f"SELECT {columns} FROM audit_entry ORDER BY entry_id").fetchall() == before
        assert conn.execute("SELECT message_id FROM webhook_message").fetchall() == [(told.entry_id,)]
        with pytest.raises(pg.UniqueViolation):
            conn.execute(APPEND, [texts[:1]])
        again = Entry(type=EntryType.GAME_ENABLED, occurred_at=datetime.now(UTC), actor="system:tests")
        conn.execute(APPEND, [[again.text()]])
        assert conn.execute("SELECT count(*) FROM webhook_message").fetchone() == (2,)
        write(conn, 5)
        log.seal_all(at_most=20)
        assert log.is_whole() == 58
        assert leaves_of(log)[:51] == [row[0] for row in before]


def test_a_process_from_before_the_migration_goes_on_writing_what_is_sealed(server: EmbeddedServer) -> None:
    def report(conn: psycopg.Connection[Any]) -> None:
        text = Entry(type=EntryType.RNG_FORKED, occurred_at=datetime.now(UTC), actor="system:older").text()
        conn.execute("SELECT module_events_record(%s)", [[text]], prepare=True)

    with empty_log(server, migrations=10) as log, log.connect(Role.APP) as older, log.connect() as owner:
        for _ in range(7):  # until its plans are kept
            report(older)
        migrate(owner, MIGRATIONS)
        for _ in range(7):
            report(older)
        assert older.execute("SELECT count(*) FROM audit_entry", prepare=True).fetchone() == (14,)
        log.seal_all()
        assert log.is_whole() == 15  # with that of the key


def test_records_that_were_brought_into_another_cluster_are_gone_through_anew(log: Log) -> None:
    """There the numbers of transactions begin again: those of before are of the future, or of somebody else's."""
    with log.connect() as conn:
        write(conn, 30)
        log.seal_all()
        # What a restored dump holds: entries of high numbers, of which some had no leaf yet, and what was seen there.
        for number in (5, 700, 999_999, 1_000_001):
            one = entry()
            conn.execute(
                "INSERT INTO audit_entry (entry_id, type, occurred_at, actor, bytes, leaf_hash, written_xid)"
                " SELECT entry_id, type, occurred_at, actor, bytes, leaf_hash, %s::text::xid8"
                " FROM audit_entry_of(%s)",
                [number, one.text()],
            )
        conn.execute("UPDATE audit_sealing SET system = 1, sealed = '999999:1000000:999999'")
        with log.connect() as slow, log.connect() as slower:
            for late in (slow, slower):
                late.execute("BEGIN")
                late.execute(APPEND, [[entry(id_at(datetime.now(UTC) - timedelta(hours=1))).text()]])
            assert log.seal(at_most=7) == 7
            slow.execute("COMMIT")  # when its entry's place has been passed already
            write(conn, 3)
            log.seal_all(at_most=7)
            write(conn, 3)
            log.seal_all(at_most=7)
            slower.execute("COMMIT")
        log.seal_all(at_most=7)
        assert log.is_whole() == 1 + 30 + 4 + 8


# Parts of the log


def parts(conn: psycopg.Connection[Any]) -> list[str]:
    return [
        name
        for (name,) in conn.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'audit_entry'::regclass ORDER BY 1"
        )
    ]


def month(ahead: int) -> datetime:
    """The first day of a month."""
    now = datetime.now(UTC)
    count = now.year * 12 + now.month - 1 + ahead
    return datetime(count // 12, count % 12 + 1, 1, tzinfo=UTC)


def id_at(moment: datetime) -> UUID:
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | secrets.randbits(60))


def test_months_to_come_have_their_parts_and_two_workers_make_each_once(log: Log) -> None:
    with log.connect() as conn:
        made = [f"audit_entry_{month(ahead):%Y_%m}" for ahead in range(1, 6)]
        assert parts(conn) == sorted([*made[:3], "audit_entry_first", "audit_entry_other"])
        counts: list[int] = []

        def make() -> None:
            with log.database.connection() as application:
                row = application.execute("SELECT audit_parts_make(5)").fetchone()
                assert row is not None
                counts.append(row[0])

        workers = [threading.Thread(target=make) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(30)
        assert sorted(counts) == [0, 0, 0, 2]
        assert parts(conn) == sorted([*made, "audit_entry_first", "audit_entry_other"])
        # An entry is in the part of its month, to the millisecond.
        for ahead in range(1, 6):
            last = id_at(month(ahead + 1) - timedelta(milliseconds=1))
            for entry_id in (id_at(month(ahead)), last):
                conn.execute(APPEND, [[entry(entry_id).text()]])
                found = conn.execute(
                    "SELECT tableoid::regclass::text FROM audit_entry WHERE entry_id = %s", [entry_id]
                ).fetchone()
                assert found == (made[ahead - 1],)
    log.seal_all()
    assert log.is_whole() == 11


def test_an_entry_of_a_far_month_is_taken_and_its_month_made_no_more(log: Log) -> None:
    with log.connect() as conn:
        far = [id_at(month(5)), id_at(month(400)), UUID(int=2**128 - 1), UUID(int=1)]
        conn.execute(APPEND, [[entry(entry_id).text() for entry_id in far]])
        placed = conn.execute("SELECT tableoid::regclass::text FROM audit_entry ORDER BY entry_id").fetchall()
        assert placed == [("audit_entry_first",)] + [("audit_entry_other",)] * 3
        assert conn.execute("SELECT audit_parts_make(6)").fetchone() == (2,)
        assert f"audit_entry_{month(6):%Y_%m}" in parts(conn)
        assert f"audit_entry_{month(5):%Y_%m}" not in parts(conn)
    log.seal_all()
    assert log.is_whole() == 5


def test_nobody_changes_a_part_past_the_whole(log: Log) -> None:
    with log.connect() as conn:
        write(conn, 1)
        conn.execute(APPEND, [[entry(id_at(month(ahead))).text() for ahead in (1, 2, 3, 9)]])
    with log.connect(Role.SUPERUSER) as superuser:
        assert len(parts(superuser)) == 5
        for role in ("origin", "replica"):
            superuser.execute(f"SET session_replication_role = {role}")
            for part in parts(superuser):
                for change in ("UPDATE {} SET actor = 'x'", "DELETE FROM {}", "TRUNCATE {} CASCADE"):
                    with pytest.raises(pg.RestrictViolation, match="is refused"):
                        superuser.execute(change.format(part))
        disabled = superuser.execute(
            "SELECT tgrelid::regclass, tgname FROM pg_trigger WHERE tgrelid::regclass::text LIKE 'audit%'"
            " AND NOT tgisinternal AND tgenabled <> 'A'"
        ).fetchall()
        assert disabled == []
        told = superuser.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgname = 'audit_entry_is_told_to_operators'"
        ).fetchone()
        assert told == (6,)
    with log.connect(Role.APP) as application:
        for part in parts(application):
            application.execute(f"SELECT FROM {part}")
            with pytest.raises(pg.InsufficientPrivilege):
                application.execute(f"INSERT INTO {part} SELECT * FROM audit_entry")


# What was altered


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE audit_leaf SET leaf_hash = sha256('') WHERE leaf_index = 20", "not those that were signed"),
        ("UPDATE audit_node SET hash = sha256('')", "not those that were signed"),
        (
            "ALTER TABLE audit_checkpoint DROP CONSTRAINT audit_checkpoint_note_names_its_root;"
            " UPDATE audit_checkpoint SET root_hash = sha256('')",
            "not those that were signed",
        ),
        (
            "UPDATE audit_checkpoint SET note = replace(note, 'tests/log', 'tests/Log')",
            "does not hold|no known",
        ),
        ("DELETE FROM audit_checkpoint WHERE tree_size = 301", None),
        ("UPDATE audit_key SET verifier_key = '{}'", "no known key"),
    ],
)
def test_nothing_is_signed_on_top_of_what_was_altered(log: Log, change: str, said: str | None) -> None:
    with log.connect() as conn:
        write(conn, 19)
        log.seal_all()
        write(conn, 281)
        log.seal_all()
        write(conn, 1)
    stranger = SigningKey("tests/log", bytes(32))
    with log.connect(Role.SUPERUSER) as superuser:
        for table in ("audit_leaf", "audit_node", "audit_checkpoint", "audit_key"):
            superuser.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        if change.startswith("UPDATE audit_leaf"):
            change = change.replace("20", "290")  # in the last block, which is what the next pass reads
        superuser.execute(change.replace("{}", stranger.verifier.text()))
        if said is None:
            # Without its newest checkpoint the nodes are there already, and there is no other tree of them.
            with pytest.raises(pg.UniqueViolation):
                log.seal()
            return
        # The keys of the sealer itself are put back on record before anything is compared.
        with pytest.raises(LogBroken, match=said):
            log.seal() if "audit_key" not in change else log.seal(stranger)
        assert len(leaves_of(log)) == 301


# Keys


def test_two_keys_sign_while_one_follows_the_other(log: Log) -> None:
    new = SigningKey(KEY.name, bytes(32))
    with log.connect() as conn:
        for keys in ([KEY], [new, KEY], [new]):
            write(conn, 2)
            log.seal(*keys)
            newest = newest_checkpoint(conn)
            assert newest is not None
            _, signers = opened(newest.note, [key.verifier for key in (new, KEY)])
            assert signers == [key.verifier for key in keys]
        assert verifier_keys(conn) == [KEY.verifier, new.verifier]
        told = conn.execute("SELECT payload FROM audit_entry WHERE type = 'log.key_added' ORDER BY entry_id")
        assert [payload["verifier_key"] for (payload,) in told] == [KEY.verifier.text(), new.verifier.text()]
    log.seal_all()


def test_keys_of_another_log_sign_nothing(log: Log) -> None:
    log.seal_all()
    with log.connect() as conn:
        write(conn, 1)
        with pytest.raises(LogBroken, match="The log is tests/log, and the keys are those of others/log"):
            log.seal(SigningKey("others/log", bytes(32)))
        assert verifier_keys(conn) == [KEY.verifier]
    log.seal_all()
    assert log.is_whole() == 2


def test_keys_are_read_in_their_order_from_a_list() -> None:
    new = SigningKey(KEY.name, bytes(32))
    assert signing_keys(f"{new.text()}, {KEY.text()}") == (new, KEY)


@pytest.mark.parametrize(
    "text",
    ["", ",", "key", KEY.text() + ",", f"{KEY.text()},{KEY.text()}", KEY.verifier.text(), KEY.text() + "A",
     f"{KEY.text()},{SigningKey('another', bytes(32)).text()}"],
    ids=range(8),
)  # fmt: skip
def test_keys_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SetUpError, match="CASINO_BRAG_LOG_KEYS") as refused:
        signing_keys(text)
    assert KEY.text().rpartition("+")[2] not in str(refused.value)
