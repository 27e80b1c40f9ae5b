"""How far a replay has come, and where it goes on after a stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self
from uuid import UUID

import psycopg

from casino_brag.db.clock import clock
from casino_brag.errors import SetUpError
from casino_brag.replay.reading import Chunk, Key, chunks_of, reading
from casino_brag.replay.records import Difference
from casino_brag.replay.report import NAMED_MAX, Report, Tally
from casino_brag.statefile import StateFile

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is replayed: the rounds of a database opened from `since` until before `until`, in chunks."""

    database: str
    since: datetime
    until: datetime
    chunks: Sequence[Chunk]

    @classmethod
    def of(cls, url: str, since: datetime, until: datetime | None) -> Self:
        """The plan for what is there now, until now if nothing else is said; `SetUpError` for a time to come."""
        with reading(url) as conn:
            now = clock(conn)
            if until is not None and until > now:
                raise SetUpError("The period ends in the future: leave --to out to replay until now.")
            until = until or now
            return cls(database_of(conn), since, until, chunks_of(conn, since, until))


def database_of(conn: psycopg.Connection[Any]) -> str:
    """What tells a database from others, and is the same on its standbys."""
    row = conn.execute("SELECT system_identifier, current_database() FROM pg_control_system()").fetchone()
    assert row is not None
    return f"{row[0]}/{row[1]}"


class Progress:
    """What has been replayed of a plan: which chunks, and their tallies as one.

    A chunk is added once.  The differences that are named are the first in the order of the rounds, in whatever order
    the chunks are done.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._tally = Tally()
        self._done: set[int] = set()
        self._named: list[tuple[int, Difference]] = []

    def remaining(self) -> list[int]:
        """The chunks that are not done, ascending."""
        return [number for number in range(len(self.plan.chunks)) if number not in self._done]

    def add(self, number: int, tally: Tally) -> None:
        """Adds a chunk that was not added before."""
        assert number not in self._done, f"chunk {number} is added once"
        self._done.add(number)
        self._tally.add(tally)
        self._named += [(number, difference) for difference in tally.named]
        self._named = sorted(self._named, key=lambda named: named[0])[:NAMED_MAX]

    def report(self, beside: Tally) -> Report:
        """What was found in the rounds, and then beside them."""
        tally = Tally(named=[difference for _, difference in self._named])
        tally.add(self._tally)
        tally.add(beside)
        tally.named = (tally.named + beside.named)[:NAMED_MAX]
        return Report(self.plan.since, self.plan.until, tally)

    def document(self) -> dict[str, Any]:
        """The progress as plain data, ready for JSON."""
        plan = self.plan
        return {
            "format": FORMAT,
            "database": plan.database,
            "from": plan.since.isoformat(),
            "to": plan.until.isoformat(),
            "chunks": [
                [chunk.first.opened_at.isoformat(), str(chunk.first.round_id)] for chunk in plan.chunks
            ],
            "done": sorted(self._done),
            "named": [[number, *difference] for number, difference in self._named],
            "tally": self._tally.document(),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The progress that :meth:`document` wrote; ValueError for anything else."""
        try:
            if document["format"] != FORMAT:
                raise ValueError("another version of the program wrote it")
            since, until = (datetime.fromisoformat(document[name]) for name in ("from", "to"))
            keys = [Key(datetime.fromisoformat(at), UUID(round_id)) for at, round_id in document["chunks"]]
            ends = [*keys[1:], Key(until, UUID(int=0))]
            chunks = [Chunk(*bounds) for bounds in zip(keys, ends, strict=True)] if keys else []
            progress = cls(Plan(document["database"], since, until, chunks))
            progress._done = set(document["done"])
            progress._named = [(number, Difference(*rest)) for number, *rest in document["named"]]
            progress._tally = Tally.from_document(document["tally"])
        except (KeyError, TypeError) as unreadable:
            raise ValueError(f"it is no state of a replay: {unreadable!r}") from unreadable
        return progress


def begin(
    url: str, since: datetime | None, until: datetime | None, keeper: StateFile[Progress] | None
) -> Progress:
    """Where to begin: from nothing, or from what the state file has of this very replay.

    Without a time the state's own holds; without a state, `until` is now.  `SetUpError` for a state of another period
    or database.
    """
    saved = keeper.load() if keeper else None
    if keeper is None or saved is None:
        if since is None:
            raise SetUpError("There is no state to go on from: say --from when the period begins.")
        return Progress(Plan.of(url, since, until))
    with reading(url) as conn:
        if saved.plan.database != database_of(conn):
            raise SetUpError(f"{keeper.path} belongs to another database: name another --state.")
    if since not in (None, saved.plan.since) or until not in (None, saved.plan.until):
        period = f"{saved.plan.since.isoformat()} to {saved.plan.until.isoformat()}"
        raise SetUpError(f"{keeper.path} belongs to another period, {period}: name another --state.")
    return saved
