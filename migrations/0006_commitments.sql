-- Commitments: what a round will be dealt from is fixed before its stakes, and shown to its player.  Afterwards the
-- seed is revealed, and anybody can check the deal.

-- The value of a commitment: SHA-256 over texts that each follow their length (docs/rng.md).
CREATE FUNCTION commitment_value_of(
    the_round uuid, the_rules text, the_number bigint, the_previous bytea, the_seed bytea
) RETURNS bytea
    LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(
        '\x00000018'::bytea || convert_to('casino-brag commitment 1', 'UTF8')
        || '\x00000010'::bytea || uuid_send(the_round)
        || '\x00000020'::bytea || decode(the_rules, 'hex')
        || '\x00000008'::bytea || int8send(the_number)
        || int4send(coalesce(length(the_previous), 0)) || coalesce(the_previous, '\x'::bytea)
        || '\x00000030'::bytea || the_seed)
$$;

-- Which run of which database this is: another one after every start of the server, after a fail-over to a standby, in
-- a copy, and once the table of commitments was filled anew.  Records that were brought back from an older day are told
-- by it from those that never left.
CREATE FUNCTION database_epoch() RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT format('%s/%s/%s/%s', d.oid, c.relfilenode, left(pg_walfile_name(pg_current_wal_lsn()), 8),
        extract(epoch FROM pg_postmaster_start_time()))
    FROM pg_database AS d, pg_class AS c
    WHERE d.datname = current_database() AND c.oid = to_regclass('public.commitment')
$$;

-- One for each round, made before it: a round's identifier is its commitment's.  Those of a player in a game and mode
-- are one series, numbered without a gap, each holding the value of the one before: none can be withheld unseen.
-- `ended_at` is when it was over: the round was settled, or the commitment was replaced before one was dealt from it.
-- `seed` is revealed then; it stays hidden for ever only where the key that sealed it was lost.
-- No round is dealt from one of another `epoch`: records may have been restored that are older than the last round, and
-- then its seed was revealed already.
CREATE TABLE commitment (
    round_id            uuid        NOT NULL CONSTRAINT commitment_pkey PRIMARY KEY,
    player_id           uuid        NOT NULL CONSTRAINT commitment_player_fkey REFERENCES player,
    game                text        NOT NULL,
    mode                text        NOT NULL CONSTRAINT commitment_mode_is_known CHECK (mode IN ('real', 'demo')),
    number              bigint      NOT NULL,
    previous            bytea,
    value               bytea       NOT NULL,
    paytable_version_id uuid        NOT NULL CONSTRAINT commitment_paytable_version_fkey REFERENCES paytable_version,
    rules_digest        text        NOT NULL,  -- the digest of that version
    rng_digest          text        NOT NULL,  -- SHA-256 over the random number module that drew the seed
    sealed_seed         bytea       NOT NULL,
    made_at             timestamptz NOT NULL,
    epoch               text        NOT NULL DEFAULT database_epoch(),
    seed                bytea,
    ended_at            timestamptz,
    CONSTRAINT commitment_number_is_used_once UNIQUE (player_id, game, mode, number),
    CONSTRAINT commitment_first_has_no_previous CHECK (number >= 1 AND (number = 1) = (previous IS NULL)),
    CONSTRAINT commitment_is_revealed_when_it_is_over CHECK (seed IS NULL OR ended_at IS NOT NULL),
    CONSTRAINT commitment_reveals_what_was_committed
        CHECK (seed IS NULL OR value = commitment_value_of(round_id, rules_digest, number, previous, seed))
);

CREATE TRIGGER commitment_over_is_final
    BEFORE UPDATE ON commitment FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER commitment_keeps_what_was_committed
    BEFORE UPDATE ON commitment FOR EACH ROW WHEN (
        (OLD.round_id, OLD.player_id, OLD.game, OLD.mode, OLD.number, OLD.previous, OLD.value,
         OLD.paytable_version_id, OLD.rules_digest, OLD.rng_digest, OLD.sealed_seed, OLD.made_at, OLD.epoch)
        IS DISTINCT FROM
        (NEW.round_id, NEW.player_id, NEW.game, NEW.mode, NEW.number, NEW.previous, NEW.value,
         NEW.paytable_version_id, NEW.rules_digest, NEW.rng_digest, NEW.sealed_seed, NEW.made_at, NEW.epoch))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER commitment_is_kept
    BEFORE DELETE OR TRUNCATE ON commitment FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE commitment ENABLE ALWAYS TRIGGER commitment_over_is_final;
ALTER TABLE commitment ENABLE ALWAYS TRIGGER commitment_keeps_what_was_committed;
ALTER TABLE commitment ENABLE ALWAYS TRIGGER commitment_is_kept;

-- Whether players may bring a text of their own into a deal is the operator's choice, and on each round's record.
ALTER TABLE operator ADD COLUMN client_seeds boolean NOT NULL DEFAULT true;

