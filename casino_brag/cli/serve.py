"""``serve``: everything for a first run, from an empty directory to a round that can be played."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import psycopg
from gunicorn.app.base import Application
from gunicorn.arbiter import Arbiter
from psycopg import sql

from casino_brag.catalogue.operators import Credentials, add_operator, newest_credentials, signing_operator
from casino_brag.catalogue.paytables import Published, publish_directory
from casino_brag.catalogue.sessions import Mode, NewSession, hash_of, open_session
from casino_brag.cli.installation import data_dir_option, database, owner_connection, seal_keys, sealing
from casino_brag.cli.paytables import paytables_option, report_problems
from casino_brag.config import Config, read_config, read_server_settings
from casino_brag.db.migrations import migrate, shipped_migrations
from casino_brag.db.pool import APPLICATION_ROLE
from casino_brag.errors import SetUpError
from casino_brag.rounds.commitments import offer
from casino_brag.rounds.house import House
from casino_brag.sealing import Sealer
from casino_brag.web.app import create_app
from casino_brag.web.parents import die_with_parent

DEMO_OPERATOR = "demo"
DEMO_GAME = "three-card-brag"
JOBS_STOP_SECONDS = 12

_REMEDY = (
    "Install this version anew and start it again.",
    "In a checkout, after a change that was meant: make manifest, and start again.",
)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Worker processes; one for each core unless said."
)
@paytables_option
@data_dir_option
def serve(host: str, port: int, workers: int | None, directory: Path, data_dir: Path) -> None:
    """Start everything: database, schema, paytables, a demonstration operator, and the HTTP service."""
    # What is wrong is said before anything is started.
    read_server_settings()
    _must_be_free(host, port)
    with database(data_dir) as addresses:
        keys = seal_keys(data_dir)
        # The job worker's, which finds it by itself; said here if something is wrong with it.
        sealing(data_dir, addresses)
        with owner_connection(addresses) as conn:
            started = _set_up(conn, keys, directory)
        _must_work_as_the_application(addresses.app)
        report_problems(started.published, directory)
        config = read_config(database_url=addresses.app, seal_keys=keys)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        greeting = _greeting(address, data_dir, started)
        _Server(config, address, workers, greeting, _jobs_environment(config, data_dir)).run()


def _jobs_environment(config: Config, data_dir: Path) -> Mapping[str, str]:
    """Where the job worker finds the same database and keys, and the log's."""
    keys = (f"{name}:{base64.b64encode(key).decode()}" for name, key in config.seal_keys.items())
    return {
        **os.environ,
        "DATABASE_URL": config.database_url,
        "CASINO_BRAG_SEAL_KEYS": ",".join(keys),
        "CASINO_BRAG_DATA_DIR": str(data_dir),
    }


@dataclass(frozen=True, slots=True)
class _Started:
    """What a start found or made."""

    published: list[Published]
    operator: Credentials
    token: str | None
    obstacle: str | None
    """What keeps this program from dealing, although the game is open."""


def _set_up(conn: psycopg.Connection[Any], seal_keys: Mapping[str, bytes], paytables: Path) -> _Started:
    sealer = Sealer(seal_keys)
    migrate(conn, shipped_migrations())
    published = publish_directory(conn, paytables, actor="system:serve")
    credentials = newest_credentials(conn, sealer, DEMO_OPERATOR) or add_operator(
        conn, sealer, DEMO_OPERATOR, actor="system:serve"
    )
    house = House.with_keys(seal_keys)
    token = _demo_token(conn, credentials, published, house)
    return _Started(published, credentials, token, house.generator.failure)


def _must_work_as_the_application(address: str) -> None:
    with psycopg.connect(address, autocommit=True, connect_timeout=5) as conn:
        try:
            conn.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(APPLICATION_ROLE)))
        except psycopg.Error as refused:
            raise SetUpError(
                f"The service works as {APPLICATION_ROLE}, and {conn.info.user} may not. "
                f"Have an administrator run: GRANT {APPLICATION_ROLE} TO {conn.info.user}"
            ) from refused


def _demo_token(
    conn: psycopg.Connection[Any],
    credentials: Credentials,
    published: list[Published],
    house: House,
) -> str | None:
    opened = [found.game for found in published if found.version is not None]
    if not opened:
        return None
    game = DEMO_GAME if DEMO_GAME in opened else opened[0]
    operator = signing_operator(conn, credentials.operator, credentials.key_id)
    assert operator is not None
    wanted = NewSession(player="visitor", currency="GBP", mode=Mode.DEMO, game=game)
    token = open_session(conn, operator, wanted).token
    offer(conn, house, hash_of(token))
    return token


def _greeting(address: str, data_dir: Path, started: _Started) -> str:
    base = f"http://{address}"
    operator = started.operator
    lines = [
        "",
        "casino-brag is ready.",
        f"  API          {base}/docs   ({base}/openapi.json)",
        f"  Games        {base}/v1/games",
        f"  Console      {base}/console   (people: casino-brag staff add, staff invite)",
        f"  Readiness    {base}/readyz",
        f"  Operator     {operator.operator}   key {operator.key_id}   secret {operator.secret}",
        f"  Data         {data_dir.absolute()}",
    ]
    if started.obstacle is not None:
        lines += ["", f"No round can be dealt: {started.obstacle}", *_REMEDY]
    elif started.token is not None:
        lines += ["", "A round, to copy and paste into another terminal:", "", *_a_round(base, started.token)]
    return "\n".join([*lines, "", "Ctrl-C stops everything.", ""])


