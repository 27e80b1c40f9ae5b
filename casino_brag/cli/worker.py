"""``worker``: the process that pays, cancels, expires and notifies."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import click

from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.config import read_config
from casino_brag.db.pool import Database
from casino_brag.jobs.worker import attend_once, run
from casino_brag.rounds.house import House
from casino_brag.web.logs import configure


@click.command()
@click.option("--once", is_flag=True, help="Do what is due, say what was done, and end.")
@data_dir_option
def worker(once: bool, data_dir: Path) -> None:
    """Attend to operators' wallets, webhooks and interrupted rounds.

    `serve` runs one.  Beside a service that is run in another way, run at least one; two are as good as one.
    """
    with database(data_dir) as addresses:
        if once:
            with migrated_connection(addresses):
                pass
        config = read_config(database_url=addresses.app, seal_keys=seal_keys(data_dir))
        configure(config.log_format)
        records = Database(config.database_url, pool_size=config.pool_size)
        house = House.without_dealing(config.seal_keys)
        try:
            if once:
                for name, done in attend_once(records.connection, house).items():
                    click.echo(f"{name:<20}{done}")
            else:
                run(records.connection, house, _told_to_stop())
        finally:
            records.close()


def _told_to_stop() -> threading.Event:
    stop = threading.Event()

    def told(*_: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    return stop
