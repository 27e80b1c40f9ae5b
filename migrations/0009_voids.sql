-- Voids, interruptions, and rounds whose money is in an operator's wallet.

-- A round that was taken back: before it was settled, or as a correction afterwards.
CREATE TABLE voided_round (
    round_id           uuid        NOT NULL CONSTRAINT voided_round_pkey PRIMARY KEY
                                   CONSTRAINT voided_round_fkey REFERENCES round,
    reason             text        NOT NULL,
    actor              text        NOT NULL,
    approver           text        NOT NULL,
    policy             text        NOT NULL,
    refund_minor       bigint      NOT NULL,  -- the stakes; of a settled round, what was lost
    compensation_minor bigint      NOT NULL,  -- what the better decision would have won
    voided_at          timestamptz NOT NULL,
    CONSTRAINT voided_round_has_a_reason CHECK (length(reason) BETWEEN 1 AND 500),
    CONSTRAINT voided_round_policy_is_known CHECK (policy IN ('refund', 'better')),
    CONSTRAINT voided_round_takes_nothing CHECK (refund_minor >= 0 AND compensation_minor >= 0),
    CONSTRAINT voided_round_compensates_by_policy CHECK (compensation_minor = 0 OR policy = 'better')
);
CREATE TRIGGER voided_round_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON voided_round FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE voided_round ENABLE ALWAYS TRIGGER voided_round_is_append_only;

ALTER TABLE round
    DROP CONSTRAINT round_state_is_known,
    ADD CONSTRAINT round_state_is_known CHECK (state IN ('awaiting_decision', 'settled', 'voided')),
    DROP CONSTRAINT round_settled_is_complete,
    ADD CONSTRAINT round_settled_is_complete CHECK (state = 'awaiting_decision' OR num_nulls(
        decision, play_minor, dealer_cards, result, settlement, total_staked_minor, total_payout_minor, settled_at)
        = ANY (CASE state WHEN 'settled' THEN ARRAY[0] ELSE ARRAY[0, 8] END)),
    DROP CONSTRAINT round_shows_nothing_before_it_is_settled,
    ADD CONSTRAINT round_shows_nothing_before_it_is_settled CHECK (state <> 'awaiting_decision' OR num_nonnulls(
        decision, play_minor, dealer_cards, result, settlement, total_staked_minor, total_payout_minor, settled_at)
        = 0);
CREATE INDEX round_that_waits ON round (operator_id, opened_at) WHERE state = 'awaiting_decision';
CREATE INDEX round_by_operator ON round (operator_id, opened_at DESC, round_id DESC);

ALTER TABLE answer
    DROP CONSTRAINT answer_operation_is_known,
    ADD CONSTRAINT answer_operation_is_known
        CHECK (operation IN ('open', 'decide', 'void', 'deposit', 'withdrawal'));

-- A settled round is final but for one thing: it can be voided, and then says what it said.
CREATE OR REPLACE TRIGGER round_settled_is_final
    BEFORE UPDATE ON round FOR EACH ROW WHEN (OLD.state IN ('settled', 'voided') AND (
        (OLD.state, NEW.state) <> ('settled', 'voided') OR
        (OLD.decision, OLD.play_minor, OLD.dealer_cards, OLD.result, OLD.settlement, OLD.total_staked_minor,
         OLD.total_payout_minor, OLD.settled_at)
        IS DISTINCT FROM
        (NEW.decision, NEW.play_minor, NEW.dealer_cards, NEW.result, NEW.settlement, NEW.total_staked_minor,
         NEW.total_payout_minor, NEW.settled_at)))
    EXECUTE FUNCTION refuse_change();
ALTER TABLE round ENABLE ALWAYS TRIGGER round_settled_is_final;

-- Refuses to void a round of which there is no void.
CREATE FUNCTION refuse_void_without_record() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM voided_round AS v WHERE v.round_id = NEW.round_id) THEN
        RAISE EXCEPTION 'round % is not voided without a reason and an approver', NEW.round_id
            USING ERRCODE = 'restrict_violation', HINT = 'Call round_void.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER round_is_voided_on_record
    BEFORE UPDATE ON round FOR EACH ROW WHEN (NEW.state = 'voided') EXECUTE FUNCTION refuse_void_without_record();
ALTER TABLE round ENABLE ALWAYS TRIGGER round_is_voided_on_record;

