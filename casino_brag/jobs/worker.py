"""The job worker: each kind of job in a thread of its own, over and over, until the process is told to stop.

Any number of workers may run, on any number of machines: what one has taken up the others leave alone, and what one
leaves behind when it dies they take up.  All that there is to know about a job is in the database.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from casino_brag.audit.publishing import PublishedDiffers
from casino_brag.audit.sealer import AT_MOST, LogBroken, Sealing
from casino_brag.catalogue import activations, webhooks
from casino_brag.config import Config
from casino_brag.db.pool import Connect
from casino_brag.errors import ServiceError
from casino_brag.jobs.simulations import Simulations
from casino_brag.rounds import expiry, paying
from casino_brag.rounds.house import House
from casino_brag.watch import accumulating, checking, clocks, large
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.events import record_failure
from casino_brag.watch.large import LargeAmounts

MONTHS_AHEAD: Final = 3
"""Of how many months to come the log has its part ready."""

log = structlog.get_logger("casino_brag.jobs")


@dataclass(frozen=True, slots=True)
class Job:
    """Something to attend to: how, and how many seconds later again.  It returns how much it did.

    `begin` comes before it, once in the life of a process.  When it did `full` or more, there may be more to do, and it
    is attended to again at once.
    """

    name: str
    every_seconds: float
    attend: Callable[[Connect, House], int]
    begin: Callable[[Connect], None] = lambda _: None
    full: int = 1


def _deliver(connect: Connect, house: House) -> int:
    return webhooks.deliver(connect, house.sealer)


def _make_parts_of_the_log(connect: Connect, _: House) -> int:
    with connect() as conn:
        row = conn.execute("SELECT audit_parts_make(%s)", [MONTHS_AHEAD]).fetchone()
    assert row is not None
    return int(row[0])


def jobs(config: Config, sealing: Sealing) -> tuple[Job, ...]:
    """All there is to attend to.  `SetUpError` names a setting that is wrong."""
    suspension = Suspension(config.rtp_suspension)
    amounts = LargeAmounts.parse(config.large_amounts)
    simulations = Simulations(config.database_url)
    return (
        Job("wallets", 0.5, paying.attend, paying.begin),
        Job("webhooks", 1.0, _deliver),
        Job("interrupted rounds", 10.0, expiry.attend),
        Job("activations", 2.0, lambda connect, _: activations.attend(connect)),
        Job("sealer", 1.0, lambda connect, _: sealing.attend(connect), full=AT_MOST),
        Job("log parts", 6 * 3600.0, _make_parts_of_the_log),
        Job(
            "live return",
            2.0,
            lambda connect, house: accumulating.attend(connect, house, suspension),
            full=accumulating.LEAVES_AT_ONCE,
        ),
        Job("daily check", 60.0, checking.attend),
        Job("large amounts", 5.0, lambda connect, _: large.attend(connect, amounts), full=large.BATCH),
        Job("clock", 10.0, lambda connect, _: clocks.attend(connect)),
        Job("simulations", 2.0, lambda connect, _: simulations.attend(connect)),
    )


def attend_once(connect: Connect, house: House, jobs: Sequence[Job]) -> dict[str, int]:
    """Does what is due of every job; how much was done of each.  Raises what goes wrong."""
    return {job.name: job.attend(connect, house) for job in jobs}


def run(connect: Connect, house: House, jobs: Sequence[Job], stop: threading.Event) -> None:
    """Attends to every job until `stop` is set; what is under way then is finished, which takes a few seconds."""
    threads = [
        threading.Thread(target=_repeat, args=(job, connect, house, stop), name=job.name) for job in jobs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _repeat(job: Job, connect: Connect, house: House, stop: threading.Event) -> None:
    begun = False
    while not stop.is_set():
        done = 0
        try:
            if not begun:
                job.begin(connect)
                begun = True
            done = job.attend(connect, house)
        except (LogBroken, PublishedDiffers):
            pass  # logged where it was found, by its own name
        except ServiceError as problem:
            # The database is away, most likely.  Nothing is lost, and it is tried again.
            log.warning("job_interrupted", job=job.name, problem=problem.code.value)
        except Exception as unforeseen:
            # One job's fault must not end the others.
            record_failure(connect, f"job {job.name}", unforeseen)
        if done < job.full:
            # Scattered, so that many workers do not all ask at the same instant.
            stop.wait(job.every_seconds * (75 + secrets.randbelow(51)) / 100)
