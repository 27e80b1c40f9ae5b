"""What replay costs, as ratios taken within one run: reading, deriving, and all of it.

.venv/bin/python -m benchmarks.replay [--rounds 40000]

The rounds are played by the service's own code on a database of their own.  All is compared with ``COPY round TO
STDOUT``, which is the least that reading them can cost.
"""

from __future__ import annotations

import argparse
import os
import platform
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from uuid import UUID, uuid4

import numpy as np
import psycopg

from benchmarks.processor import busy_seconds
from casino_brag.catalogue.operators import add_operator, signing_operator
from casino_brag.catalogue.paytables import publish_directory
from casino_brag.catalogue.sessions import Mode, NewSession, hash_of, open_session
from casino_brag.config import shipped
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.db.migrations import migrate, read_migrations
from casino_brag.db.records import as_jsonb
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Decision, Stakes
from casino_brag.replay import reading as of_replay
from casino_brag.replay.dealing import deal_index, deals
from casino_brag.replay.progress import Plan
from casino_brag.replay.reading import BATCH_ROUNDS, read_chunk, reading
from casino_brag.replay.replaying import replayed
from casino_brag.replay.report import Kind
from casino_brag.replay.settling import settle_all
from casino_brag.rng import commitment_value
from casino_brag.rounds import deciding, opening
from casino_brag.rounds.commitments import offer
from casino_brag.rounds.house import House
from casino_brag.sealing import Sealer
from casino_brag.wallet.answers import Request

GAME = "three-card-brag"
PLAYERS = 250
CHUNK_ROUNDS = 2_000
"""Smaller than usual, so that the first of each worker, which starts it, need not be counted."""

SETTLED_AT_ONCE = 10_000
DEALS_TIMED = 20_000
TURNS = 3


