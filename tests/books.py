"""The laws that hold over the whole database at any moment: each returns the rows that break it."""

from __future__ import annotations

from typing import Any

import psycopg

LAWS: dict[str, str] = {
    "a player's balance is the sum of the transfers": """
        SELECT a.account_id, a.balance_minor FROM account AS a
        WHERE a.kind = 'player' AND a.balance_minor <>
            (SELECT coalesce(sum(amount_minor), 0) FROM transfer WHERE to_account = a.account_id)
            - (SELECT coalesce(sum(amount_minor), 0) FROM transfer WHERE from_account = a.account_id)""",
    "every ledger sums to zero": """
        SELECT ledger_id, sum(amount) FROM (
            SELECT ledger_id, to_account, amount_minor AS amount FROM transfer
            UNION ALL SELECT ledger_id, from_account, -amount_minor FROM transfer) AS leg
        GROUP BY ledger_id HAVING sum(amount) <> 0""",
    "escrow holds exactly the stakes of open rounds": """
        SELECT l.ledger_id FROM ledger AS l JOIN account AS e ON e.ledger_id = l.ledger_id AND e.kind = 'escrow'
        WHERE (SELECT coalesce(sum(amount_minor), 0) FROM transfer WHERE to_account = e.account_id)
            - (SELECT coalesce(sum(amount_minor), 0) FROM transfer WHERE from_account = e.account_id)
            <> (SELECT coalesce(sum(r.ante_minor + r.pair_bonus_minor), 0) FROM round AS r
                JOIN account AS a USING (account_id)
                WHERE a.ledger_id = l.ledger_id AND r.state = 'awaiting_decision')""",
    "a round's transfers are what it says": """
        SELECT r.round_id FROM round AS r
        LEFT JOIN LATERAL (
            SELECT coalesce(jsonb_object_agg(kind, amount_minor), '{}') AS moved
            FROM transfer AS t WHERE t.round_id = r.round_id) AS t ON true
        WHERE t.moved <> jsonb_strip_nulls(jsonb_build_object(
            'ante', r.ante_minor, 'pair_bonus', nullif(r.pair_bonus_minor, 0),
            'play', nullif(r.play_minor, 0), 'stakes', r.total_staked_minor,
            'payout', nullif(r.total_payout_minor, 0)))""",
    "a round has an audit entry for each step it took": """
        SELECT r.round_id FROM round AS r
        WHERE (SELECT array_agg(type ORDER BY type) FROM audit_entry AS e
               WHERE e.round_id = r.round_id AND type LIKE 'round.%')
            IS DISTINCT FROM CASE r.state WHEN 'settled' THEN ARRAY['round.opened', 'round.settled']
                ELSE ARRAY['round.opened'] END""",
    "an audit entry about a round has its round": """
        SELECT entry_id FROM audit_entry AS e WHERE type LIKE 'round.%'
            AND NOT EXISTS (SELECT FROM round AS r WHERE r.round_id = e.round_id)""",
    "a commitment was recorded when it was made, and when it was replaced": """
        SELECT c.round_id FROM commitment AS c
        WHERE (SELECT array_agg(type ORDER BY type) FROM audit_entry AS e
               WHERE e.round_id = c.round_id AND type LIKE 'commitment.%') IS DISTINCT FROM
            CASE WHEN c.ended_at IS NULL OR EXISTS (SELECT FROM round AS r WHERE r.round_id = c.round_id)
                THEN ARRAY['commitment.made']
                WHEN c.seed IS NULL THEN ARRAY['commitment.lost', 'commitment.made']
                ELSE ARRAY['commitment.expired', 'commitment.made'] END""",
    "the audit log says of a commitment what it is, and of its seed what was revealed": """
        SELECT c.round_id, e.type FROM commitment AS c JOIN audit_entry AS e USING (round_id)
        WHERE e.type <> 'round.opened' AND (
            (e.payload -> 'commitment' ->> 'number', e.payload -> 'commitment' ->> 'value',
             e.payload -> 'commitment' ->> 'previous') IS DISTINCT FROM
                (c.number::text, encode(c.value, 'hex'), encode(c.previous, 'hex'))
            OR (e.type IN ('round.settled', 'commitment.expired')
                AND e.payload ->> 'seed' IS DISTINCT FROM encode(c.seed, 'hex')))""",
    "a commitment names the rules of its paytable version": """
        SELECT c.round_id FROM commitment AS c JOIN paytable_version AS v ON v.version_id = c.paytable_version_id
        WHERE (c.game, c.rules_digest) <> (v.game, v.digest)""",
    "commitments are numbered without a gap, each with the value of the one before": """
        SELECT c.round_id FROM commitment AS c LEFT JOIN commitment AS p
            ON (p.player_id, p.game, p.mode, p.number) = (c.player_id, c.game, c.mode, c.number - 1)
        WHERE c.previous IS DISTINCT FROM p.value OR (c.number > 1 AND p.ended_at IS NULL)""",
    "a round was committed to before it was dealt, and is revealed when it is settled and not before": """
        SELECT r.round_id FROM round AS r LEFT JOIN commitment AS c USING (round_id)
        WHERE c.made_at IS NULL OR c.made_at > r.opened_at OR (c.seed IS NOT NULL) <> (r.state = 'settled')
            OR (c.ended_at IS NOT NULL) <> (r.state = 'settled')
            OR (c.player_id, c.game, c.mode, c.paytable_version_id)
                <> (r.player_id, r.game, r.mode, r.paytable_version_id)""",
    "a round has an answer for each step it took": """
        SELECT r.round_id FROM round AS r
        WHERE (SELECT array_agg(operation ORDER BY operation) FROM answer AS a WHERE a.cause_id = r.round_id)
            IS DISTINCT FROM CASE r.state WHEN 'settled' THEN ARRAY['decide', 'open'] ELSE ARRAY['open'] END""",
    "an audit entry's columns are what its bytes say": """
        SELECT e.entry_id FROM audit_entry AS e, audit_entry_of(convert_from(e.bytes, 'UTF8')) AS derived
        WHERE e IS DISTINCT FROM derived""",
    "a player has at most one open round in a game": """
        SELECT player_id, game, mode FROM round WHERE state = 'awaiting_decision'
        GROUP BY player_id, game, mode HAVING count(*) > 1""",
}


def broken_laws(conn: psycopg.Connection[Any]) -> dict[str, list[Any]]:
    """The laws that do not hold, with some of the rows that break them; all are read at one instant."""
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = {law: conn.execute(query).fetchmany(5) for law, query in LAWS.items()}
    return {law: rows for law, rows in found.items() if rows}
