"""Adding up what was settled: the log's entries in the order of their leaves, each once, out of the way of play.

One transaction takes the next leaves, adds what they tell to the sums, to what was dealt and to the evidence, and
moves on.  Whatever ends it before its commit, nothing of it has been; any number of workers may try at once.

What was paid is evidence in the order of the log.  What was dealt is in the order of the deals, up to the first round
that still waits for its player: players think longer over some hands than over others, so that those which are settled
first are no fair sample of the cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isinf
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.catalogue.paytables import PaytableVersion, Shelf
from casino_brag.db.pool import Connect
from casino_brag.db.records import as_jsonb
from casino_brag.rounds.house import House
from casino_brag.watch.alerts import Suspension, is_alert, raise_alert
from casino_brag.watch.dealt import Dealt
from casino_brag.watch.evidence import Evidence
from casino_brag.watch.expectation import Rules
from casino_brag.watch.settled import (
    REAL,
    Settled,
    batch_of,
    buckets,
    card_numbers,
    dealt_rows,
    grouped,
    pending,
)

LEAVES_AT_ONCE: Final = 20_000
"""Some 5,000 rounds: a round has three entries, or more where its money is in an operator's wallet."""
DEALS_AT_ONCE: Final = 10_000

LAG_SECONDS: Final = 300
"""A round is on record so long after the time at which it was opened, the calls to an operator's wallet included."""


def attend(connect: Connect, house: House, suspension: Suspension = Suspension.DRAIN) -> int:
    """Adds up the next of what was settled; `LEAVES_AT_ONCE` or more where there may be more to do."""
    with connect() as conn:
        return accumulate(conn, house.shelf, suspension)


def accumulate(
    conn: psycopg.Connection[Any],
    shelf: Shelf,
    suspension: Suspension,
    *,
    leaves: int = LEAVES_AT_ONCE,
    lag_seconds: int = LAG_SECONDS,
) -> int:
    """Adds up what the next leaves tell, at most so many, and raises the alerts that follow; how many leaves it were.

    `leaves` where more deals are to be taken.  None while another worker is at it.  `lag_seconds` is how long after a
    round was opened its deal can be taken.
    """
    with conn.transaction():
        if conn.execute("SELECT rtp_take(false)").fetchone() != (True,):
            return 0
        at = _Cursor.read(conn, leaves)
        settled = pending(conn, at.next_leaf, at.end)
        deals = _next_deals(conn, at, lag_seconds)
        if at.next_leaf == at.end and not deals:
            return 0
        watch = _Watch(conn, shelf)
        for version_id, of_version in grouped(settled, lambda one: one.paytable_version_id):
            watch.add_settled(version_id, of_version)
        for version_id, dealt in grouped(deals, lambda one: one.paytable_version_id):
            watch.add_deals(version_id, dealt)
        conn.execute(
            "SELECT rtp_accumulate(%s, %s, %s, %s, %s, %s, %s, %s)",
            [
                at.next_leaf,
                at.end,
                as_jsonb(watch.buckets),
                as_jsonb(watch.dealt),
                as_jsonb(_deal_numbers(settled)),
                deals[-1].opened_at if deals else at.dealt_at,
                deals[-1].round_id if deals else at.dealt_id,
                as_jsonb([file.row() for file in watch.files.values() if file.now is not file.before]),
            ],
        )
        for file in watch.files.values():
            if is_alert(file.before, file.now):
                raise_alert(conn, file.version, file.now, suspension)
    return leaves if len(deals) == DEALS_AT_ONCE else at.end - at.next_leaf


@dataclass(frozen=True, slots=True)
class _Cursor:
    """How far everything is, and before which leaf to stop."""

    next_leaf: int
    end: int
    dealt_at: datetime
    dealt_id: UUID

    @classmethod
    def read(cls, conn: psycopg.Connection[Any], leaves: int) -> _Cursor:
        with conn.cursor(row_factory=class_row(cls)) as cursor:
            found = cursor.execute(
                "SELECT next_leaf, least(next_leaf + %s, (SELECT coalesce(max(leaf_index) + 1, 0) FROM audit_leaf))"
                ' AS "end", dealt_at, dealt_id FROM rtp_cursor',
                [leaves],
            ).fetchone()
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class _Deal:
    """A round's cards in the order dealt, None where its dealer's were never shown."""

    opened_at: datetime
    round_id: UUID
    paytable_version_id: UUID
    is_real: bool
    cards: list[str] | None


def _next_deals(conn: psycopg.Connection[Any], at: _Cursor, lag_seconds: int) -> list[_Deal]:
    with conn.cursor(row_factory=class_row(_Deal)) as cursor:
        return cursor.execute(
            "SELECT * FROM rtp_dealt_next(%s, %s, %s, %s, %s)",
            [at.dealt_at, at.dealt_id, at.end, lag_seconds, DEALS_AT_ONCE],
        ).fetchall()


