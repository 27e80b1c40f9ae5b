"""Large wins and wagers, of one round or of a player's day: found among the ordered entries, out of the way of play.

A win is what a round paid beyond its stakes.  A player's day is by UTC, of rounds for real money that were settled in
it; wins are added up, and losses not taken off.  A round that is voided afterwards stays counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from casino_brag.audit import Entry, EntryType
from casino_brag.db.clock import clock, rfc3339
from casino_brag.db.pool import Connect
from casino_brag.db.records import as_jsonb
from casino_brag.errors import SetUpError
from casino_brag.wallet.currency import exponent

VARIABLE: Final = "CASINO_BRAG_LARGE_AMOUNTS"
ACTOR: Final = "system:large-amounts"
BATCH: Final = 5_000
"""How many entries are gone through at a time."""

Day: TypeAlias = tuple[date, UUID, str]
"""A day of a player's in a currency."""

_LIMIT: Final = re.compile(r"(?P<currency>[A-Z]{3})=(?P<single>[1-9]\d{0,15})/(?P<day>[1-9]\d{0,15})")


@dataclass(frozen=True, slots=True)
class Limit:
    """From which amount on, in minor units, one round's and a player's day's is large."""

    single_minor: int
    day_minor: int

    @classmethod
    def default(cls, currency: str) -> Limit:
        """5,000 and 10,000 of the currency's main unit; of one without decimals, hundred times that.

        What has more than four decimals is taken to be worth more, as if it had four.

        >>> [Limit.default(code).single_minor for code in ("JPY", "GBP", "KWD", "XBT")]
        [500000, 500000, 5000000, 50000000]
        """
        decimals = min(max(exponent(currency) or 0, 2), 4)
        return cls(5_000 * 10**decimals, 10_000 * 10**decimals)


@dataclass(frozen=True, slots=True)
class LargeAmounts:
    """The limits that were set, by currency; others have `Limit.default`."""

    limits: Mapping[str, Limit] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> LargeAmounts:
        """Limits as ``GBP=500000/1000000,JPY=…/…``: a round's and a day's, minor units.

        >>> LargeAmounts.parse("GBP=100/250").of("GBP")
        Limit(single_minor=100, day_minor=250)
        """
        limits: dict[str, Limit] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            found = _LIMIT.fullmatch(part)
            if found is None or exponent(found["currency"]) is None or found["currency"] in limits:
                raise SetUpError(
                    f"{VARIABLE} is a list of CURRENCY=ROUND/DAY in minor units, each currency once, as"
                    f" GBP=500000/1000000; {part!r} will not do"
                )
            limits[found["currency"]] = Limit(int(found["single"]), int(found["day"]))
        return cls(limits)

    def of(self, currency: str) -> Limit:
        """What is large in a currency."""
        return self.limits.get(currency) or Limit.default(currency)


@dataclass(frozen=True, slots=True)
class Settled:
    """A settled round for real money, as its entry and its record tell it."""

    settled_at: datetime
    operator_id: UUID
    player_id: UUID
    session_id: UUID
    round_id: UUID
    currency: str
    staked_minor: int
    payout_minor: int

    @property
    def won_minor(self) -> int:
        """What it paid beyond its stakes; 0 where it did not."""
        return max(0, self.payout_minor - self.staked_minor)

    @property
    def day(self) -> Day:
        """The player's day that it counts in."""
        return self.settled_at.astimezone(UTC).date(), self.player_id, self.currency


@dataclass(frozen=True, slots=True)
class Sums:
    """What a player's day has come to."""

    staked_minor: int = 0
    won_minor: int = 0


def attend(connect: Connect, amounts: LargeAmounts) -> int:
    """Goes on through the entries that were ordered, `BATCH` of them, and puts on record what is large among them; how
    many entries were gone through.

    Where two do it at once, one goes on and the other finds it done: nothing is left out, and nothing told twice.
    """
    with connect() as conn:
        return _go_on(conn, amounts)