-- Rounds from before this migration have no commitment and none of these.
ALTER TABLE round
    ADD COLUMN client_seeds boolean,  -- whether the player could bring a text
    ADD COLUMN client_seed  text,     -- the text
    ADD CONSTRAINT round_commitment_fkey FOREIGN KEY (round_id) REFERENCES commitment NOT VALID,
    ADD CONSTRAINT round_client_seed_is_allowed CHECK (client_seed IS NULL OR client_seeds IS TRUE),
    ADD CONSTRAINT round_client_seed_is_short CHECK (client_seed ~ '^[\x21-\x7e]{1,128}$');

-- A round's identifier is as old as its commitment, which may have waited; what is newest is told by the time.
DROP INDEX round_by_player;
CREATE INDEX round_by_player ON round (player_id, opened_at DESC, round_id DESC);

CREATE OR REPLACE TRIGGER round_settles_what_was_accepted
    BEFORE UPDATE ON round FOR EACH ROW WHEN (
        (OLD.round_id, OLD.session_id, OLD.operator_id, OLD.player_id, OLD.account_id, OLD.mode, OLD.currency,
         OLD.game, OLD.paytable_version_id, OLD.rng_digest, OLD.opened_at, OLD.ante_minor, OLD.pair_bonus_minor,
         OLD.payout_max_minor, OLD.player_cards, OLD.sealed_deal, OLD.client_seeds, OLD.client_seed)
        IS DISTINCT FROM
        (NEW.round_id, NEW.session_id, NEW.operator_id, NEW.player_id, NEW.account_id, NEW.mode, NEW.currency,
         NEW.game, NEW.paytable_version_id, NEW.rng_digest, NEW.opened_at, NEW.ante_minor, NEW.pair_bonus_minor,
         NEW.payout_max_minor, NEW.player_cards, NEW.sealed_deal, NEW.client_seeds, NEW.client_seed))
    EXECUTE FUNCTION refuse_change();
ALTER TABLE round ENABLE ALWAYS TRIGGER round_settles_what_was_accepted;

-- Who is calling, with what the operator allows.  The view `caller` stays as it is for processes that still run.
CREATE VIEW player_caller AS
    SELECT c.*, o.client_seeds FROM caller AS c JOIN operator AS o USING (operator_id);

-- A round with the commitment it was dealt from.
CREATE VIEW committed_round AS
    SELECT r.*, c.number AS commitment_number, c.previous AS commitment_previous, c.value AS commitment_value,
        c.rng_digest AS seed_rng_digest, c.sealed_seed, c.seed
    FROM round AS r LEFT JOIN commitment AS c USING (round_id);

-- The newest commitment of a series.  `over`: it is over.  `in_play`: a round that is open was dealt from it.
-- `present`: it is of this epoch.
CREATE FUNCTION latest_commitment(the_player uuid, the_game text, the_mode text)
    RETURNS TABLE (round_id uuid, number bigint, previous bytea, value bytea, rng_digest text, sealed_seed bytea,
                   paytable_version_id uuid, rules_digest text, over boolean, in_play boolean, present boolean)
    LANGUAGE sql STABLE AS $$
    SELECT c.round_id, c.number, c.previous, c.value, c.rng_digest, c.sealed_seed, c.paytable_version_id,
        c.rules_digest, c.ended_at IS NOT NULL,
        c.ended_at IS NULL AND EXISTS (SELECT FROM round AS r WHERE r.round_id = c.round_id),
        c.epoch = database_epoch()
    FROM commitment AS c WHERE (c.player_id, c.game, c.mode) = (the_player, the_game, the_mode)
    ORDER BY c.number DESC LIMIT 1
$$;

