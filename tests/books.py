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
            'payout', nullif(r.total_payout_minor, 0),
            'refund', (SELECT nullif(v.refund_minor, 0) FROM voided_round AS v WHERE v.round_id = r.round_id),
            'compensation', (
                SELECT nullif(v.compensation_minor, 0) FROM voided_round AS v WHERE v.round_id = r.round_id)))""",
    "a round is voided if there is a void of it": """
        SELECT r.round_id FROM round AS r LEFT JOIN voided_round AS v USING (round_id)
        WHERE (r.state = 'voided') <> (v.round_id IS NOT NULL)""",
    "a void returns what it should": """
        SELECT r.round_id FROM round AS r JOIN voided_round AS v USING (round_id)
        WHERE v.refund_minor <> CASE WHEN r.decision IS NULL THEN r.ante_minor + r.pair_bonus_minor
            ELSE greatest(0, r.total_staked_minor - r.total_payout_minor) END""",
    "a wallet's transaction moved money once it was done, and not otherwise": """
        SELECT t.transaction_id FROM wallet_transaction AS t
        WHERE (SELECT array_agg((m.kind, m.amount_minor)::text) FROM transfer AS m
               WHERE m.wallet_transaction_id = t.transaction_id)
            IS DISTINCT FROM CASE WHEN t.state = 'done' AND t.amount_minor > 0 THEN ARRAY[
                ((CASE t.purpose WHEN 'stake' THEN 'wallet_debit' ELSE 'wallet_credit' END), t.amount_minor)::text]
            END""",
    "what a wallet was debited for was staked": """
        SELECT t.transaction_id FROM wallet_transaction AS t
        WHERE t.purpose = 'stake' AND t.state = 'done' AND NOT EXISTS (
            SELECT FROM round AS r WHERE r.round_id = t.round_id
              AND (t.wager <> 'play' OR r.decision = 'play'))""",
    "a wallet is asked for what a round pays, with what was debited and not staked": """
        SELECT r.round_id FROM round_record AS r
        WHERE r.debited_minor IS NOT NULL AND (
            SELECT jsonb_object_agg(t.purpose, t.amount_minor) FROM wallet_transaction AS t
            WHERE t.round_id = r.round_id AND t.purpose <> 'stake') IS DISTINCT FROM nullif(jsonb_strip_nulls(
                jsonb_build_object(
                    'settlement', r.debited_minor - r.total_staked_minor + r.total_payout_minor,
                    'void', CASE WHEN r.decision IS NULL THEN r.debited_minor - r.ante_minor - r.pair_bonus_minor
                        ELSE 0 END + r.refund_minor + r.compensation_minor)), '{}')""",
    "an account holds what the operator's wallet is owed": """
        SELECT a.account_id, a.balance_minor FROM account AS a
        JOIN ledger AS l USING (ledger_id) JOIN operator AS o USING (operator_id)
        WHERE a.kind = 'player' AND l.mode = 'real' AND o.wallet_url IS NOT NULL AND a.balance_minor <>
            (SELECT coalesce(sum(t.amount_minor), 0) FROM wallet_transaction AS t
             WHERE t.account_id = a.account_id AND t.purpose <> 'stake' AND t.ended_at IS NULL)
            + (SELECT coalesce(sum(r.debited_minor - r.ante_minor - r.pair_bonus_minor), 0) FROM round_record AS r
               WHERE r.account_id = a.account_id AND r.state = 'awaiting_decision')""",
    "a wallet's transaction was recorded when it ended": """
        SELECT t.transaction_id FROM wallet_transaction AS t
        WHERE t.ended_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM audit_entry AS e WHERE e.round_id = t.round_id
              AND e.payload ->> 'transaction_id' = t.transaction_id::text
              AND e.type = CASE t.state WHEN 'refused' THEN 'wallet.debit_refused'
                  WHEN 'cancelled' THEN 'wallet.debit_cancelled'
                  WHEN 'done' THEN CASE t.purpose WHEN 'stake' THEN 'wallet.debited' ELSE 'wallet.credited' END END)""",
    "a round has an audit entry for each step it took": """
        SELECT r.round_id FROM round AS r
        WHERE (SELECT array_agg(type ORDER BY type) FROM audit_entry AS e
               WHERE e.round_id = r.round_id AND type IN ('round.opened', 'round.settled', 'round.voided'))
            IS DISTINCT FROM ARRAY['round.opened']
                || CASE WHEN r.decision IS NOT NULL THEN ARRAY['round.settled'] ELSE '{}' END
                || CASE r.state WHEN 'voided' THEN ARRAY['round.voided'] ELSE '{}' END""",
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
        WHERE (e.type LIKE 'commitment.%' OR e.type = 'round.settled') AND (
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
    "a round was committed to before it was dealt, and is revealed when it is over and not before": """
        SELECT r.round_id FROM round AS r LEFT JOIN commitment AS c USING (round_id)
        WHERE c.made_at IS NULL OR c.made_at > r.opened_at
            OR (c.seed IS NULL) <> (r.state = 'awaiting_decision' OR EXISTS (
                SELECT FROM audit_entry AS e WHERE e.round_id = r.round_id AND e.payload -> 'seed_lost' = 'true'))
            OR (c.ended_at IS NULL) <> (r.state = 'awaiting_decision')
            OR (c.player_id, c.game, c.mode, c.paytable_version_id)
                <> (r.player_id, r.game, r.mode, r.paytable_version_id)""",
    "a round has an answer for each step it took": """
        SELECT r.round_id FROM round AS r
        CROSS JOIN LATERAL (SELECT array_agg(operation ORDER BY operation) AS given FROM answer AS a
                            WHERE a.cause_id = r.round_id AND a.operation <> 'void') AS answers
        WHERE answers.given IS DISTINCT FROM
            CASE WHEN r.decision IS NULL THEN ARRAY['open'] ELSE ARRAY['decide', 'open'] END
            AND NOT (answers.given = ARRAY['open'] AND (  -- nobody waited for an answer, or nobody waits any more
                EXISTS (SELECT FROM wallet_transaction AS t WHERE t.round_id = r.round_id)
                OR EXISTS (SELECT FROM audit_entry AS e WHERE e.round_id = r.round_id
                           AND e.actor = 'system:interruption-policy')))""",
    "an audit entry's columns are what its bytes say": """
        SELECT e.entry_id FROM audit_entry AS e, audit_entry_of(convert_from(e.bytes, 'UTF8')) AS derived
        WHERE to_jsonb(e) - 'written_xid' IS DISTINCT FROM to_jsonb(derived) - 'written_xid'""",
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
