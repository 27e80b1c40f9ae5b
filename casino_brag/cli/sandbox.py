"""``sandbox-wallet``: an operator's wallet to try an integration with."""

from __future__ import annotations

import signal
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import click

from casino_brag.cli.arguments import whole
from casino_brag.errors import ServiceError, SetUpError
from casino_brag.game.rules import MINOR_MAX
from casino_brag.sandbox.app import Wallet, create_app, read_keys
from casino_brag.sandbox.faults import Faults, read_rules
from casino_brag.sandbox.serving import served
from casino_brag.sandbox.store import Store
from casino_brag.web.api import strict_json


@click.command("sandbox-wallet")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8090, show_default=True)
@click.option(
    "--keys",
    "keys_file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Whose signatures hold: a file of lines KEY_ID:SECRET, read again at every call.",
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("sandbox-wallet.sqlite3"),
    show_default=True,
    help="The wallet's books, an SQLite file, which is made if there is none.",
)
@click.option(
    "--fund",
    "fund_minor",
    type=whole("minor units", 0, MINOR_MAX),
    default=100_000,
    show_default=True,
    help="What a player has on first mention, in minor units of each currency.",
)
@click.option("--operator", help="The only X-Operator that is let in; anybody's unless said.")
@click.option(
    "--faults",
    "faults_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Faults to begin with: a file of what PUT /faults takes.",
)
def sandbox_wallet(
    host: str,
    port: int,
    keys_file: Path,
    file: Path,
    fund_minor: int,
    operator: str | None,
    faults_file: Path | None,
) -> None:
    """Run an operator's wallet for trials, which goes wrong when told to.

    Its desk is open to all who reach it: leave it on the loopback interface.

    \b
    GET  /players/PLAYER?currency=GBP          what a player has
    POST /players/PLAYER/fund                  {"currency": "GBP", "amount_minor": 500}
    GET  /statement.csv                        every transaction
    GET  /books                                balances, and the sums behind them
    GET, PUT, DELETE /faults                   what goes wrong, and how often it did

    Faults are {"rules": [{"kind": "error_after", "operation": "debit", "times": 1}], "seed": 7}. A rule may also have
    player, wager, probability (0 to 1), seconds (for the kinds that wait) and reason (for refuse).
    """
    keys = partial(read_keys, keys_file)
    keys()  # what is wrong with them is said now
    faults = Faults()
    if faults_file is not None:
        _set(faults, faults_file)
    # Blocked in every thread, the two signals wait for the main one to ask for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    stopping = threading.Event()
    with closing(_opened(file, fund_minor)) as store:
        app = create_app(Wallet(store, faults, keys, operator, stopping))
        with served(app, host, port, stopping):
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            click.echo(f"The sandbox wallet is ready at http://{address}")
            signal.sigwait({signal.SIGTERM, signal.SIGINT})


def _set(faults: Faults, file: Path) -> None:
    try:
        faults.replace(*read_rules(strict_json.loads(file.read_bytes())))
    except ServiceError as wrong:
        found = "".join(f" {name}: {' '.join(said)}" for name, said in (wrong.errors or {}).items())
        raise SetUpError(f"{file}: {wrong.detail}{found}") from wrong


def _opened(file: Path, fund_minor: int) -> Store:
    try:
        return Store(file, fund_minor=fund_minor)
    except sqlite3.Error as failure:
        raise SetUpError(f"{file} cannot be used as the wallet's books: {failure}.") from failure
