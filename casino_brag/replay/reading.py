"""Rounds of a time, read chunk by chunk with everything that is recorded of them.  Nothing is written.

A chunk is one statement, so that all of it is seen at one instant; on a standby no snapshot is held for longer than
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
import psycopg
from psycopg.types.json import set_json_loads

from casino_brag.errors import SetUpError
from casino_brag.ids import least_id_at
from casino_brag.replay.records import Difference, Row, Rules

CHUNK_ROUNDS: Final = 10_000

CONNECT_SECONDS: Final = 5
STATEMENT_MINUTES: Final = 30
"""The longest that a statement may take; one that reads a chunk takes about a second."""

BATCH_ROUNDS: Final = 500
"""So many rounds of a chunk are looked at together."""

CLOCKS_APART: Final = timedelta(days=1)
"""How far an entry's identifier, made by the clock of whoever wrote it, may be from the database's time."""

_SETTINGS: Final = " ".join(
    f"-c {setting}"
    for setting in (
        "default_transaction_read_only=on",
        f"statement_timeout={STATEMENT_MINUTES}min",
        "timezone=UTC",
        "jit=off",
        "max_parallel_workers_per_gather=0",
    )
)
_FIRST: Final = UUID(int=0)


class Key(NamedTuple):
    """A place among rounds in the order of their time."""

    opened_at: datetime
    round_id: UUID


class Chunk(NamedTuple):
    """Rounds from a place until before another."""

    first: Key
    end: Key


@contextmanager
def reading(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that cannot write; `SetUpError` when the database cannot be used, or fails on the way."""
    try:
        with psycopg.connect(
            url, autocommit=True, connect_timeout=CONNECT_SECONDS, options=_SETTINGS
        ) as conn:
            yield conn
    except psycopg.Error as failure:
        raise SetUpError(f"The database cannot be used: {str(failure).strip()}") from failure


def chunks_of(conn: psycopg.Connection[Any], since: datetime, until: datetime) -> list[Chunk]:
    """The rounds opened from `since` until before `until`, cut into chunks; none for no rounds."""
    rows = conn.execute(
        "SELECT opened_at, round_id FROM ("
        " SELECT opened_at, round_id, row_number() OVER (ORDER BY opened_at, round_id) - 1 AS place FROM round"
        " WHERE opened_at >= %s AND opened_at < %s) AS ordered WHERE place %% %s = 0 ORDER BY place",
        [since, until, CHUNK_ROUNDS],
    ).fetchall()
    keys = [Key(since, _FIRST), *(Key(*row) for row in rows[1:]), Key(until, _FIRST)]
    return [Chunk(*bounds) for bounds in pairwise(keys)] if rows else []


def read_chunk(conn: psycopg.Connection[Any], chunk: Chunk) -> Iterator[list[Row]]:
    """The rounds of a chunk in their order, some hundreds at a time."""
    bounds: dict[str, Any] = {
        "first_at": chunk.first.opened_at,
        "first_id": chunk.first.round_id,
        "end_at": chunk.end.opened_at,
        "end_id": chunk.end.round_id,
    }
    with conn.transaction(), conn.cursor(binary=True) as cursor:
        set_json_loads(_json, cursor)
        # Each round is looked up by its keys: what one statement needs is a small part of any table.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_hashjoin = off")
        cursor.execute("SET LOCAL enable_mergejoin = off")
        span = cursor.execute(_SPAN, bounds).fetchone()
        assert span is not None
        began, ended = span
        if began is None:
            return
        bounds["first_entry"] = least_id_at(began - CLOCKS_APART)
        bounds["end_entry"] = least_id_at(ended + CLOCKS_APART + timedelta(milliseconds=1))
        cursor.execute(_ROUNDS, bounds, prepare=False)
        while batch := cursor.fetchmany(BATCH_ROUNDS):
            yield list(map(Row.of, batch))


def read_rules(conn: psycopg.Connection[Any]) -> dict[UUID, Rules]:
    """All paytable versions as they are stored."""
    found = conn.execute("SELECT version_id, game, version, digest, document FROM paytable_version")
    return {version_id: Rules.of(*row) for version_id, *row in found}


def read_rules_of(conn: psycopg.Connection[Any], version_id: UUID) -> Rules:
    """One paytable version that a round is of, as it is stored."""
    found = conn.execute(
        "SELECT game, version, digest, document FROM paytable_version WHERE version_id = %s", [version_id]
    ).fetchone()
    assert found is not None, "a round's version is held by a foreign key"
    return Rules.of(*found)


