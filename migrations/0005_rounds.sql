-- The game cycle.  A round's deal is stored before it is shown; the dealer's cards stay sealed until it is settled.

CREATE TABLE round (
    round_id            uuid        NOT NULL CONSTRAINT round_pkey PRIMARY KEY,
    session_id          uuid        NOT NULL CONSTRAINT round_session_fkey REFERENCES session,
    operator_id         uuid        NOT NULL,
    player_id           uuid        NOT NULL CONSTRAINT round_player_fkey REFERENCES player,
    account_id          uuid        NOT NULL CONSTRAINT round_account_fkey REFERENCES account,
    mode                text        NOT NULL,
    currency            text        NOT NULL,
    game                text        NOT NULL,
    paytable_version_id uuid        NOT NULL CONSTRAINT round_paytable_version_fkey REFERENCES paytable_version,
    rng_digest          text        NOT NULL,  -- SHA-256 over the random number module that dealt
    state               text        NOT NULL,
    opened_at           timestamptz NOT NULL,
    ante_minor          bigint      NOT NULL,
    pair_bonus_minor    bigint      NOT NULL,
    payout_max_minor    bigint      NOT NULL,  -- the most that these stakes could ever be paid
    player_cards        text[]      NOT NULL,
    sealed_deal         bytea       NOT NULL,  -- the deal's index: both hands, in the order dealt

    decision            text,
    play_minor          bigint,
    dealer_cards        text[],
    result              text,
    settlement          jsonb,
    total_staked_minor  bigint,
    total_payout_minor  bigint,
    settled_at          timestamptz,

    CONSTRAINT round_state_is_known CHECK (state IN ('awaiting_decision', 'settled')),
    CONSTRAINT round_stakes_an_ante CHECK (ante_minor > 0 AND pair_bonus_minor >= 0),
    CONSTRAINT round_deals_three_cards_each
        CHECK (cardinality(player_cards) = 3 AND (dealer_cards IS NULL OR cardinality(dealer_cards) = 3)),
    CONSTRAINT round_decision_is_known CHECK (decision IN ('play', 'fold')),
    CONSTRAINT round_plays_for_a_stake CHECK ((decision = 'play') = (play_minor > 0)),
    CONSTRAINT round_settled_is_complete CHECK ((state = 'settled') = (num_nulls(
        decision, play_minor, dealer_cards, result, settlement, total_staked_minor, total_payout_minor,
        settled_at) = 0)),
    CONSTRAINT round_shows_nothing_before_it_is_settled CHECK (state = 'settled' OR num_nonnulls(
        decision, play_minor, dealer_cards, result, settlement, total_staked_minor, total_payout_minor,
        settled_at) = 0),
    CONSTRAINT round_total_staked_is_the_sum
        CHECK (total_staked_minor = ante_minor + pair_bonus_minor + play_minor),
    CONSTRAINT round_payout_is_bounded CHECK (total_payout_minor BETWEEN 0 AND payout_max_minor)
);

-- A player has one open round in a game.  (Demonstration play and real play do not meet.)
CREATE UNIQUE INDEX round_one_is_open_per_player_and_game ON round (player_id, game, mode)
    WHERE state = 'awaiting_decision';
CREATE INDEX round_by_player ON round (player_id, round_id DESC);
CREATE INDEX round_by_session ON round (session_id);

CREATE TRIGGER round_settled_is_final
    BEFORE UPDATE ON round FOR EACH ROW WHEN (OLD.state = 'settled') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER round_settles_what_was_accepted
    BEFORE UPDATE ON round FOR EACH ROW WHEN (
        (OLD.round_id, OLD.session_id, OLD.operator_id, OLD.player_id, OLD.account_id, OLD.mode, OLD.currency,
         OLD.game, OLD.paytable_version_id, OLD.rng_digest, OLD.opened_at, OLD.ante_minor, OLD.pair_bonus_minor,
         OLD.payout_max_minor, OLD.player_cards, OLD.sealed_deal)
        IS DISTINCT FROM
        (NEW.round_id, NEW.session_id, NEW.operator_id, NEW.player_id, NEW.account_id, NEW.mode, NEW.currency,
         NEW.game, NEW.paytable_version_id, NEW.rng_digest, NEW.opened_at, NEW.ante_minor, NEW.pair_bonus_minor,
         NEW.payout_max_minor, NEW.player_cards, NEW.sealed_deal))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER round_is_kept
    BEFORE DELETE OR TRUNCATE ON round FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE round ENABLE ALWAYS TRIGGER round_settled_is_final;
