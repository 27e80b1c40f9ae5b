"""How fast the audit log is verified, beside reading it once with COPY.

    .venv/bin/python benchmarks/verifying.py --entries 400000

Makes a log of entries as rounds leave them, ten in a millisecond, and seals it; in turns copies it out and verifies it.
Only the ratio of the two, and the processor time an entry takes, mean something on another machine.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha512
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import rfc8785

from benchmarks.processor import busy_seconds
from casino_brag.audit.notes import SigningKey
from casino_brag.audit.sealer import seal
from casino_brag.audit.verifying import verify_log
from casino_brag.config import shipped
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import migrate, read_migrations

BATCH = 20_000
TURNS = 3


def _hex(name: str, digits: int = 64) -> str:
    return sha512(name.encode()).hexdigest()[:digits]


_COMMITMENT = {"number": 7, "value": _hex("value"), "previous": _hex("previous")}
_OPENED = {
    "ante_minor": 100,
    "client_seeds": "allowed",
    "commitment": _COMMITMENT | {"round_id": "00000000-0000-7000-8000-000000000000"},
    "currency": "EUR",
    "game": "three-card-brag",
    "pair_bonus_minor": 50,
    "paytable_digest": _hex("paytable"),
    "player_cards": ["As", "Kd", "2c"],
    "rng_digest": _hex("rng"),
}
_SETTLED = _OPENED | {
    "dealer_cards": ["Ah", "Kh", "2h"],
    "deal_index": 12_345_678_901,
    "decision": "play",
    "discards": 0,
    "result": "win",
    "seed": _hex("seed", 96),
    "total_payout_minor": 400,
    "total_staked_minor": 250,
    "wagers": [
        {"payout_minor": 200, "reason": "win", "spot": spot, "stake_minor": 100} for spot in ("ante", "play")
    ],
}
_KINDS: dict[str, dict[str, Any]] = {
    "commitment.made": {"commitment": _COMMITMENT, "game": "three-card-brag", "rng_digest": _hex("rng")},
    "round.opened": _OPENED,
    "round.settled": _SETTLED,
}
"""The three entries of a round, which most of a log are."""

_WRITE = """
    INSERT INTO audit_entry SELECT e.* FROM generate_series(%(first)s::bigint, %(last)s) AS n
    CROSS JOIN LATERAL (SELECT now() - (%(entries)s - n) * interval '100 microseconds' AS at) AS made
    CROSS JOIN LATERAL audit_entry_of(format(
        '{"actor":"player:%%s","after":null,"authoriser":null,"before":null,"entry_id":"%%s","occurred_at":"%%s"'
            ',"payload":%%s,"reason":null,"subjects":{"operator_id":"%%s","player_id":"%%s","round_id":"%%s"'
            ',"session_id":"%%s"},"type":"%%s"}',
        n %% 997, substr(entry_id_at(made.at)::text, 1, 14) || '7' || substr(md5(n::text), 1, 3) || '-8000-'
            || lpad(to_hex(n), 12, '0'), to_char(made.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        (%(payloads)s::text[])[n %% 3 + 1], md5('house')::uuid, md5((n %% 997)::text)::uuid, md5((n / 3)::text)::uuid,
        md5((n %% 997 + 1)::text)::uuid, (%(kinds)s::text[])[n %% 3 + 1])) AS e
"""


def main() -> None:
    """Runs the benchmark and prints what came of it."""
    parser = argparse.ArgumentParser(description="Verification of the audit log, beside COPY.")
    parser.add_argument("--entries", type=int, default=400_000)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="casino-brag-bench-") as directory:
        Path(directory).chmod(0o711)
        data_dir = Path(directory, "data")
        with EmbeddedServer.attach(data_dir) as server:
            url = server.url(Role.OWNER)
            _make(url, server.url(Role.SUPERUSER), wanted.entries)
            postmaster = int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])
            copied, verified = [], []
            for _ in range(TURNS):
                with _timed(copied, postmaster):
                    _copy(url)
                with _timed(verified, postmaster):
                    found = verify_log(url, workers=wanted.workers)
                assert found.holds, found.findings
            _print(found.entries, wanted.workers, copied, verified)


def _make(url: str, superuser: str, entries: int) -> None:
    """A sealed log of so many entries."""

    @contextmanager
    def connect() -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(url, autocommit=True) as conn:
            yield conn

    with connect() as conn:
        migrate(conn, read_migrations(shipped("migrations")))
    known = {
        "entries": entries,
        "payloads": [rfc8785.dumps(payload).decode() for payload in _KINDS.values()],
        "kinds": list(_KINDS),
    }
    key = SigningKey.generate("bench.example")
    with psycopg.connect(superuser, autocommit=True) as conn:
        conn.execute("SET session_replication_role = replica")  # nobody is told of rounds
        for part in ("audit_entry", "audit_entry_first"):
            conn.execute(f"ALTER TABLE {part} DISABLE TRIGGER audit_entry_is_told_to_operators")
        for first in range(0, entries, BATCH):
            last = min(first + BATCH, entries) - 1
            conn.execute(_WRITE, known | {"first": first, "last": last})
            while seal(connect, [key], at_most=500):
                pass
        conn.execute("VACUUM ANALYZE audit_entry, audit_leaf")


def _copy(url: str) -> None:
    statement = "COPY (SELECT * FROM audit_entry) TO STDOUT"
    with psycopg.connect(url) as conn, conn.cursor() as cursor, cursor.copy(statement) as copy:
        for _ in copy:
            pass


@contextmanager
def _timed(into: list[tuple[float, float]], postmaster: int) -> Iterator[None]:
    """Puts down the seconds that passed, and those of the processor."""
    began, busy = time.perf_counter(), busy_seconds(postmaster) + busy_seconds(os.getpid())
    yield
    # The server's processes are known to their parent a moment after they ended.
    passed = time.perf_counter() - began
    time.sleep(0.2)
    into.append((passed, busy_seconds(postmaster) + busy_seconds(os.getpid()) - busy))


def _print(
    entries: int, workers: int, copied: list[tuple[float, float]], verified: list[tuple[float, float]]
) -> None:
    print(f"{entries:,} entries, {workers} processes, median of {TURNS} turns\n")
    print(f"{'':<10}{'entries/s':>12}{'processor µs an entry':>24}")
    for name, turns in (("COPY", copied), ("verify", verified)):
        passed, busy = (median(column) for column in zip(*turns, strict=True))
        print(f"{name:<10}{entries / passed:>12,.0f}{busy / entries * 1e6:>24.1f}")
    ratio = median(turn[0] for turn in verified) / median(turn[0] for turn in copied)
    print(f"\nverify takes {ratio:.2f} times as long as COPY")


if __name__ == "__main__":
    main()
