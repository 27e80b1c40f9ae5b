"""How fast the log is sealed, beside how fast PostgreSQL writes the same entries.

    .venv/bin/python benchmarks/sealing.py

Entries like those of opened rounds are written as the service's functions write them, 500 a transaction on one
connection, and are then sealed in passes as a job worker makes them, each committed to the disk.  A last pass finds
nothing.  Compare the two of one run.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import AT_MOST, seal
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import migrate, shipped_migrations
from casino_brag.db.pool import Database
from casino_brag.ids import uuid7

EACH = 500
APPEND = "INSERT INTO audit_entry SELECT e.* FROM unnest(%s::text[]) AS t, audit_entry_of(t) AS e"


def main() -> None:
    """Writes, seals, and prints what it took."""
    parser = argparse.ArgumentParser(description="Sealing entries, beside writing them.")
    parser.add_argument("--entries", type=int, default=200_000, help="how many (default 200,000)")
    entries: int = parser.parse_args().entries
    with tempfile.TemporaryDirectory(prefix="casino-brag-bench-") as directory:
        Path(directory).chmod(0o711)
        with EmbeddedServer.attach(Path(directory, "data")) as server:
            with psycopg.connect(server.url(Role.OWNER), autocommit=True) as conn:
                migrate(conn, shipped_migrations())
                writing = _write(conn, entries)
            database = Database(server.url(Role.APP))
            try:
                passes = list(_seal(database))
            finally:
                database.close()
    sealing = sum(passes[:-1])
    print(f"entries   {entries:>10,}")
    print(f"written   {entries / writing:>10,.0f} a second")
    print(f"sealed    {entries / sealing:>10,.0f} a second, {writing / sealing:.1f} times as fast")
    print(f"a pass    {max(passes) * 1000:>10,.0f} ms of at most {AT_MOST:,} entries, the longest")
    print(f"an empty  {passes[-1] * 1000:>10,.1f} ms")


def _write(conn: psycopg.Connection, entries: int) -> float:
    """Writes entries; the seconds that the database took."""
    seconds = 0.0
    for first in range(0, entries, EACH):
        texts = [_entry() for _ in range(min(EACH, entries - first))]
        began = time.perf_counter()
        conn.execute(APPEND, [texts])
        seconds += time.perf_counter() - began
    return seconds


def _seal(database: Database) -> Iterator[float]:
    """Seals until a pass finds nothing; the seconds of each."""
    key = SigningKey.generate("benchmark/log")
    while True:
        began = time.perf_counter()
        found = seal(database.connection, [key])
        yield time.perf_counter() - began
        if not found:
            return


def _entry() -> str:
    """What is written of an opened round."""
    return Entry(
        type=EntryType.ROUND_OPENED,
        occurred_at=datetime.now(UTC),
        actor=f"player:{uuid7()}",
        operator_id=uuid7(),
        player_id=uuid7(),
        session_id=uuid7(),
        round_id=uuid7(),
        payload={
            "mode": "real",
            "currency": "GBP",
            "game": "three-card-brag",
            "paytable_version": 1,
            "paytable_digest": secrets.token_hex(32),
            "rng_digest": secrets.token_hex(32),
            "commitment": {"number": 7, "value": secrets.token_hex(32), "previous": secrets.token_hex(32)},
            "client_seeds": True,
            "client_seed": None,
            "discards": 0,
            "ante_minor": 100,
            "pair_bonus_minor": 50,
            "payout_max_minor": 5_000,
            "player_cards": ["As", "Kd", "2c"],
        },
    ).text()


if __name__ == "__main__":
    main()
