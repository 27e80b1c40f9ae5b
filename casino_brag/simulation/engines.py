"""Where chunks are played: in this process, in processes of this machine, or on a Dask cluster.

An engine is given a plan and the numbers of some chunks, and yields each chunk's tally once, in whatever order they
are done.  The plan travels as text and is read again by the very checks that made it, so a worker of another version
refuses it.  Closing an engine ends its work: what it had begun is dropped.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Final

from casino_brag.errors import SetUpError
from casino_brag.simulation.plan import VERSION, Plan
from casino_brag.simulation.tally import Tally

Tallies = Generator[tuple[int, Tally]]
"""Chunks as they are done, each with its tally."""

STALL_SECONDS: Final = 300
"""A chunk is seconds of work on the slowest machine; when none is done for so long, none will be."""

CONNECT_SECONDS: Final = 15
"""How long a Dask scheduler may take to answer, and then to find a worker."""

_QUEUED_A_WORKER: Final = 2
"""Chunks handed out for each worker: one to play and one to go on with."""

_QUEUED_MAX: Final = 4096


def local(plan: Plan, chunks: Sequence[int], workers: int) -> Tallies:
    """Plays chunks on this machine: in this process when there is one worker, in so many others when more.

    `SetUpError` when a worker process is ended from outside.
    """
    if workers == 1:
        for chunk in chunks:
            yield chunk, plan.play(chunk)
        return
    # A fresh interpreter for each: a fork would copy the locks of threads, such as numba's, that it does not copy.
    context = multiprocessing.get_context("spawn")
    held_by_workers, lifeline = context.Pipe(duplex=False)
    with (
        held_by_workers,
        ProcessPoolExecutor(workers, context, _end_with, (held_by_workers,)) as executor,
        lifeline,
    ):
        try:
            yield from _play_all(executor, plan, chunks, lambda: workers)
        except BrokenExecutor as broken:
            raise SetUpError(
                "A worker process was ended from outside, perhaps for want of memory: "
                "go on with fewer --workers."
            ) from broken


def dask(plan: Plan, chunks: Sequence[int], address: str) -> Tallies:
    """Plays chunks on the Dask cluster whose scheduler listens at ``host:port``.

    What a lost worker had in hand is played again by another.  Scheduler and workers run what they are sent, so
    they belong on a network of one's own.  `SetUpError` when the cluster cannot be reached or has no worker, runs
    another version of casino-brag, or fails at a chunk.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as missing:
        raise SetUpError(
            "Dask is not installed here: in a checkout, .venv/bin/pip install -e '.[cluster]'."
        ) from missing
    # What it would log is raised here.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = Client(f"tcp://{address}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as failure:
        raise SetUpError(f"No Dask scheduler answers at {address}: {failure}") from failure
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as none:
            raise SetUpError(f"The Dask scheduler at {address} has no worker: start some.") from none
        try:
            executor = client.get_executor(pure=False)
            yield from _play_all(executor, plan, chunks, lambda: sum(client.nthreads().values()))
        except SetUpError:
            raise
        except (CancelledError, OSError) as lost:
            raise SetUpError(f"The Dask scheduler at {address} was lost.") from lost
        except Exception as failure:
            raise SetUpError(
                f"The Dask cluster at {address} failed: {failure} "
                f"(its scheduler and its workers need casino-brag {VERSION}, as it is here)"
            ) from failure


def _play_all(executor: Executor, plan: Plan, chunks: Sequence[int], workers: Callable[[], int]) -> Tallies:
    """Hands chunks out a few at a time, and what comes back on."""
    text = json.dumps(plan.document())
    waiting = iter(chunks)
    playing: dict[Future[dict[str, Any]], int] = {}
    while True:
        room = max(min(_QUEUED_A_WORKER * workers(), _QUEUED_MAX), 1) - len(playing)
        with _interrupts_held():
            playing |= {executor.submit(_play, text, chunk): chunk for chunk in islice(waiting, max(room, 0))}
        if not playing:
            return
        done, _ = wait(playing, timeout=STALL_SECONDS, return_when=FIRST_COMPLETED)
        if not done:
            raise SetUpError(f"No chunk was done for {STALL_SECONDS} seconds: the workers hang.")
        for future in done:
            yield playing.pop(future), Tally.from_document(future.result())


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keeps Ctrl-C for later.  A process that is started meanwhile keeps it off for good: a terminal interrupts
    workers too, and it is this process that ends them.
    """
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _end_with(lifeline: Connection) -> None:
    """Ends this worker process, whatever it does, when the other end is closed: on purpose, or because the process
    that started it was killed.
    """

    def wait_for_end() -> None:
        with suppress(EOFError):
            lifeline.recv()
        os._exit(1)

    Thread(target=wait_for_end, daemon=True).start()


def _play(plan: str, chunk: int) -> dict[str, Any]:
    """What a worker does."""
    return _read(plan).play(chunk).document()


@lru_cache(maxsize=1)
def _read(plan: str) -> Plan:
    return Plan.from_document(json.loads(plan))