-- Lets an operator's players bring texts of their own into deals, or not; true when that changed something.
CREATE FUNCTION operator_client_seeds(the_operator uuid, allowed boolean, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE operator SET client_seeds = allowed WHERE operator_id = the_operator AND client_seeds <> allowed;
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    RETURN FOUND;
END
$$;

-- Records what the random number module and the checks of integrity report of themselves.
CREATE FUNCTION module_events_record(audits text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    entry audit_entry;
BEGIN
    FOR entry IN SELECT e.* FROM unnest(audits) AS a, audit_entry_of(a) AS e LOOP
        IF entry.type !~ '^(rng|integrity)\.' THEN
            RAISE EXCEPTION '% is no event of a module', entry.type USING ERRCODE = 'check_violation';
        END IF;
        INSERT INTO audit_entry SELECT entry.* ON CONFLICT (entry_id) DO NOTHING;  -- written before, and not known
    END LOOP;
END
$$;

-- Makes commitments, each the next of its series.  One outcome for each:
--   made | request_in_progress | commitment_changed
-- One that was made before and never dealt from is over with that: `replaced_seed` reveals it.
CREATE FUNCTION commitment_make(ops jsonb) RETURNS TABLE (item bigint, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM players_lock(ops);
    RETURN QUERY
    WITH op AS (
        SELECT t.*, t.ordinality AS item FROM ROWS FROM (jsonb_to_recordset(ops) AS (
            round_id uuid, player_id uuid, game text, mode text, number bigint, previous bytea, value bytea,
            paytable_version_id uuid, rules_digest text, rng_digest text, sealed_seed bytea, made_at timestamptz,
            replaced_id uuid, replaced_seed bytea, audit text, replaced_audit text
        )) WITH ORDINALITY AS t
    ), judged AS (
        SELECT op.*,
            CASE
                WHEN row_number() OVER (PARTITION BY op.player_id, op.game, op.mode ORDER BY op.item) > 1
                    THEN 'request_in_progress'
                WHEN op.number <> coalesce(latest.number, 0) + 1 OR op.previous IS DISTINCT FROM latest.value
                    THEN 'commitment_changed'
                WHEN NOT latest.over AND (latest.in_play OR latest.round_id IS DISTINCT FROM op.replaced_id)
                    THEN 'commitment_changed'
                ELSE 'made'
            END AS outcome
        FROM op
        LEFT JOIN LATERAL latest_commitment(op.player_id, op.game, op.mode) AS latest ON true
    ), accepted AS (
        SELECT * FROM judged WHERE outcome = 'made'
    ), replaced AS (
        UPDATE commitment AS c SET seed = x.replaced_seed, ended_at = x.made_at
        FROM accepted AS x WHERE c.round_id = x.replaced_id AND c.ended_at IS NULL
    ), made AS (
        INSERT INTO commitment (round_id, player_id, game, mode, number, previous, value, paytable_version_id,
            rules_digest, rng_digest, sealed_seed, made_at)
        SELECT round_id, player_id, game, mode, number, previous, value, paytable_version_id, rules_digest,
            rng_digest, sealed_seed, made_at
        FROM accepted
    ), logged AS (
        INSERT INTO audit_entry
        SELECT e.* FROM accepted AS x
        CROSS JOIN LATERAL unnest(ARRAY[x.audit, x.replaced_audit]) AS a
        CROSS JOIN LATERAL audit_entry_of(a) AS e
        WHERE a IS NOT NULL
    )
    SELECT j.item, j.outcome FROM judged AS j ORDER BY j.item;
END
$$;

-- Opens rounds: stakes to escrow, the deal, the answer and the audit entry, or nothing.  One outcome for each:
--   opened | replayed | idempotency_key_reused | request_in_progress | session_expired | game_unavailable
--   | paytable_changed | round_open | commitment_changed | insufficient_funds | balance_limit_exceeded
-- Everything is judged after the players' rows are locked: a player's money moves one operation at a time.
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
            idempotency_key text, fingerprint bytea, status smallint, body_head text, body_tail text, audit text
        )) WITH ORDINALITY AS t
    ), judged AS (
        SELECT op.*, op.ante_minor + op.pair_bonus_minor AS cost_minor, a.ledger_id,
            known.status AS known_status, known.body AS known_body,
            CASE
                WHEN known.fingerprint = op.fingerprint THEN 'replayed'
                WHEN known.fingerprint IS NOT NULL THEN 'idempotency_key_reused'
                WHEN row_number() OVER (PARTITION BY op.player_id ORDER BY op.item) > 1 THEN 'request_in_progress'
                WHEN op.client_seeds IS NULL THEN 'request_in_progress'  -- by a process from before this migration
                WHEN s.closed_at IS NOT NULL OR s.expires_at <= now() THEN 'session_expired'
                WHEN g.state IS DISTINCT FROM 'enabled' THEN 'game_unavailable'
                WHEN g.active_version_id <> op.paytable_version_id THEN 'paytable_changed'
                WHEN EXISTS (
                    SELECT FROM round AS r
                    WHERE r.player_id = op.player_id AND r.game = op.game AND r.mode = op.mode
                      AND r.state = 'awaiting_decision') THEN 'round_open'
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
            x.status, x.body_head || b.balance_minor || x.body_tail, x.opened_at
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
--   settled | replayed | idempotency_key_reused | request_in_progress | already_decided | insufficient_funds
-- The same decision again is a replay of the first answer, whatever its key.  The round's seed is revealed, and
-- `next`, the commitment of the player's next round, made; it is null where no random numbers can be had.
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
            settled_at timestamptz, seed bytea, next jsonb, next_audit text,
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
        FROM accepted AS x JOIN balance AS b USING (item)
        RETURNING cause_id, status, body
    )
    SELECT j.item, j.outcome,
        CASE j.outcome WHEN 'settled' THEN n.status WHEN 'replayed' THEN j.known_status END,
        CASE j.outcome WHEN 'settled' THEN n.body WHEN 'replayed' THEN j.known_body END
    FROM judged AS j LEFT JOIN answered AS n ON n.cause_id = j.round_id
    ORDER BY j.item;
END
$$;

GRANT SELECT ON commitment, committed_round, player_caller TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    operator_client_seeds(uuid, boolean, text),
    module_events_record(text[]),
    database_epoch(),
    latest_commitment(uuid, text, text),
    commitment_make(jsonb)
    TO casino_brag_app;
