"""``worker``: the process that pays, cancels, expires, notifies, seals and watches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from casino_brag.audit.publishing import PublishedDiffers
from casino_brag.audit.sealer import LogBroken
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys, sealing
from casino_brag.config import read_config
from casino_brag.db.pool import Database
from casino_brag.errors import SetUpError
from casino_brag.jobs.worker import Job, attend_once, jobs, run
from casino_brag.rounds.house import House
from casino_brag.web.logs import configure


@click.command()
@click.option("--once", is_flag=True, help="Do what is due, say what was done, and end.")
@data_dir_option
def worker(once: bool, data_dir: Path) -> None:
    """Attend to operators' wallets, webhooks, interrupted rounds, the log and the watch over live play.

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
        attended = jobs(config, sealing(data_dir, addresses))
        try:
            if once:
                for name, done in _once(records, house, attended).items():
                    click.echo(f"{name:<20}{done}")
            else:
                run(records.connection, house, attended, _told_to_stop())
        finally:
            records.close()


def _once(records: Database, house: House, attended: Sequence[Job]) -> Mapping[str, int]:
    try:
        return attend_once(records.connection, house, attended)
    except (LogBroken, PublishedDiffers) as broken:
        raise SetUpError(str(broken)) from broken


def _told_to_stop() -> threading.Event:
    stop = threading.Event()

    def told(*_: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    return stop