def strays(conn: psycopg.Connection[Any], since: datetime, until: datetime) -> Iterator[Difference]:
    """What was recorded in this time of rounds that do not exist, or of steps that these took at another time.

    So a round that was moved out of the time is found by its entries, and an entry that no chunk sees by itself.
    """
    period = {"since": since, "until": until, "apart": CLOCKS_APART}
    for what, round_id, recorded, derived in conn.execute(_STRAYS, period):
        yield Difference.of(round_id, what, recorded, derived)


def _json(text: str | bytes) -> Any:
    """A value, or its text where that is none that anybody wrote: a number beyond all doubles, 1,025 levels."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text if isinstance(text, str) else text.decode()


_WITHIN: Final = (
    "(r.opened_at, r.round_id) >= (%(first_at)s::timestamptz, %(first_id)s::uuid)"
    " AND (r.opened_at, r.round_id) < (%(end_at)s::timestamptz, %(end_id)s::uuid)"
)

# When the entries about a chunk's rounds were written, so that other months' parts of the log are not looked at.
_SPAN: Final = f"""
    SELECT min(r.opened_at), max(greatest(r.opened_at, r.settled_at, v.voided_at))
    FROM round AS r LEFT JOIN voided_round AS v USING (round_id) WHERE {_WITHIN}
"""  # noqa: S608 - constants

_ROUNDS: Final = f"""
    SELECT r.round_id, r.state, r.mode, r.currency, r.paytable_version_id, r.rng_digest, r.ante_minor,
        r.pair_bonus_minor, r.decision, r.client_seeds, r.client_seed, c.number, c.rng_digest, c.seed, b.value,
        v.policy, told.opened_entries, told.settled_entries, told.voided_entries,
        r.game, r.payout_max_minor, r.opened_at, r.settled_at, v.voided_at, r.player_cards, r.dealer_cards, r.result,
        r.play_minor, r.total_staked_minor, r.total_payout_minor, r.settlement,
        c.rules_digest, c.value, c.previous,
        (c.player_id, c.game, c.mode, c.paytable_version_id) = (r.player_id, r.game, r.mode, r.paytable_version_id),
        CASE WHEN c.round_id IS NOT NULL THEN c.seed IS NOT NULL END,
        v.refund_minor, v.compensation_minor,
        CASE WHEN (a.player_id, l.operator_id, l.currency, l.mode)
                IS DISTINCT FROM (r.player_id, r.operator_id, r.currency, r.mode)
            THEN concat_ws(' ', 'player', a.player_id, 'operator', l.operator_id, l.currency, l.mode) END,
        told.of_others, asked.of_others, moved.transfers,
        told.opened_payloads, told.settled_payloads, told.voided_payloads, asked.debited_minor, asked.credits
    FROM round AS r
    LEFT JOIN commitment AS c ON c.round_id = r.round_id
    LEFT JOIN commitment AS b ON (b.player_id, b.game, b.mode, b.number) = (c.player_id, c.game, c.mode, c.number - 1)
    LEFT JOIN voided_round AS v ON v.round_id = r.round_id
    LEFT JOIN account AS a ON a.account_id = r.account_id
    LEFT JOIN ledger AS l ON l.ledger_id = a.ledger_id
    LEFT JOIN account AS escrow ON (escrow.ledger_id, escrow.kind) = (a.ledger_id, 'escrow')
    LEFT JOIN account AS house ON (house.ledger_id, house.kind) = (a.ledger_id, 'house')
    CROSS JOIN LATERAL (
        SELECT array_agg(concat_ws(' ', t.kind, t.amount_minor,
            CASE t.from_account WHEN r.account_id THEN 'player' WHEN escrow.account_id THEN 'escrow'
                WHEN house.account_id THEN 'house' ELSE t.from_account::text END, 'to',
            CASE t.to_account WHEN r.account_id THEN 'player' WHEN escrow.account_id THEN 'escrow'
                WHEN house.account_id THEN 'house' ELSE t.to_account::text END,
            CASE WHEN t.made_at IS DISTINCT FROM CASE
                    WHEN t.kind IN ('ante', 'pair_bonus') THEN r.opened_at
                    WHEN t.kind IN ('refund', 'compensation') THEN v.voided_at ELSE r.settled_at END
                THEN concat('at ', t.made_at) END) ORDER BY t.kind) AS transfers
        FROM transfer AS t WHERE t.cause_id = r.round_id
    ) AS moved
    CROSS JOIN LATERAL (
        SELECT array_agg(concat_ws(' ', e.type, 'player', e.player_id, 'operator', e.operator_id, 'session',
                e.session_id)) FILTER (WHERE (e.player_id, e.operator_id) IS DISTINCT FROM (r.player_id, r.operator_id)
                    -- (It may be decided by another session than it was opened by.)
                    OR e.type <> 'round.settled' AND e.session_id IS DISTINCT FROM r.session_id) AS of_others,
            array_agg(e.occurred_at) FILTER (WHERE e.type = 'round.opened') AS opened_entries,
            array_agg(e.payload) FILTER (WHERE e.type = 'round.opened') AS opened_payloads,
            array_agg(e.occurred_at) FILTER (WHERE e.type = 'round.settled') AS settled_entries,
            array_agg(e.payload) FILTER (WHERE e.type = 'round.settled') AS settled_payloads,
            array_agg(e.occurred_at) FILTER (WHERE e.type = 'round.voided') AS voided_entries,
            array_agg(e.payload) FILTER (WHERE e.type = 'round.voided') AS voided_payloads
        FROM audit_entry AS e
        WHERE e.round_id = r.round_id AND e.entry_id >= %(first_entry)s::uuid AND e.entry_id < %(end_entry)s::uuid
            AND e.type IN ('round.opened', 'round.settled', 'round.voided')
    ) AS told
    CROSS JOIN LATERAL (
        SELECT array_agg(concat_ws(' ', w.purpose, 'player', w.player_id, 'operator', w.operator_id, 'account',
                w.account_id)) FILTER (WHERE (w.player_id, w.operator_id, w.account_id)
                    IS DISTINCT FROM (r.player_id, r.operator_id, r.account_id)) AS of_others,
            sum(w.amount_minor) FILTER (WHERE w.purpose = 'stake' AND w.state = 'done')::bigint AS debited_minor,
            jsonb_object_agg(w.purpose, w.amount_minor) FILTER (WHERE w.purpose <> 'stake') AS credits
        FROM wallet_transaction AS w WHERE w.round_id = r.round_id
    ) AS asked
    WHERE {_WITHIN} ORDER BY r.opened_at, r.round_id
