"""The same operations without HTTP: pgbench calls the database's functions with what the service would send.

The operations are prepared by the service's own code, outside the measured time, so that both sides write the
same rows.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.phase import Phase
from casino_brag.catalogue.sessions import hash_of
from casino_brag.db.binaries import find_binaries
from casino_brag.game.settlement import Decision, Stakes
from casino_brag.rounds import deciding, opening
from casino_brag.rounds.house import House
from casino_brag.wallet.answers import Request

PGBENCH_SECONDS_MAX = 120

_TABLE = """
    CREATE SCHEMA bench;
    CREATE TABLE bench.op (client int, n int, op text NOT NULL, PRIMARY KEY (client, n));
    GRANT USAGE ON SCHEMA bench TO casino_brag_app;
    GRANT SELECT ON bench.op TO casino_brag_app;
"""
_SCRIPT = """
\\set n :n + 1
SELECT outcome FROM {function}((SELECT op::jsonb FROM bench.op WHERE client = :client_id AND n = :n));
"""


class Direct:
    """pgbench on the service's database, each client playing for players of its own."""

    def __init__(self, url: str, owner_url: str, house: House, tokens: Sequence[Sequence[str]]) -> None:
        """`tokens`: for each client the session tokens it plays with."""
        self._url = url
        self._owner_url = owner_url
        self._house = house
        self._tokens = tokens
        self._program = find_binaries().bindir / "pgbench"
        if not self._program.exists():
            raise SystemExit(f"There is no pgbench beside the server's programs in {self._program.parent}.")
        with psycopg.connect(owner_url) as conn:
            conn.execute(_TABLE)

    def deal_and_decide(self, ante_minor: int) -> tuple[Phase, Phase]:
        """Opens a round for every token, then plays every one."""
        with psycopg.connect(self._url, autocommit=True) as conn:
            openings = self._openings(conn, ante_minor)
            self._lay_out(openings)
            dealt = self._run("round_open")
            rounds = [UUID(str(op["round_id"])) for op in openings]
            self._lay_out(self._decisions(conn, rounds))
            decided = self._run("round_decide")
            settled = conn.execute(
                "SELECT count(*) FROM round WHERE round_id = ANY (%s) AND state = 'settled'", [rounds]
            ).fetchone()
        if settled != (len(rounds),):
            raise SystemExit(f"Of {len(rounds)} rounds, {settled} were settled.")
        return dealt, decided

    def settle_down(self) -> None:
        """Gives the database its statistics now, as it would gather them itself before long."""
        with psycopg.connect(self._owner_url, autocommit=True) as conn:
            conn.execute("VACUUM ANALYZE")

    def _flat_tokens(self) -> list[bytes]:
        return [hash_of(token) for listed in self._tokens for token in listed]

    def _openings(self, conn: psycopg.Connection[Any], ante_minor: int) -> list[dict[str, Any]]:
        asks = [
            opening.Ask(token, _request("/v1/rounds", {"ante_minor": ante_minor}), Stakes(ante_minor))
            for token in self._flat_tokens()
        ]
        found = zip(asks, opening.read_for_opening(conn, asks), strict=True)
        ops = []
        for ask, seen in found:
            assert seen is not None
            assert seen.version_id is not None
            assert seen.latest is not None, "a round over HTTP came before"
            version = self._house.shelf.version(conn, seen.version_id)
            ops.append(dict(opening.prepare_opening(self._house, ask, seen, version, seen.latest)))
        return ops

    def _decisions(self, conn: psycopg.Connection[Any], rounds: Sequence[UUID]) -> list[dict[str, Any]]:
        body = {"decision": "play"}
        asks = [
            deciding.Ask(token, _request(f"/v1/rounds/{round_id}/decision", body), round_id, Decision.PLAY)
            for token, round_id in zip(self._flat_tokens(), rounds, strict=True)
        ]
        found = zip(asks, deciding.read_for_deciding(conn, asks), strict=True)
        return [
            dict(deciding.prepare_decision(conn, self._house, ask, seen, seen.round))
            for ask, seen in found
            if seen is not None and seen.round is not None
        ]

    def _lay_out(self, ops: Iterable[dict[str, Any]]) -> None:
        """Puts the operations where pgbench's clients find theirs."""
        places = ((client, n) for client, listed in enumerate(self._tokens) for n in range(len(listed)))
        with psycopg.connect(self._owner_url) as conn:
            conn.execute("TRUNCATE bench.op")
            with conn.cursor().copy("COPY bench.op (client, n, op) FROM STDIN") as rows:
                for (client, n), op in zip(places, ops, strict=True):
                    rows.write_row((client, n, json.dumps([op], default=_as_text, ensure_ascii=False)))
            conn.execute("ANALYZE bench.op")

    def _run(self, function: str) -> Phase:
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory, "script.sql")
            script.write_text(_SCRIPT.format(function=function))
            command = [str(self._program), "--no-vacuum", "--protocol=prepared", "--define=n=-1", "--log"]
            command += [f"--log-prefix={directory}/log", f"--file={script}"]
            command += [f"--client={len(self._tokens)}", "--jobs=2", f"--transactions={len(self._tokens[0])}"]
            done = subprocess.run(
                [*command, self._url],
                capture_output=True,
                text=True,
                timeout=PGBENCH_SECONDS_MAX,
                check=False,
            )
            if done.returncode != 0:
                raise SystemExit(f"pgbench failed: {done.stderr}")
            lines = [line.split() for log in Path(directory).glob("log.*") for line in log.open()]
        # Of each transaction: client, number, microseconds taken, script, and when it ended, in s and µs.
        taken = [int(line[2]) / 1e6 for line in lines]
        ended = [int(line[4]) + int(line[5]) / 1e6 for line in lines]
        began = min(end - took for end, took in zip(ended, taken, strict=True))
        return Phase(max(ended) - began, tuple(taken))


def _request(path: str, body: dict[str, Any]) -> Request:
    return Request.of(secrets.token_hex(8), "POST", path, body)


def _as_text(value: Any) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)
