"""What the job worker takes from play: deals and decisions with it running, and with it stopped, in turns.

    .venv/bin/python -m benchmarks.beside_play --turns 6

Real play, which is sealed, added up and judged.  The worker is stopped by a signal for every other turn, and has caught
up before the next one, so that each turn has its own work beside it and no other's.  Only the ratio of the two means
something on another machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from itertools import chain
from pathlib import Path

import psycopg

from benchmarks.phase import Phase
from benchmarks.run import _over_http, _service, _sessions
from casino_brag.catalogue.sessions import Mode
from casino_brag.db.embedded import EmbeddedServer, Role

CYCLES = 4
"""All deal and all decide so often in a turn."""
CAUGHT_UP_SECONDS_MAX = 120
BALANCE_MINOR = 10_000_000


def main() -> None:
    """Runs the benchmark and prints what came of it."""
    parser = argparse.ArgumentParser(description="Deals and decisions with and without the job worker.")
    parser.add_argument("--turns", type=int, default=6, help="of each kind (default 6)")
    parser.add_argument("--connections", type=int, default=16, help="that play (default 16)")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="casino-brag-bench-") as directory:
        Path(directory).chmod(0o711)
        data_dir = Path(directory, "data")
        with (
            EmbeddedServer.attach(data_dir) as server,
            _service(data_dir) as (process, port),
            psycopg.connect(server.url(Role.OWNER), autocommit=True) as conn,
        ):
            tokens = _sessions(server.url(Role.APP), wanted.connections, Mode.REAL)
            # What the books say of the money does not matter here.
            conn.execute("UPDATE account SET balance_minor = %s WHERE player_id IS NOT NULL", [BALANCE_MINOR])
            worker, address = _job_worker(process), ("127.0.0.1", port)
            _over_http(address, tokens)
            phases: dict[bool, list[tuple[Phase, Phase]]] = {True: [], False: []}
            for turn in range(2 * wanted.turns):
                running = turn % 2 == 0
                _catch_up(conn)
                os.kill(worker, signal.SIGCONT if running else signal.SIGSTOP)
                try:
                    phases[running] += [_over_http(address, tokens) for _ in range(CYCLES)]
                finally:
                    os.kill(worker, signal.SIGCONT)
    for number, kind in enumerate(("deal", "decide")):
        beside, alone = (
            Phase.together([cycle[number] for cycle in phases[running]]).a_second for running in (True, False)
        )
        print(f"{kind:<8}{beside:>8.0f} a second beside the job worker, {beside / alone:.1%} of without it")
    rounds = sum(len(cycle[0].latencies) for cycle in chain(*phases.values()))
    print(f"{rounds:,} rounds, {wanted.turns} turns of each kind")


def _job_worker(process: int) -> int:
    """The process that `serve` keeps for its jobs."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    (worker,) = (int(child) for child in children if b"worker" in Path(f"/proc/{child}/cmdline").read_bytes())
    return worker


def _catch_up(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Waits until every entry is sealed and added up."""
    deadline = time.monotonic() + CAUGHT_UP_SECONDS_MAX
    behind = (
        "SELECT (SELECT count(*) FROM audit_entry) - (SELECT max(leaf_index) + 1 FROM audit_leaf)"
        " + (SELECT max(leaf_index) + 1 FROM audit_leaf) - (SELECT next_leaf FROM rtp_cursor)"
    )
    while conn.execute(behind).fetchone() != (0,):
        if time.monotonic() > deadline:
            raise SystemExit(f"The job worker did not catch up in {CAUGHT_UP_SECONDS_MAX} s.")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
