"""How fast live play is added up, beside how fast the same log is only read.

    .venv/bin/python -m benchmarks.accumulating [--rounds 40000]

Rounds of real play are made by the service's own code on a database of their own and are given their leaves; then they
are added up as a job worker does it, each batch committed to the disk.  A last pass finds nothing.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks.replay import GAME, PLAYERS, _decide, _open
from casino_brag.catalogue.operators import add_operator, signing_operator
from casino_brag.catalogue.paytables import Shelf, publish_directory
from casino_brag.catalogue.sessions import Mode, NewSession, hash_of, open_session
from casino_brag.config import shipped
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import migrate, shipped_migrations
from casino_brag.db.pool import Database
from casino_brag.game.settlement import Decision, Stakes
from casino_brag.rounds.commitments import offer
from casino_brag.rounds.house import House
from casino_brag.sealing import Sealer
from casino_brag.watch.accumulating import LEAVES_AT_ONCE, accumulate
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.settled import pending


def main() -> None:
    """Plays, adds up, and prints what it took."""
    parser = argparse.ArgumentParser(description="Adding up settled rounds, beside reading them.")
    parser.add_argument("--rounds", type=int, default=40_000, help="how many (default 40,000)")
    turns = max(1, parser.parse_args().rounds // PLAYERS)
    with tempfile.TemporaryDirectory(prefix="casino-brag-bench-") as directory:
        Path(directory).chmod(0o711)
        with EmbeddedServer.attach(Path(directory, "data")) as server:
            with psycopg.connect(server.url(Role.OWNER), autocommit=True) as conn:
                _play(conn, turns)
            database = Database(server.url(Role.APP))
            try:
                _measure(database, turns * PLAYERS)
            finally:
                database.close()


def _play(conn: psycopg.Connection, turns: int) -> None:
    """Plays rounds for money, for many players at a time, and orders the log."""
    migrate(conn, shipped_migrations())
    publish_directory(conn, shipped("paytables"), actor="system:bench")
    house = House.with_keys({"k1": secrets.token_bytes(32)})
    made = add_operator(conn, Sealer({"k1": secrets.token_bytes(32)}), "bench", actor="system:bench")
    operator = signing_operator(conn, made.operator, made.key_id)
    assert operator is not None
    wanted = [
        NewSession(player=f"player-{number}", currency="GBP", mode=Mode.REAL, game=GAME)
        for number in range(PLAYERS)
    ]
    tokens = [hash_of(open_session(conn, operator, one).token) for one in wanted]
    conn.execute("UPDATE account SET balance_minor = 1_000_000_000 WHERE kind = 'player'")
    for token in tokens:
        offer(conn, house, token)
    for turn in range(turns):
        decision = Decision.FOLD if turn % 3 == 0 else Decision.PLAY
        stakes = Stakes(5 * 10 ** (turn % 4), 5)
        _decide(conn, house, tokens, _open(conn, house, tokens, stakes), decision)
    while conn.execute("SELECT audit_order(20000)").fetchone() != (0,):
        pass
    conn.execute("VACUUM ANALYZE")


def _measure(database: Database, rounds: int) -> None:
    shelf = Shelf()
    with database.connection() as conn:
        row = conn.execute("SELECT max(leaf_index) + 1 FROM audit_leaf").fetchone()
        assert row is not None

        def read() -> None:
            for first in range(0, row[0], LEAVES_AT_ONCE):
                pending(conn, first, first + LEAVES_AT_ONCE)

        reading = _seconds(read)
        passes = []
        while True:
            done = 0

            def add_up() -> None:
                nonlocal done
                done = accumulate(conn, shelf, Suspension.NONE, lag_seconds=0)

            passes.append(_seconds(add_up))
            if not done:
                break
        level = conn.execute("SELECT level, rounds FROM rtp_evidence").fetchone()
    adding = sum(passes[:-1])
    print(f"rounds    {rounds:>10,}, {row[0]:,} entries of the log; evidence {level}")
    print(f"read      {rounds / reading:>10,.0f} a second")
    print(f"added up  {rounds / adding:>10,.0f} a second, {reading / adding:.0%} of that")
    print(f"a pass    {max(passes) * 1000:>10,.0f} ms of at most {LEAVES_AT_ONCE:,} entries, the longest")
    print(f"an empty  {passes[-1] * 1000:>10,.1f} ms")


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