def main() -> None:
    """Plays, measures and prints."""
    parser = argparse.ArgumentParser(description="Replay, beside copying the rounds.")
    parser.add_argument("--rounds", type=int, default=40_000, help="how many are replayed (default 40000)")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="casino-brag-bench-") as directory:
        Path(directory).chmod(0o711)
        with EmbeddedServer.attach(Path(directory, "data")) as server:
            played = _play(server, max(1, wanted.rounds // PLAYERS))
            postmaster = int(Path(directory, "data", "postgres", "postmaster.pid").read_text().split()[0])
            _measure(server.url(Role.APP), played, postmaster)


def _play(server: EmbeddedServer, turns: int) -> int:
    """Plays rounds for many players at a time; how many."""
    with psycopg.connect(server.url(Role.OWNER), autocommit=True) as conn:
        migrate(conn, read_migrations(shipped("migrations")))
        publish_directory(conn, shipped("paytables"), actor="system:bench")
        house = House.with_keys({"k1": secrets.token_bytes(32)})
        made = add_operator(conn, Sealer({"k1": secrets.token_bytes(32)}), "bench", actor="system:bench")
        operator = signing_operator(conn, made.operator, made.key_id)
        assert operator is not None
        wanted = [
            NewSession(player=f"player-{number}", currency="GBP", mode=Mode.DEMO, game=GAME)
            for number in range(PLAYERS)
        ]
        tokens = [hash_of(open_session(conn, operator, one).token) for one in wanted]
        for token in tokens:
            offer(conn, house, token)
        for turn in range(turns):
            decision = Decision.FOLD if turn % 3 == 0 else Decision.PLAY
            _decide(conn, house, tokens, _open(conn, house, tokens, Stakes(5 + 5 * (turn % 7), 5)), decision)
        conn.execute("VACUUM ANALYZE")
    return turns * PLAYERS


def _open(conn: psycopg.Connection[Any], house: House, tokens: Sequence[bytes], stakes: Stakes) -> list[UUID]:
    asks = [opening.Ask(token, _request("/v1/rounds"), stakes) for token in tokens]
    ops = []
    for ask, seen in zip(asks, opening.read_for_opening(conn, asks), strict=True):
        assert seen is not None
        assert seen.version_id is not None
        assert seen.latest is not None
        version = house.shelf.version(conn, seen.version_id)
        ops.append(opening.prepare_opening(house, ask, seen, version, seen.latest))
    _carry_out(conn, "opened", "SELECT outcome FROM round_open(%s)", ops)
    return [op["round_id"] for op in ops]


def _decide(
    conn: psycopg.Connection[Any],
    house: House,
    tokens: Sequence[bytes],
    rounds: Sequence[UUID],
    decision: Decision,
) -> None:
    asks = [
        deciding.Ask(token, _request(f"/v1/rounds/{round_id}/decision"), round_id, decision)
        for token, round_id in zip(tokens, rounds, strict=True)
    ]
    ops = [
        deciding.prepare_decision(conn, house, ask, seen, seen.round)
        for ask, seen in zip(asks, deciding.read_for_deciding(conn, asks), strict=True)
        if seen is not None and seen.round is not None
    ]
    _carry_out(conn, "settled", "SELECT outcome FROM round_decide(%s)", ops)


def _request(path: str) -> Request:
    return Request.of(secrets.token_hex(8), "POST", path, {})


def _carry_out(conn: psycopg.Connection[Any], wanted: str, statement: str, ops: Sequence[Any]) -> None:
    outcomes = {row[0] for row in conn.execute(statement, [as_jsonb(ops)]).fetchall()}
    if outcomes != {wanted}:
        raise SystemExit(f"Of the rounds, some were {outcomes - {wanted}}.")


def _measure(url: str, played: int, postmaster: int) -> None:
    with patch.object(of_replay, "CHUNK_ROUNDS", CHUNK_ROUNDS):
        plan = Plan.of(url, datetime.now(UTC) - timedelta(days=1), None)
    works: dict[str, tuple[Callable[[], Iterator[int]], int]] = {
        "COPY round TO STDOUT": (lambda: _copy(url, played), 0),
        "reading": (lambda: _read(url, plan), 0),
        "replay, one worker": (lambda: _replay(url, plan, 1), 1),
        "replay, two workers": (lambda: _replay(url, plan, 2), 2),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(TURNS):
        for name, (work, warm_up) in works.items():
            costs[name].append(_cost(work(), warm_up, postmaster))
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {played} rounds\n"
    )
    print(f"{'':<28}{'rounds/s':>12}{'a core':>12}{'of them Python':>16}{'of COPY':>10}")
    least = min(cost.used for cost in costs["COPY round TO STDOUT"])
    for name, seen in costs.items():
        taken, used, python = (min(column) for column in zip(*seen, strict=True))
        share = f"{least / used:>10.2%}" if used else ""
        print(f"{name:<28}{1 / taken:>12,.0f}{1 / used:>12,.0f}{1 / python:>16,.0f}{share}")
    for name, a_second in (("deals from seeds", _deals()), ("settlement", _settlements())):
        print(f"{name + ', alone':<28}{'':>12}{'':>12}{a_second:>16,.0f}{least * a_second:>10.2%}")


class Cost(NamedTuple):
    """Of a round: seconds taken, and seconds of processor time with the database and without."""

    taken: float
    used: float
    python: float


def _cost(work: Iterator[int], warm_up: int, postmaster: int) -> Cost:
    """What the rounds cost that a work does after the first so many parts of it."""
    for _ in range(warm_up):
        next(work)
    ours, database, start = busy_seconds(os.getpid()), busy_seconds(postmaster), time.perf_counter()
    rounds = sum(work)
    taken = time.perf_counter() - start
    ours, database = busy_seconds(os.getpid()) - ours, busy_seconds(postmaster) - database
    return Cost(taken / rounds, (ours + database) / rounds, max(ours, 0.01) / rounds)


def _copy(url: str, played: int) -> Iterator[int]:
    with psycopg.connect(url) as conn, conn.cursor().copy("COPY round TO STDOUT (FORMAT binary)") as copy:
        for _ in copy:
            pass
    yield played


def _read(url: str, plan: Plan) -> Iterator[int]:
    with reading(url) as conn:
        for chunk in plan.chunks:
            for batch in read_chunk(conn, chunk):
                yield len(batch)


def _replay(url: str, plan: Plan, workers: int) -> Iterator[int]:
    for _, tally in replayed(url, plan, range(len(plan.chunks)), workers):
        if tally.counted:
            raise SystemExit(f"Something differs: {tally.named[0]}")
        yield tally.rounds[Kind.SETTLED]


def _deals() -> float:
    """Deals and commitments derived from seeds, a second of processor time."""
    seed, round_id, rules = secrets.token_bytes(48), uuid4(), "ab" * 32
    start = time.process_time()
    for _ in range(DEALS_TIMED // BATCH_ROUNDS):
        indexes = []
        for _ in range(BATCH_ROUNDS):
            commitment_value(round_id, rules, 2, bytes(32), seed)
            indexes.append(deal_index(seed, round_id, rules, None)[0])
        deals(np.array(indexes))
    return DEALS_TIMED / (time.process_time() - start)


def _settlements() -> float:
    """Rounds settled by columns, a second of processor time."""
    random = np.random.default_rng(1)
    cards = np.argsort(random.random((SETTLED_AT_ONCE, 52)), axis=1)[:, :6]
    stakes = 5 * random.integers(1, 1_000, (2, SETTLED_AT_ONCE))
    plays = random.random(SETTLED_AT_ONCE) < 0.7
    paytable = Paytable.load(shipped("paytables") / f"{GAME}.toml")
    settle_all(paytable, cards, plays, *stakes)
    start = time.process_time()
    for _ in range(20):
        settle_all(paytable, cards, plays, *stakes)
    return 20 * SETTLED_AT_ONCE / (time.process_time() - start)


if __name__ == "__main__":
    main()