def _go_on(conn: psycopg.Connection[Any], amounts: LargeAmounts) -> int:
    row = conn.execute(
        "SELECT next_leaf, least(next_leaf + %s, (SELECT coalesce(max(leaf_index) + 1, 0) FROM audit_leaf))"
        " FROM large_amounts_done",
        [BATCH],
    ).fetchone()
    assert row is not None
    first, end = row
    if end <= first:
        return 0
    settled = _settled(conn, first, end)
    days = _days(conn, {found.day for found in settled})
    entries = list(_large(settled, days, amounts, clock(conn)))
    rows = [
        {"day": day, "player_id": player_id, "currency": currency, **asdict(sums)}
        for (day, player_id, currency), sums in days.items()
    ]
    kept = conn.execute(
        "SELECT large_amounts_keep(%s, %s, %s, %s)",
        [first, end, as_jsonb(rows), [entry.text() for entry in entries]],
    ).fetchone()
    assert kept is not None
    return end - first if kept[0] else 0


def _settled(conn: psycopg.Connection[Any], first: int, end: int) -> list[Settled]:
    with conn.transaction(), conn.cursor(row_factory=class_row(Settled)) as cursor:
        # Planned for these few leaves of a log that may have thousands of millions: each by its key.
        cursor.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        cursor.execute("SET LOCAL enable_hashjoin = off")
        cursor.execute("SET LOCAL enable_mergejoin = off")
        return cursor.execute(
            """
            SELECT e.occurred_at AS settled_at, r.operator_id, r.player_id, e.session_id, r.round_id, r.currency,
                r.total_staked_minor AS staked_minor, r.total_payout_minor AS payout_minor
            FROM audit_leaf AS l
            JOIN audit_entry AS e ON e.entry_id = l.entry_id AND e.type = 'round.settled'
            JOIN round AS r ON r.round_id = e.round_id AND r.mode = 'real'
            JOIN session AS s ON s.session_id = r.session_id AND NOT s.test
            WHERE l.leaf_index >= %s AND l.leaf_index < %s ORDER BY l.leaf_index
            """,
            [first, end],
        ).fetchall()


def _days(conn: psycopg.Connection[Any], wanted: set[Day]) -> dict[Day, Sums]:
    """What these days had come to before."""
    rows = conn.execute(
        "SELECT day, player_id, currency, staked_minor, won_minor"
        " FROM unnest(%s::date[], %s::uuid[], %s::text[]) AS wanted (day, player_id, currency)"
        " JOIN player_day USING (day, player_id, currency)",
        [list(column) for column in zip(*wanted, strict=True)] if wanted else [[], [], []],
    ).fetchall()
    return {day: Sums() for day in wanted} | {
        (day, player_id, currency): Sums(int(staked), int(won))
        for day, player_id, currency, staked, won in rows
    }


def _large(
    settled: list[Settled], days: dict[Day, Sums], amounts: LargeAmounts, now: datetime
) -> Iterator[Entry]:
    """The entries of what is large; `days` goes on with the rounds."""
    for found in settled:
        limit, before = amounts.of(found.currency), days[found.day]
        after = days[found.day] = Sums(
            before.staked_minor + found.staked_minor, before.won_minor + found.won_minor
        )
        for kind, amount_minor in (
            (EntryType.ROUND_LARGE_WAGER, found.staked_minor),
            (EntryType.ROUND_LARGE_WIN, found.won_minor),
        ):
            if amount_minor >= limit.single_minor:
                said = {"amount_minor": amount_minor, "limit_minor": limit.single_minor}
                yield _entry(kind, found, now, payload=said)
        for kind, was_minor, is_minor in (
            (EntryType.PLAYER_LARGE_WAGER, before.staked_minor, after.staked_minor),
            (EntryType.PLAYER_LARGE_WIN, before.won_minor, after.won_minor),
        ):
            if was_minor < limit.day_minor <= is_minor:
                yield _entry(
                    kind,
                    found,
                    now,
                    before={"amount_minor": was_minor},
                    after={"amount_minor": is_minor},
                    payload={"day": found.day[0].isoformat(), "limit_minor": limit.day_minor},
                )


def _entry(
    kind: EntryType,
    found: Settled,
    now: datetime,
    *,
    payload: Mapping[str, Any],
    before: Mapping[str, int] | None = None,
    after: Mapping[str, int] | None = None,
) -> Entry:
    return Entry(
        type=kind,
        occurred_at=now,
        actor=ACTOR,
        operator_id=found.operator_id,
        player_id=found.player_id,
        session_id=found.session_id,
        round_id=found.round_id,
        before=before,
        after=after,
        payload={"currency": found.currency, "settled_at": rfc3339(found.settled_at), **payload},
    )
