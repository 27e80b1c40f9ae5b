"""A log as several days of play leave it, sealed and published, and copies of it for tests that spoil one."""

from __future__ import annotations

import os
import random
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

from casino_brag.audit import Entry, EntryType
from casino_brag.audit.findings import Verification
from casino_brag.audit.kept import kept_checkpoints, kept_keys
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.publishing import Publication
from casino_brag.audit.sealer import seal
from casino_brag.audit.verifying import verify_log
from casino_brag.db.embedded import EmbeddedServer, Role
from tests.postgres import furnished_programs

DAYS = 3
WRITERS = 8
ENTRIES_EACH = 30
"""Entries that a writer writes a day."""

TABLES = ("audit_entry", "audit_leaf", "audit_node", "audit_checkpoint", "audit_key")


@dataclass(frozen=True)
class Log:
    """A database with a log, the key that signs it, and where its checkpoints are published."""

    server: EmbeddedServer
    name: str
    key: SigningKey
    published: Path

    def url(self, role: Role) -> str:
        return make_conninfo(self.server.url(role), dbname=self.name)

    @contextmanager
    def connect(self, role: Role = Role.OWNER) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.url(role), autocommit=True) as conn:
            yield conn

    @contextmanager
    def spoiling(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of a superuser who has done away with everything that is in the way."""
        with self.connect(Role.SUPERUSER) as conn:
            parts = conn.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'audit_entry'::regclass"
            ).fetchall()
            for table in (*TABLES, "audit_sealing", *(part for (part,) in parts)):
                conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
            conn.execute("ALTER TABLE webhook_message DROP CONSTRAINT webhook_message_entry_fkey")
            conn.execute("ALTER TABLE audit_entry DROP CONSTRAINT audit_entry_leaf_hash_is_of_its_bytes")
            conn.execute("ALTER TABLE audit_leaf DROP CONSTRAINT audit_leaf_index_counts_from_0")
            conn.execute("SET session_replication_role = replica")
            yield conn

    def seal(self, key: SigningKey | None = None, *, at_most: int = 100) -> None:
        """Seals all there is."""
        while seal(self.connect, [key or self.key], at_most=at_most):
            pass
        with self.connect() as conn:
            assert (
                conn.execute("SELECT max(tree_size) FROM audit_checkpoint").fetchone()
                == conn.execute("SELECT count(*) FROM audit_leaf").fetchone()
            )

    def publish(self) -> None:
        with self.connect() as conn:
            Publication(self.published, 0).publish(conn, [self.key.verifier])

    def verified(self, *, kept: bool = True, workers: int | None = None) -> Verification:
        """What the product finds, beside the published checkpoints and by their keys."""
        places = [self.published] if kept else []
        return verify_log(
            self.url(Role.OWNER), kept=kept_checkpoints(places), keys=kept_keys(places), workers=workers
        )

    def leaf(self, leaf_index: int) -> str:
        """The entry of a leaf."""
        with self.connect() as conn:
            row = conn.execute(
                "SELECT entry_id::text FROM audit_leaf WHERE leaf_index = %s", [leaf_index]
            ).fetchone()
        assert row is not None
        return str(row[0])


@contextmanager
def sealed_log(directory: Path) -> Iterator[Log]:
    """A log of some hundred entries in a database of its own."""
    with EmbeddedServer.attach(directory / "data", bindir=furnished_programs()) as server:
        log = Log(server, "sealed", SigningKey.generate("log.example"), directory / "checkpoints")
        with psycopg.connect(server.url(Role.SUPERUSER), autocommit=True) as conn:
            conn.execute("CREATE DATABASE sealed TEMPLATE casino_brag OWNER casino_brag_owner")
        _days(log)
        yield log


@contextmanager
def copy_of(log: Log) -> Iterator[Log]:
    """The same in a database of its own; what is published is shared, and nothing is published of a copy."""
    name = "copy_" + secrets.token_hex(4)
    with psycopg.connect(log.server.url(Role.SUPERUSER), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name} TEMPLATE {log.name} OWNER casino_brag_owner")
        try:
            yield Log(log.server, name, log.key, log.published)
        finally:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def entry_at(moment: datetime, number: int = 0, **known: Any) -> Entry:
    """An entry of this time, which its identifier begins with."""
    value = int(moment.timestamp() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    facts: dict[str, Any] = {
        "type": EntryType.WALLET_DEPOSIT,
        "occurred_at": moment,
        "actor": "operator:house",
        "operator_id": UUID(int=1),
        "player_id": UUID(int=number + 2),
        "payload": {"n": number, "what": ["ä", None, {"true": True}], "amount_minor": 1 + number},
    }
    return Entry(entry_id=UUID(int=value), **facts | known)


def write(conn: psycopg.Connection[Any], entry: Entry) -> None:
    conn.execute("INSERT INTO audit_entry SELECT * FROM audit_entry_of(%s)", [entry.text()])


def _days(log: Log) -> None:
    """Writers in parallel, transactions that are long and such that come to nothing, and a sealer beside them."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0) - timedelta(days=DAYS)
    with log.connect() as conn:
        known = {"type": EntryType.LOG_KEY_ADDED, "payload": {"verifier_key": log.key.verifier.text()}}
        conn.execute(
            "SELECT audit_key_add(%s, %s)", [log.key.verifier.text(), entry_at(midnight, **known).text()]
        )
    for day in range(DAYS):
        done = threading.Event()
        with ThreadPoolExecutor(WRITERS + 2) as pool:
            sealing = pool.submit(_sealed_meanwhile, log, done)
            long = pool.submit(_long, log, done, midnight + timedelta(days=day, minutes=10))
            writers = [
                pool.submit(_written, log, midnight + timedelta(days=day), of) for of in range(WRITERS)
            ]
            for writer in writers:
                writer.result()
            done.set()
            long.result()
            sealing.result()
        log.seal()
        log.publish()


def _sealed_meanwhile(log: Log, done: threading.Event) -> None:
    while not done.wait(0.01):
        seal(log.connect, [log.key], at_most=50)
        log.publish()


def _long(log: Log, done: threading.Event, moment: datetime) -> None:
    with log.connect() as conn, conn.transaction():
        write(conn, entry_at(moment, reason="long under way"))
        done.wait(30)


def _written(log: Log, moment: datetime, of: int) -> None:
    chance = random.Random(of)
    with log.connect() as conn:
        for number in range(ENTRIES_EACH):
            at = moment + timedelta(seconds=number, microseconds=chance.randrange(1_000_000))
            with conn.transaction():
                for part in range(chance.randrange(1, 4)):
                    write(conn, entry_at(at, of * 1_000 + number * 10 + part))
                if chance.random() < 0.2:
                    raise psycopg.Rollback