def _a_round(base: str, token: str) -> list[str]:
    """Shell lines that note the commitment, deal, decide, and check the deal where the checkout's verifier is."""
    bearer = '-H "Authorization: Bearer $TOKEN"'
    posted = f"{bearer} -H \"Idempotency-Key: $(date +%s%N)\" -H 'Content-Type: application/json'"
    seen = '\'s/.*"next_commitment":{[^}]*"value":"\\([0-9a-f]*\\)".*/\\1/p\''
    lines = [
        f"TOKEN={token}",
        f"seen() {{ curl -s {base}/v1/session {bearer} | sed -n {seen}; }}",
        # After a change of the paytable there is none until a deal is asked for: one that names another is refused.
        f'SEEN=$(seen); [ "$SEEN" ] || {{ curl -s -o /dev/null {base}/v1/rounds {posted} '
        f'-d \'{{"ante_minor": 100, "commitment": "{"0" * 64}"}}\'; SEEN=$(seen); }}; echo "committed to $SEEN"',
        f"DEAL=$(curl -s {base}/v1/rounds {posted} "
        '-d \'{"ante_minor": 100, "pair_bonus_minor": 50, "client_seed": "my-own-words"}\'); echo "$DEAL"',
        'ROUND=$(echo "$DEAL" | sed -n \'s/.*"round_id":"\\([^"]*\\)","game.*/\\1/p\')',
        f'curl -s {base}/v1/rounds/$ROUND/decision {posted} -d \'{{"decision": "play"}}\'; echo',
        f"curl -s {base}/v1/rounds/$ROUND/proof {bearer} >proof.json",
    ]
    verifier = Path("verification/verify_round.py")
    if verifier.is_file():
        lines.append(f'python3 {verifier} proof.json --commitment "$SEEN"')
    return lines


def _must_be_free(host: str, port: int) -> None:
    """Finds out that a port is taken before a database is started for nothing."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError as refused:
        raise SetUpError(
            f"{host}:{port} cannot be listened on: {refused.strerror}. Choose another with --port or --host."
        ) from refused


class _PatientArbiter(Arbiter):  # type: ignore[misc]
    """Lets running requests finish on Ctrl-C too; a second Ctrl-C does not wait.  Keeps a job worker running."""

    def __init__(self, server: _Server) -> None:
        super().__init__(server)
        self._jobs_environment = server.jobs_environment
        self._jobs: subprocess.Popen[bytes] | None = None

    def handle_int(self) -> None:
        """Ctrl-C: says so, as stopping takes a moment."""
        with suppress(OSError):  # whoever reads may have gone, and it stops all the same
            print("Stopping: requests that run are finished first.", flush=True)  # noqa: T201
        self.handle_term()

    def manage_workers(self) -> None:
        """Starts what is missing of the workers, once a second; the job worker is one of them."""
        super().manage_workers()
        if self._jobs is not None and self._jobs.poll() is not None:
            self.log.warning("The job worker ended (%s) and is started again.", self._jobs.returncode)
        if self._jobs is None or self._jobs.poll() is not None:
            self._jobs = subprocess.Popen(
                [sys.executable, "-m", "casino_brag", "worker"],
                env=self._jobs_environment,
                stdin=subprocess.DEVNULL,
                preexec_fn=self._born,  # noqa: PLW1509 - the master has one thread
            )

    def _born(self) -> None:
        if not die_with_parent(self.pid):
            os._exit(1)

    def stop(self, graceful: bool = True) -> None:
        """Stops the workers, and the job worker with them."""
        if self._jobs is not None and self._jobs.poll() is None:
            self._jobs.terminate()
        super().stop(graceful)
        if self._jobs is not None:
            try:
                self._jobs.wait(JOBS_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._jobs.kill()  # whatever it was doing is taken up by the next one
                self._jobs.wait()


class _Server(Application):  # type: ignore[misc]
    """gunicorn in this process, configured as in production."""

    def __init__(
        self,
        config: Config,
        bind: str,
        workers: int | None,
        greeting: str,
        jobs_environment: Mapping[str, str],
    ) -> None:
        self.jobs_environment = jobs_environment
        self._config = config
        self._bind = bind
        self._workers = workers
        self._greeting = greeting
        super().__init__()

    def load_config(self) -> None:
        """The settings of `gunicorn_conf`, with the command's own on top."""
        self.load_config_from_module_name_or_filename("python:casino_brag.web.gunicorn_conf")
        self.cfg.set("bind", self._bind)
        if self._workers is not None:
            self.cfg.set("workers", self._workers)
        self.cfg.set("loglevel", "warning")
        self.cfg.set("when_ready", lambda _: print(self._greeting, flush=True))  # noqa: T201

    def load(self) -> Any:
        """The application, made in each worker."""
        return create_app(self._config)

    def run(self) -> None:
        """Serves until told to stop; `SystemExit` with gunicorn's code follows."""
        _PatientArbiter(self).run()
