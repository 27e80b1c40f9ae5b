"""What the service can carry: deals and decisions over HTTP, beside the same written by pgbench.

    make bench ARGS="--seconds 30"

Both sides work on one database, in turns within one run, with as many connections; only their ratio means
something on another machine.  See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import ProxyHandler, build_opener
from uuid import uuid4

import psycopg

from benchmarks.direct import Direct
from benchmarks.http_load import exchange, post
from benchmarks.phase import Phase
from benchmarks.processor import busy_seconds, machine_seconds
from casino_brag.catalogue.operators import signing_operator
from casino_brag.catalogue.sessions import Mode, NewSession, open_session
from casino_brag.cli.installation import seal_keys
from casino_brag.cli.serve import DEMO_OPERATOR
from casino_brag.db.embedded import EmbeddedServer, Role
from casino_brag.rng import Generator, commitment_value, draw_seed, seeds
from casino_brag.rounds.house import House

GAME = "three-card-brag"
ANTE_MINOR = 5
PLAYERS_EACH = 25
"""Players a connection plays for in turn, so that a phase is long beside its ends."""
START_SECONDS_MAX = 60
DEALS_TIMED = 20_000

Tokens = Sequence[Sequence[str]]


@dataclass(slots=True)
class Measured:
    """What was seen so far; processor times are those of the HTTP phases, in seconds."""

    phases: dict[tuple[str, str], list[Phase]] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)

    def add(self, side: str, dealt: Phase, decided: Phase) -> None:
        """Notes a cycle of one side."""
        self.phases.setdefault(("deal", side), []).append(dealt)
        self.phases.setdefault(("decide", side), []).append(decided)

    def seconds(self, side: str) -> float:
        """How long a side was measured."""
        return sum(phase.seconds for (_, of), phases in self.phases.items() if of == side for phase in phases)


def main() -> None:
    """Runs the benchmark and prints what came of it."""
    parser = argparse.ArgumentParser(description="Deals and decisions over HTTP, beside pgbench.")
    parser.add_argument("--seconds", type=float, default=10, help="how long HTTP is measured (default 10)")
    parser.add_argument("--connections", type=int, default=32, help="of either side (default 32)")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended either way, it cleans up
    # Entered by everybody, so that the account which runs Postgres reaches its files when we are root.
    with tempfile.TemporaryDirectory(prefix="casino-brag-bench-") as directory:
        Path(directory).chmod(0o711)
        data_dir = Path(directory, "data")
        with EmbeddedServer.attach(data_dir) as server, _service(data_dir) as (process, port):
            tokens = _sessions(server.url(Role.APP), wanted.connections)
            house = House.with_keys(seal_keys(data_dir))
            direct = Direct(server.url(Role.APP), server.url(Role.OWNER), house, tokens)
            postmaster = int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])
            roots = {"service": process, "database": postmaster, "client": os.getpid()}
            measured = _measure(wanted.seconds, ("127.0.0.1", port), tokens, direct, roots)
    _print(measured, wanted.connections)


@contextmanager
def _service(data_dir: Path) -> Iterator[tuple[int, int]]:
    """`casino-brag serve` as it comes; gives its process and its port once it can deal."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "casino_brag", "serve", "--port", str(port), "--data-dir", str(data_dir)]
    log = data_dir.parent / "serve.log"
    with log.open("wb") as printed:
        serving = subprocess.Popen(command, stdout=printed, stderr=printed, stdin=subprocess.DEVNULL)
    try:
        ready = build_opener(ProxyHandler({}))  # past any proxy
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                ready.open(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                break
            except OSError as failure:
                if serving.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"The service did not start:\n{log.read_text()[-2000:]}") from failure
                time.sleep(0.5)
        yield serving.pid, port
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(timeout=60)


def _sessions(url: str, connections: int, mode: Mode = Mode.DEMO) -> Tokens:
    """For each connection the tokens of its players' new sessions."""
    with psycopg.connect(url) as conn:
        row = conn.execute("SELECT key_id FROM operator JOIN operator_key USING (operator_id)").fetchone()
        operator = None if row is None else signing_operator(conn, DEMO_OPERATOR, row[0])
        assert operator is not None, "`serve` adds it"

        def token(player: str) -> str:
            wanted = NewSession(player=player, currency="GBP", mode=mode, game=GAME)
            return open_session(conn, operator, wanted).token

        return [
            [token(f"bench-{connection}-{player}") for player in range(PLAYERS_EACH)]
            for connection in range(connections)
        ]