def _deal_numbers(settled: Sequence[Settled]) -> list[dict[str, Any]]:
    """The numbers of the deals by day, as rows of ``rtp_deals``."""
    return [
        {"day": day, "deal_indexes": [one.deal_index for one in of_day]}
        for day, of_day in grouped((one for one in settled if one.is_new), lambda one: one.day)
    ]


@dataclass(frozen=True, slots=True)
class File:
    """The evidence against a version: before, and with what has been added since.

    A day is counted from the one on which the first round was opened that it begins with; earlier deals are no part.
    """

    version: PaytableVersion
    begun_at: datetime | None
    before: Evidence
    now: Evidence

    @classmethod
    def read(cls, conn: psycopg.Connection[Any], version: PaytableVersion) -> File:
        row = conn.execute(
            "SELECT begun_at, state FROM rtp_evidence WHERE paytable_version_id = %s", [version.version_id]
        ).fetchone()
        begun_at, found = (None, Evidence.none()) if row is None else (row[0], Evidence.from_document(row[1]))
        return cls(version, begun_at, found, found)

    def after_settled(self, settled: Sequence[Settled]) -> File:
        """With what these rounds paid: those that were real play and no test.

        A round counts once it is settled; that it is voided afterwards takes no evidence back.  A day's last rounds
        may have their leaves after the next day's first, and then count as the next day's.
        """
        real = [one for one in settled if one.is_new and one.play == REAL]
        if not real:
            return self
        begun_at = self.begun_at or min(one.opened_at for one in real)
        evidence, paytable = self.now, self.version.paytable
        day = max((bets.day for bets in evidence.bets.values()), default=0)
        days = []
        for one in real:
            day = max(day, _days(begun_at, one.settled_at))
            days.append(day)
        for number, of_day in grouped(zip(days, real, strict=True), lambda numbered: numbered[0]):
            batch = batch_of(paytable, [one for _, one in of_day])
            evidence = evidence.after_payouts(Rules.of(paytable), batch, number)
        return replace(self, begun_at=begun_at, now=evidence)

    def after_deals(self, deals: Sequence[_Deal]) -> File:
        """With these deals, as far as they are of real play that was no test and of its time."""
        begun_at, evidence, rules = self.begun_at, self.now, Rules.of(self.version.paytable)
        if begun_at is None:
            return self
        of_real = [(one.cards, one.opened_at) for one in deals if one.is_real and one.opened_at >= begun_at]
        for day, of_day in grouped(of_real, lambda dealt: _days(begun_at, dealt[1])):
            cards = [cards for cards, _ in of_day if cards is not None]
            if cards:
                evidence = evidence.after_deals(rules, Dealt.of(rules, card_numbers(cards)), day)
        return replace(self, now=evidence)

    def row(self) -> dict[str, Any]:
        """The row of ``rtp_evidence``."""
        log_e = self.now.log_e
        return {
            "paytable_version_id": self.version.version_id,
            "begun_at": self.begun_at,
            "rounds": self.now.rounds,
            "log_e": "Infinity" if isinf(log_e) else log_e,  # JSON has no number for it
            "level": self.now.level.value,
            "state": self.now.document(),
        }


def _days(begun_at: datetime, moment: datetime) -> int:
    return (moment.astimezone(UTC).date() - begun_at.astimezone(UTC).date()).days


class _Watch:
    """What some leaves and deals come to: rows to be added, and the evidence by version."""

    def __init__(self, conn: psycopg.Connection[Any], shelf: Shelf) -> None:
        self._conn, self._shelf = conn, shelf
        self.buckets: list[dict[str, Any]] = []
        self.dealt: list[dict[str, Any]] = []
        self.files: dict[UUID, File] = {}

    def add_settled(self, version_id: UUID, settled: Sequence[Settled]) -> None:
        file = self._file(version_id)
        named, paytable = {"paytable_version_id": version_id}, file.version.paytable
        batch = batch_of(paytable, settled)
        self.buckets += [named | row for row in buckets(paytable, settled, batch)]
        self.dealt += [named | row for row in dealt_rows(paytable, settled, batch)]
        self.files[version_id] = file.after_settled(settled)

    def add_deals(self, version_id: UUID, deals: Sequence[_Deal]) -> None:
        self.files[version_id] = self._file(version_id).after_deals(deals)

    def _file(self, version_id: UUID) -> File:
        if version_id not in self.files:
            version = self._shelf.version(self._conn, version_id)
            self.files[version_id] = File.read(self._conn, version)
        return self.files[version_id]