ALTER TABLE round ENABLE ALWAYS TRIGGER round_settles_what_was_accepted;
ALTER TABLE round ENABLE ALWAYS TRIGGER round_is_kept;

-- A transfer that a round made belongs to a round that exists.
ALTER TABLE transfer
    ADD COLUMN round_id uuid GENERATED ALWAYS AS (
        CASE WHEN kind IN ('ante', 'pair_bonus', 'play', 'stakes', 'payout') THEN cause_id END) STORED,
    ADD CONSTRAINT transfer_round_fkey FOREIGN KEY (round_id) REFERENCES round;

-- Opens rounds: stakes to escrow, the deal, the answer and the audit entry, or nothing.  One outcome for each:
--   opened | replayed | idempotency_key_reused | request_in_progress | session_expired | game_unavailable
--   | paytable_changed | round_open | insufficient_funds | balance_limit_exceeded
-- Everything is judged after the players' rows are locked: a player's money moves one operation at a time.
CREATE FUNCTION round_open(ops jsonb)
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
            player_cards text[], sealed_deal bytea,
            idempotency_key text, fingerprint bytea, status smallint, body_head text, body_tail text, audit text
        )) WITH ORDINALITY AS t
    ), judged AS (
        SELECT op.*, op.ante_minor + op.pair_bonus_minor AS cost_minor, a.ledger_id,
            known.status AS known_status, known.body AS known_body,
            CASE
                WHEN known.fingerprint = op.fingerprint THEN 'replayed'
                WHEN known.fingerprint IS NOT NULL THEN 'idempotency_key_reused'
                WHEN row_number() OVER (PARTITION BY op.player_id ORDER BY op.item) > 1 THEN 'request_in_progress'
                WHEN s.closed_at IS NOT NULL OR s.expires_at <= now() THEN 'session_expired'
                WHEN g.state IS DISTINCT FROM 'enabled' THEN 'game_unavailable'
                WHEN g.active_version_id <> op.paytable_version_id THEN 'paytable_changed'
                WHEN EXISTS (
                    SELECT FROM round AS r
                    WHERE r.player_id = op.player_id AND r.game = op.game AND r.mode = op.mode
                      AND r.state = 'awaiting_decision') THEN 'round_open'
                WHEN a.balance_minor < op.ante_minor + op.pair_bonus_minor THEN 'insufficient_funds'
                WHEN a.balance_minor > op.balance_max_minor - op.payout_max_minor THEN 'balance_limit_exceeded'
                ELSE 'opened'
            END AS outcome
        FROM op
        JOIN session AS s ON s.session_id = op.session_id
        JOIN account AS a ON a.account_id = op.account_id
        LEFT JOIN game AS g ON g.game = op.game
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
            player_cards, sealed_deal)
        SELECT round_id, session_id, operator_id, player_id, account_id, mode, currency, game,
            paytable_version_id, rng_digest, 'awaiting_decision', opened_at, ante_minor, pair_bonus_minor,
            payout_max_minor, player_cards, sealed_deal
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
-- The same decision again is a replay of the first answer, whatever its key.
CREATE FUNCTION round_decide(ops jsonb)
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
            settled_at timestamptz,
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
        INSERT INTO audit_entry SELECT e.* FROM accepted AS x, audit_entry_of(x.audit) AS e
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

GRANT SELECT ON round TO casino_brag_app;
GRANT EXECUTE ON FUNCTION round_open(jsonb), round_decide(jsonb) TO casino_brag_app;