-- A round with the commitment it was dealt from, what became of it, and how it stands with an operator's wallet.
-- `debited_minor`: what the wallet was debited for it, null where the money is in the built-in one.
CREATE VIEW round_record AS
    SELECT r.*, v.voided_at, v.reason AS void_reason, v.refund_minor, v.compensation_minor, w.debited_minor,
        coalesce(w.debit_unfinished, false) AS debit_unfinished,
        coalesce(w.credit_unfinished, false) AS credit_unfinished
    FROM committed_round AS r
    LEFT JOIN voided_round AS v USING (round_id)
    LEFT JOIN LATERAL (
        SELECT sum(t.amount_minor) FILTER (WHERE t.purpose = 'stake' AND t.state = 'done')::bigint AS debited_minor,
            bool_or(t.purpose = 'stake' AND t.state = 'pending') AS debit_unfinished,
            bool_or(t.purpose <> 'stake' AND t.ended_at IS NULL) AS credit_unfinished
        FROM wallet_transaction AS t WHERE t.round_id = r.round_id
    ) AS w ON true;
CREATE INDEX wallet_transaction_by_round ON wallet_transaction (round_id);

-- Opens rounds: stakes to escrow, the deal, the answer and the audit entry, or nothing.  One outcome for each:
--   opened | replayed | idempotency_key_reused | request_in_progress | session_expired | game_unavailable
--   | paytable_changed | round_open | too_soon | commitment_changed | insufficient_funds | balance_limit_exceeded
-- Everything is judged after the players' rows are locked: a player's money moves one operation at a time.
-- `shown_balance_minor` is what the operator's wallet answered, where the money came from one.
CREATE OR REPLACE FUNCTION round_open(ops jsonb)
    RETURNS TABLE (item bigint, outcome text, status smallint, body text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM players_lock(ops);
    RETURN QUERY
    WITH op AS (
        SELECT t.*, t.ordinality AS item FROM ROWS FROM (jsonb_to_recordset(ops) AS (
            round_id uuid, session_id uuid, operator_id uuid, player_id uuid, account_id uuid, mode text,
            currency text, game text, paytable_version_id uuid, rng_digest text, opened_at timestamptz,
            ante_minor bigint, pair_bonus_minor bigint, payout_max_minor bigint, balance_max_minor bigint,
            player_cards text[], sealed_deal bytea, client_seeds boolean, client_seed text,
            seconds_between_starts integer, shown_balance_minor bigint,
            idempotency_key text, fingerprint bytea, status smallint, body_head text, body_tail text, audit text
        )) WITH ORDINALITY AS t
    ), judged AS (
        SELECT op.*, op.ante_minor + op.pair_bonus_minor AS cost_minor, a.ledger_id,
            known.status AS known_status, known.body AS known_body,
            CASE
                WHEN known.fingerprint = op.fingerprint THEN 'replayed'
                WHEN known.fingerprint IS NOT NULL THEN 'idempotency_key_reused'
                WHEN row_number() OVER (PARTITION BY op.player_id ORDER BY op.item) > 1 THEN 'request_in_progress'
                WHEN op.seconds_between_starts IS NULL THEN 'request_in_progress'  -- by an older process
                WHEN s.closed_at IS NOT NULL OR s.expires_at <= now() THEN 'session_expired'
                WHEN g.state IS DISTINCT FROM 'enabled' THEN 'game_unavailable'
                WHEN closure_of(op.operator_id, op.game, op.paytable_version_id) IS NOT NULL THEN 'game_unavailable'
                WHEN g.active_version_id <> op.paytable_version_id THEN 'paytable_changed'
                WHEN EXISTS (
                    SELECT FROM round AS r
                    WHERE r.player_id = op.player_id AND r.game = op.game AND r.mode = op.mode
                      AND r.state = 'awaiting_decision') THEN 'round_open'
                WHEN op.seconds_between_starts > 0 AND EXISTS (
                    SELECT FROM round AS r WHERE r.player_id = op.player_id
                      -- What a clock that was set back has yet to come to is no reason to wait.
                      AND r.opened_at > op.opened_at - make_interval(secs => op.seconds_between_starts)
                      AND r.opened_at < op.opened_at + make_interval(secs => op.seconds_between_starts)) THEN 'too_soon'
                WHEN c.ended_at IS NOT NULL OR c.epoch <> database_epoch()
                    OR (c.player_id, c.game, c.mode, c.paytable_version_id)
                        IS DISTINCT FROM (op.player_id, op.game, op.mode, op.paytable_version_id)
                    THEN 'commitment_changed'
                WHEN a.balance_minor < op.ante_minor + op.pair_bonus_minor THEN 'insufficient_funds'
                WHEN a.balance_minor > op.balance_max_minor - op.payout_max_minor THEN 'balance_limit_exceeded'
                ELSE 'opened'
            END AS outcome
        FROM op
        JOIN session AS s ON s.session_id = op.session_id
        JOIN account AS a ON a.account_id = op.account_id
        LEFT JOIN game AS g ON g.game = op.game
        LEFT JOIN commitment AS c ON c.round_id = op.round_id
        LEFT JOIN answer AS known ON (known.operator_id, known.player_id, known.idempotency_key)
            = (op.operator_id, op.player_id, op.idempotency_key)
    ), accepted AS (
        SELECT * FROM judged WHERE outcome = 'opened'
    ), balance AS (
        UPDATE account AS a SET balance_minor = a.balance_minor - x.cost_minor
        FROM accepted AS x WHERE a.account_id = x.account_id
        RETURNING x.item, a.balance_minor
    ), dealt AS (
        INSERT INTO round (round_id, session_id, operator_id, player_id, account_id, mode, currency, game,
            paytable_version_id, rng_digest, state, opened_at, ante_minor, pair_bonus_minor, payout_max_minor,
            player_cards, sealed_deal, client_seeds, client_seed)
        SELECT round_id, session_id, operator_id, player_id, account_id, mode, currency, game,
            paytable_version_id, rng_digest, 'awaiting_decision', opened_at, ante_minor, pair_bonus_minor,
            payout_max_minor, player_cards, sealed_deal, client_seeds, client_seed
        FROM accepted
    ), moved AS (
        INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
        SELECT x.round_id, stake.kind, x.ledger_id, x.account_id, escrow.account_id, stake.amount_minor, x.opened_at
        FROM accepted AS x
        JOIN account AS escrow ON escrow.ledger_id = x.ledger_id AND escrow.kind = 'escrow'
        CROSS JOIN LATERAL (VALUES ('ante', x.ante_minor), ('pair_bonus', x.pair_bonus_minor))
            AS stake (kind, amount_minor)
        WHERE stake.amount_minor > 0
    ), logged AS (
        INSERT INTO audit_entry SELECT e.* FROM accepted AS x, audit_entry_of(x.audit) AS e
    ), answered AS (
        INSERT INTO answer (operator_id, player_id, idempotency_key, fingerprint, operation, cause_id,
                            status, body, answered_at)
        SELECT x.operator_id, x.player_id, x.idempotency_key, x.fingerprint, 'open', x.round_id,
            x.status, x.body_head || coalesce(x.shown_balance_minor, b.balance_minor) || x.body_tail, x.opened_at
        FROM accepted AS x JOIN balance AS b USING (item)
        RETURNING cause_id, status, body
    )
    SELECT j.item, j.outcome,
        CASE j.outcome WHEN 'opened' THEN n.status WHEN 'replayed' THEN j.known_status END,
        CASE j.outcome WHEN 'opened' THEN n.body WHEN 'replayed' THEN j.known_body END
    FROM judged AS j LEFT JOIN answered AS n ON n.cause_id = j.round_id
    ORDER BY j.item;
END
$$;

-- Decides and settles rounds.  One outcome for each:
--   settled | replayed | idempotency_key_reused | request_in_progress | round_voided | already_decided
--   | game_disabled | insufficient_funds
-- The same decision again is a replay of the first answer, whatever its key.  The round's seed is revealed, and
-- `next`, the commitment of the player's next round, made; it is null where no random numbers can be had.
-- `credit` is what an operator's wallet will be asked to pay.  Without a key no answer is kept yet: nobody waits for
-- one, or it is known only once the wallet has been asked (answer_keep); the outcome of a repetition has none then.
CREATE OR REPLACE FUNCTION round_decide(ops jsonb)
    RETURNS TABLE (item bigint, outcome text, status smallint, body text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM players_lock(ops);
    RETURN QUERY
    WITH op AS (
        SELECT t.*, t.ordinality AS item FROM ROWS FROM (jsonb_to_recordset(ops) AS (
            round_id uuid, operator_id uuid, player_id uuid, decision text, play_minor bigint, dealer_cards text[],
            result text, settlement jsonb, total_staked_minor bigint, total_payout_minor bigint,
            settled_at timestamptz, seed bytea, next jsonb, next_audit text, credit jsonb,
            idempotency_key text, fingerprint bytea, status smallint, body_head text, body_tail text, audit text
        )) WITH ORDINALITY AS t
    ), judged AS (
        SELECT op.*, r.account_id, a.ledger_id,
            coalesce(known.status, first.status) AS known_status, coalesce(known.body, first.body) AS known_body,
            CASE
                WHEN known.fingerprint = op.fingerprint THEN 'replayed'
                WHEN known.fingerprint IS NOT NULL THEN 'idempotency_key_reused'
                WHEN row_number() OVER (PARTITION BY op.player_id ORDER BY op.item) > 1 THEN 'request_in_progress'
                WHEN r.state = 'settled' AND r.decision = op.decision THEN 'replayed'
                WHEN r.state = 'settled' THEN 'already_decided'
                WHEN r.state = 'voided' THEN 'round_voided'
                -- (A debit that is being cancelled moves nothing in the end, and a fold need not wait for it.)
                WHEN EXISTS (SELECT FROM wallet_transaction AS t WHERE t.round_id = op.round_id
                             AND t.purpose = 'stake' AND t.state = 'pending') THEN 'request_in_progress'
                -- By a process from before this migration, which would leave the wallet unpaid:
                WHEN op.credit IS NULL AND EXISTS (SELECT FROM wallet_transaction AS t
                    WHERE t.round_id = op.round_id AND t.purpose = 'stake' AND t.state = 'done')
                    THEN 'request_in_progress'
                WHEN closure_of(op.operator_id, r.game, r.paytable_version_id) = 'disabled' THEN 'game_disabled'
                -- By a process from before this migration, or beside one that has made the next commitment:
                WHEN op.seed IS NULL AND EXISTS (SELECT FROM commitment AS c WHERE c.round_id = op.round_id)
                    OR (op.next ->> 'number')::bigint <> 1 + coalesce((
                        SELECT max(c.number) FROM commitment AS c
                        WHERE (c.player_id, c.game, c.mode) = (r.player_id, r.game, r.mode)), 0)
                    THEN 'request_in_progress'
                WHEN a.balance_minor < op.play_minor THEN 'insufficient_funds'
                ELSE 'settled'
            END AS outcome
        FROM op
        JOIN round AS r USING (round_id, operator_id, player_id)
        JOIN account AS a USING (account_id)
        LEFT JOIN answer AS known ON (known.operator_id, known.player_id, known.idempotency_key)
            = (op.operator_id, op.player_id, op.idempotency_key)
        LEFT JOIN answer AS first ON first.cause_id = op.round_id AND first.operation = 'decide'
    ), accepted AS (
        SELECT * FROM judged WHERE outcome = 'settled'
    ), balance AS (
        UPDATE account AS a SET balance_minor = a.balance_minor - x.play_minor + x.total_payout_minor
        FROM accepted AS x WHERE a.account_id = x.account_id
        RETURNING x.item, a.balance_minor
    ), closed AS (
        UPDATE round AS r SET state = 'settled', decision = x.decision, play_minor = x.play_minor,
            dealer_cards = x.dealer_cards, result = x.result, settlement = x.settlement,
            total_staked_minor = x.total_staked_minor, total_payout_minor = x.total_payout_minor,
            settled_at = x.settled_at
        FROM accepted AS x WHERE r.round_id = x.round_id
    ), revealed AS (
        UPDATE commitment AS c SET seed = x.seed, ended_at = x.settled_at
        FROM accepted AS x WHERE c.round_id = x.round_id
    ), committed AS (
        INSERT INTO commitment (round_id, player_id, game, mode, number, previous, value, paytable_version_id,
            rules_digest, rng_digest, sealed_seed, made_at)
        SELECT next.round_id, next.player_id, next.game, next.mode, next.number, next.previous, next.value,
            next.paytable_version_id, next.rules_digest, next.rng_digest, next.sealed_seed, next.made_at
        FROM accepted AS x, jsonb_populate_record(NULL::commitment, x.next) AS next WHERE x.next IS NOT NULL
    ), owed AS (
        INSERT INTO wallet_transaction
        SELECT credit.* FROM accepted AS x, jsonb_populate_record(NULL::wallet_transaction, x.credit) AS credit
        WHERE x.credit IS NOT NULL
    ), moved AS (
        INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
        SELECT x.round_id, move.kind, x.ledger_id, move.from_account, move.to_account, move.amount_minor, x.settled_at
        FROM accepted AS x
        JOIN account AS escrow ON escrow.ledger_id = x.ledger_id AND escrow.kind = 'escrow'
        JOIN account AS house ON house.ledger_id = x.ledger_id AND house.kind = 'house'
        CROSS JOIN LATERAL (VALUES
            ('play', x.account_id, escrow.account_id, x.play_minor),
            ('stakes', escrow.account_id, house.account_id, x.total_staked_minor),
            ('payout', house.account_id, x.account_id, x.total_payout_minor)
        ) AS move (kind, from_account, to_account, amount_minor)
        WHERE move.amount_minor > 0
    ), logged AS (
        INSERT INTO audit_entry
        SELECT e.* FROM accepted AS x
        CROSS JOIN LATERAL unnest(ARRAY[x.audit, x.next_audit]) AS a
        CROSS JOIN LATERAL audit_entry_of(a) AS e
        WHERE a IS NOT NULL
    ), answered AS (
        INSERT INTO answer (operator_id, player_id, idempotency_key, fingerprint, operation, cause_id,
                            status, body, answered_at)
        SELECT x.operator_id, x.player_id, x.idempotency_key, x.fingerprint, 'decide', x.round_id,
            x.status, x.body_head || b.balance_minor || x.body_tail, x.settled_at
        FROM accepted AS x JOIN balance AS b USING (item) WHERE x.idempotency_key IS NOT NULL
        RETURNING cause_id, status, body
    )
    SELECT j.item, j.outcome,
        CASE j.outcome WHEN 'settled' THEN n.status WHEN 'replayed' THEN j.known_status END,
        CASE j.outcome WHEN 'settled' THEN n.body WHEN 'replayed' THEN j.known_body END
    FROM judged AS j LEFT JOIN answered AS n ON n.cause_id = j.round_id
    ORDER BY j.item;
END
$$;

-- Keeps the first answer to a request that was carried out before its answer was known; returns the answer kept.
CREATE FUNCTION answer_keep(
    the_operator uuid, the_player uuid, the_key text, the_fingerprint bytea, the_operation text, the_cause uuid,
    the_status smallint, the_body text
) RETURNS TABLE (status smallint, body text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO answer (operator_id, player_id, idempotency_key, fingerprint, operation, cause_id, status, body,
        answered_at)
    VALUES (the_operator, the_player, the_key, the_fingerprint, the_operation, the_cause, the_status, the_body, now())
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT a.status, a.body FROM answer AS a WHERE a.cause_id = the_cause AND a.operation = the_operation;
END
$$;

-- Voids a round: its stakes, or what was lost, go back to the player, and no decision or payout follows.
--   voided | already_voided | request_in_progress | changed (it is not in `state_before` any more)
CREATE FUNCTION round_void(op jsonb) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    r       round;
    voiding voided_round := jsonb_populate_record(NULL::voided_round, op);
BEGIN
    PERFORM players_lock(jsonb_build_array(op));
    SELECT * INTO STRICT r FROM round WHERE round_id = voiding.round_id;
    IF r.state = 'voided' THEN
        RETURN 'already_voided';
    ELSIF r.state <> op ->> 'state_before' THEN
        RETURN 'changed';
    ELSIF EXISTS (SELECT FROM wallet_transaction AS t WHERE t.round_id = r.round_id AND t.purpose = 'stake'
                  AND t.state = 'pending') THEN
        RETURN 'request_in_progress';
    END IF;
    INSERT INTO voided_round SELECT voiding.*;
    UPDATE round SET state = 'voided' WHERE round_id = r.round_id;
    UPDATE commitment SET seed = (op ->> 'seed')::bytea, ended_at = voiding.voided_at
        WHERE round_id = r.round_id AND ended_at IS NULL;
    INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
        SELECT r.round_id, m.kind, a.ledger_id, source.account_id, a.account_id, m.amount_minor, voiding.voided_at
        FROM account AS a
        CROSS JOIN (VALUES
            ('refund', CASE r.state WHEN 'settled' THEN 'house' ELSE 'escrow' END, voiding.refund_minor),
            ('compensation', 'house', voiding.compensation_minor)) AS m (kind, source, amount_minor)
        JOIN account AS source ON source.ledger_id = a.ledger_id AND source.kind = m.source
        WHERE a.account_id = r.account_id AND m.amount_minor > 0;
    UPDATE account SET balance_minor = balance_minor + voiding.refund_minor + voiding.compensation_minor
        WHERE account_id = r.account_id;
    INSERT INTO wallet_transaction
        SELECT credit.* FROM jsonb_populate_record(NULL::wallet_transaction, nullif(op -> 'credit', 'null')) AS credit
        WHERE credit.transaction_id IS NOT NULL;
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(op ->> 'audit');
    RETURN 'voided';
END
$$;

GRANT SELECT ON voided_round, round_record TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    answer_keep(uuid, uuid, text, bytea, text, uuid, smallint, text),
    round_void(jsonb)
    TO casino_brag_app;
