"""The job worker: each kind of job in a thread of its own, over and over, until the process is told to stop.

Any number of workers may run, on any number of machines: what one has taken up the others leave alone, and what one
leaves behind when it dies they take up.  All that there is to know about a job is in the database.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from casino_brag.catalogue import webhooks
from casino_brag.db.pool import Connect
from casino_brag.errors import ServiceError, places_of
from casino_brag.rounds import expiry, paying
from casino_brag.rounds.house import House

log = structlog.get_logger("casino_brag.jobs")


@dataclass(frozen=True, slots=True)
class Job:
    """Something to attend to: how, and how many seconds later again.  It returns how much it did.

    `begin` comes before it, once in the life of a process.
    """

    name: str
    every_seconds: float
    attend: Callable[[Connect, House], int]
    begin: Callable[[Connect], None] = lambda _: None


def _deliver(connect: Connect, house: House) -> int:
    return webhooks.deliver(connect, house.sealer)


JOBS: Final = (
    Job("wallets", 0.5, paying.attend, paying.begin),
    Job("webhooks", 1.0, _deliver),
    Job("interrupted rounds", 10.0, expiry.attend),
)


def attend_once(connect: Connect, house: House) -> dict[str, int]:
    """Does what is due of every job; how much was done of each.  Raises what goes wrong."""
    return {job.name: job.attend(connect, house) for job in JOBS}


def run(connect: Connect, house: House, stop: threading.Event) -> None:
    """Attends to every job until `stop` is set; what is under way then is finished, which takes a few seconds."""
    threads = [
        threading.Thread(target=_repeat, args=(job, connect, house, stop), name=job.name) for job in JOBS
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
        except ServiceError as problem:
            # The database is away, most likely.  Nothing is lost, and it is tried again.
            log.warning("job_interrupted", job=job.name, problem=problem.code.value)
        except Exception as unforeseen:
            # One job's fault must not end the others.  Its text may hold anything: only its kind and place are logged.
            log.error("job_failed", job=job.name, kind=type(unforeseen).__name__, at=places_of(unforeseen))
        if not done:  # where something was done there may be more
            # Scattered, so that many workers do not all ask at the same instant.
            stop.wait(job.every_seconds * (75 + secrets.randbelow(51)) / 100)