"""  # noqa: S608 - constants

_STRAYS: Final = """
    SELECT 'no_round.transfer' AS what, t.cause_id, concat(t.kind, ' ', t.amount_minor), 'no such round'
    FROM transfer AS t LEFT JOIN round AS r ON r.round_id = t.round_id
    WHERE t.round_id IS NOT NULL AND r.round_id IS NULL AND t.made_at >= %(since)s AND t.made_at < %(until)s
    UNION ALL
    SELECT CASE WHEN r.round_id IS NULL THEN 'no_round.entry' ELSE 'no_step.entry' END, e.round_id,
        concat_ws(' ', e.type, e.entry_id, 'at', e.occurred_at),
        CASE WHEN r.round_id IS NULL THEN 'no such round'
            ELSE coalesce('at ' || step.at || ', by its identifier too', 'no such step') END
    FROM audit_entry AS e
    LEFT JOIN round AS r ON r.round_id = e.round_id
    LEFT JOIN voided_round AS v ON v.round_id = e.round_id
    CROSS JOIN LATERAL (
        SELECT CASE e.type WHEN 'round.opened' THEN r.opened_at WHEN 'round.settled' THEN r.settled_at
                ELSE v.voided_at END AS at,
            to_timestamp(('x' || substr(replace(e.entry_id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0)
                AS identified_at
    ) AS step
    WHERE e.type IN ('round.opened', 'round.settled', 'round.voided')
      AND e.occurred_at >= %(since)s AND e.occurred_at < %(until)s
      -- What is of its time, by its identifier too, is seen with its round, and there if it is the only one.
      AND (r.round_id IS NULL OR step.at IS DISTINCT FROM e.occurred_at
           OR step.identified_at NOT BETWEEN e.occurred_at - %(apart)s AND e.occurred_at + %(apart)s)
    UNION ALL
    SELECT 'no_round.void', v.round_id, concat(v.refund_minor, ' + ', v.compensation_minor), 'no such round'
    FROM voided_round AS v LEFT JOIN round AS r ON r.round_id = v.round_id
    WHERE r.round_id IS NULL AND v.voided_at >= %(since)s AND v.voided_at < %(until)s
    UNION ALL
    SELECT 'no_round.credit', w.round_id, concat(w.purpose, ' ', w.amount_minor), 'no such round'
    FROM wallet_transaction AS w LEFT JOIN round AS r ON r.round_id = w.round_id
    WHERE w.purpose <> 'stake' AND r.round_id IS NULL AND w.begun_at >= %(since)s AND w.begun_at < %(until)s
    ORDER BY 1, 2, 3
"""
