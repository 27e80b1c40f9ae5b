"""Replay: the rounds of a period derived anew from their records, by several processes, and put on record.

Each process has a connection of its own that cannot write, so that a standby can be read as well.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import errors as pg

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock
from casino_brag.errors import SetUpError
from casino_brag.replay.deriving import differences
from casino_brag.replay.progress import Plan
from casino_brag.replay.reading import Chunk, read_chunk, read_rules, reading, strays
from casino_brag.replay.records import Rules
from casino_brag.replay.report import Report, Tally

ATTEMPTS_MAX: Final = 5
"""How often a chunk is read where a standby cancels that, because what it reads is being cleaned up."""

STALL_SECONDS: Final = 3_600
"""A chunk is seconds of work; when none is done for so long, none will be."""

TOLD_MAX: Final = 10
"""So many differences are told in the entry about a replay; its digest stands for the rest."""


def replayed(url: str, plan: Plan, numbers: Sequence[int], workers: int) -> Generator[tuple[int, Tally]]:
    """Replays chunks of a plan, each in one of so many processes at most.

    Yields each chunk's tally once, in whatever order they are done.  Closing it ends the work.  `SetUpError` when the
    database cannot be used, or a worker is ended from outside.
    """
    waiting = iter(numbers)
    with _worker_pipes(url, min(workers, len(numbers))) as pipes:
        in_hand: dict[Connection, int] = {}
        for pipe, number in zip(pipes, waiting, strict=False):
            pipe.send(plan.chunks[number])
            in_hand[pipe] = number
        while in_hand:
            ready = wait(list(in_hand), timeout=STALL_SECONDS)
            if not ready:
                raise SetUpError(f"No chunk was done for {STALL_SECONDS} seconds: the workers hang.")
            for pipe in [pipe for pipe in pipes if pipe in ready]:
                done, tally = in_hand.pop(pipe), _answer(pipe)
                if (following := next(waiting, None)) is not None:
                    pipe.send(plan.chunks[following])
                    in_hand[pipe] = following
                yield done, tally


def beside(url: str, plan: Plan) -> Tally:
    """What is on record of rounds that do not exist."""
    with reading(url) as conn:
        return Tally.of([], strays(conn, plan.since, plan.until))


def record(conn: psycopg.Connection[Any], report: Report, *, actor: str) -> None:
    """Puts on record that a period was replayed and what came of it; `SetUpError` when that cannot be done."""
    named = [difference._asdict() for difference in report.tally.named[:TOLD_MAX]]
    document = report.document()
    entry = Entry(
        type=EntryType.REPLAY_DIFFERED if report.differing else EntryType.REPLAY_COMPLETED,
        occurred_at=clock(conn),
        actor=actor,
        payload={
            "from": document["from"],
            "to": document["to"],
            "rounds": document["rounds"],
            "differing": report.differing,
            "report_digest": report.digest(),
        }
        | ({"differences": named} if named else {}),
    )
    try:
        conn.execute("SELECT replay_record(%s)", [entry.text()])
    except psycopg.Error as failure:
        raise SetUpError(f"The outcome could not be put on record: {str(failure).strip()}") from failure


def recordable(conn: psycopg.Connection[Any]) -> bool:
    """Whether something can be put on record here: not on a standby, nor by somebody who may only read."""
    row = conn.execute(
        "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'"
        " AND has_function_privilege('replay_record(text)', 'EXECUTE')"
    ).fetchone()
    return row is not None and bool(row[0])


def _tally(conn: psycopg.Connection[Any], chunk: Chunk, rules: Mapping[UUID, Rules]) -> Tally:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        tally = Tally()
        try:
            for rows in read_chunk(conn, chunk):
                tally.count(rows, differences(rows, rules))
        except pg.SerializationFailure:
            if attempt == ATTEMPTS_MAX:
                raise
        else:
            break
    return tally


def _answer(pipe: Connection) -> Tally:
    try:
        answer = pipe.recv()
    except (EOFError, ConnectionError) as ended:
        raise SetUpError(
            "A worker process was ended from outside, perhaps for want of memory: go on with fewer --workers."
        ) from ended
    if isinstance(answer, Tally):
        return answer
    raise SetUpError(answer)


@contextmanager
def _worker_pipes(url: str, workers: int) -> Iterator[list[Connection]]:
    """Pipes to worker processes, which have ended when the block is left."""
    # A fresh interpreter for each: a fork would copy locks of threads that it does not copy.
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    try:
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, url), daemon=True)
            # A terminal interrupts workers too, and it is this process that ends them.
            held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, held)
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        yield pipes
    finally:
        for process in processes:
            process.terminate()  # it only reads
        for process in processes:
            process.join()
        for pipe in pipes:
            pipe.close()


def _serve(pipe: Connection, url: str) -> None:
    """What a worker does, until whoever asks has ended: a chunk is answered by its tally, or by what is wrong."""
    gc.disable()  # records refer to nothing that refers back, and looking for what does takes a fifth of the time
    with suppress(EOFError, ConnectionError):
        try:
            with reading(url) as conn:
                rules = read_rules(conn)
                while True:
                    pipe.send(_tally(conn, pipe.recv(), rules))
        except SetUpError as stopped:
            pipe.send(str(stopped))