def _measure(
    seconds: float, address: tuple[str, int], tokens: Tokens, direct: Direct, roots: dict[str, int]
) -> Measured:
    """Turns of HTTP and pgbench until HTTP has had its time; a first turn of each only warms up."""
    _over_http(address, tokens)
    direct.deal_and_decide(ANTE_MINOR)
    direct.settle_down()
    measured = Measured()
    while measured.seconds("HTTP") < seconds:
        before = _processor_times(roots)
        measured.add("HTTP", *_over_http(address, tokens))
        for user, spent in _processor_times(roots).items():
            measured.processor[user] = measured.processor.get(user, 0.0) + spent - before[user]
        measured.add("pgbench", *direct.deal_and_decide(ANTE_MINOR))
    return measured


def _over_http(address: tuple[str, int], tokens: Tokens) -> tuple[Phase, Phase]:
    """Opens a round for every token, then plays every one."""
    deal = json.dumps({"ante_minor": ANTE_MINOR}).encode()
    deals = [[post("/v1/rounds", token, secrets.token_hex(8), deal) for token in listed] for listed in tokens]
    dealt, opened = exchange(address, deals)

    def decision(token: str, answer: bytes) -> bytes:
        path = f"/v1/rounds/{json.loads(answer)['round_id']}/decision"
        return post(path, token, secrets.token_hex(8), b'{"decision": "play"}')

    decisions = [list(map(decision, *pair)) for pair in zip(tokens, opened, strict=True)]
    decided, _ = exchange(address, decisions)
    return dealt, decided


def _processor_times(roots: dict[str, int]) -> dict[str, float]:
    """Seconds used so far by each of the processes with theirs below, by the machine, and there in all."""
    busy, there = machine_seconds()
    used = {name: busy_seconds(process) for name, process in roots.items()}
    used["client"] -= used["service"]  # which is below it
    return used | {"machine": busy, "there": there}


def _print(measured: Measured, connections: int) -> None:
    together = {kind: Phase.together(phases) for kind, phases in measured.phases.items()}
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {connections} connections, "
        f"{len(together['deal', 'HTTP'].latencies)} rounds each\n"
    )
    print(f"{'':<18}{'a second':>10}{'share':>8}{'p50 ms':>9}{'p99 ms':>9}")
    for (kind, side), phase in together.items():
        share = phase.a_second / together[kind, "pgbench"].a_second
        print(
            f"{kind + ', ' + side:<18}{phase.a_second:>10.0f}{share:>8.0%}"
            f"{phase.percentile(50) * 1000:>9.1f}{phase.percentile(99) * 1000:>9.1f}"
        )
    used = measured.processor
    known = {name: used[name] for name in ("service", "database", "client")}
    shares = known | {"others": max(0.0, used["machine"] - sum(known.values()))}
    spoken = [f"{name} {seconds / used['there']:.0%}" for name, seconds in shares.items()]
    print(
        "\nProcessor during HTTP: " + ", ".join(spoken) + f", idle {1 - used['machine'] / used['there']:.0%}"
    )
    a_round = used["service"] / len(together["deal", "HTTP"].latencies)
    random = _verifiable_deal_seconds()
    print(
        f"A verifiable deal: {1 / random:,.0f} a second on a core; {random / a_round:.1%} of what the service spends"
        " on a round"
    )


def _verifiable_deal_seconds() -> float:
    """Processor time of all the random number module does for a round: seed, commitment, deal, and deal checked."""
    generator, round_id, rules = Generator(), uuid4(), bytes(32).hex()
    generator.start()
    start = time.process_time()
    for _ in range(DEALS_TIMED):
        generator.check()
        seed = draw_seed(generator, round_id).output
        commitment_value(round_id, rules, 2, bytes(32), seed)
        assert seeds.deal(seed, round_id, rules, "mine") == seeds.deal(seed, round_id, rules, "mine")
    return (time.process_time() - start) / DEALS_TIMED


if __name__ == "__main__":
    main()
