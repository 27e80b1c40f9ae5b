-- The built-in wallet: double entry.  A transfer takes from one account and gives to another, so every ledger's
-- accounts sum to zero by construction, and nothing is ever corrected but by another transfer.

-- One operator's books in one currency, for real or for demonstration.  No transfer leaves its ledger.
CREATE TABLE ledger (
    ledger_id   uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT ledger_pkey PRIMARY KEY,
    operator_id uuid NOT NULL CONSTRAINT ledger_operator_fkey REFERENCES operator,
    currency    text NOT NULL,
    mode        text NOT NULL CONSTRAINT ledger_mode_is_known CHECK (mode IN ('real', 'demo')),
    CONSTRAINT ledger_is_one_per_operator_currency_and_mode UNIQUE (operator_id, currency, mode)
);

-- player: a player's money.    escrow: stakes of open rounds.    house: what the game has won and lost.
-- cashier: the world outside (deposits come from it, withdrawals go to it).    promotion: pays for demo money.
-- Only a player's balance is kept on its row: the others are sums, so that no row is everybody's.
CREATE TABLE account (
    account_id    uuid   NOT NULL DEFAULT gen_random_uuid() CONSTRAINT account_pkey PRIMARY KEY,
    ledger_id     uuid   NOT NULL CONSTRAINT account_ledger_fkey REFERENCES ledger,
    kind          text   NOT NULL,
    player_id     uuid   CONSTRAINT account_player_fkey REFERENCES player,
    balance_minor bigint,
    CONSTRAINT account_kind_is_known CHECK (kind IN ('player', 'escrow', 'house', 'cashier', 'promotion')),
    CONSTRAINT account_of_a_player_has_a_balance
        CHECK ((kind = 'player') = (player_id IS NOT NULL) AND (kind = 'player') = (balance_minor IS NOT NULL)),
    CONSTRAINT account_balance_is_never_negative CHECK (balance_minor >= 0),
    CONSTRAINT account_is_one_per_owner UNIQUE NULLS NOT DISTINCT (ledger_id, kind, player_id),
    CONSTRAINT account_stands_in_its_ledger UNIQUE (account_id, ledger_id)
);

-- `cause_id` is the round, deposit or withdrawal that moved the money; each moves each kind at most once.
CREATE TABLE transfer (
    cause_id     uuid        NOT NULL,
    kind         text        NOT NULL,
    ledger_id    uuid        NOT NULL,
    from_account uuid        NOT NULL,
    to_account   uuid        NOT NULL,
    amount_minor bigint      NOT NULL CONSTRAINT transfer_moves_something CHECK (amount_minor > 0),
    made_at      timestamptz NOT NULL,
    CONSTRAINT transfer_is_made_once PRIMARY KEY (cause_id, kind),
    CONSTRAINT transfer_kind_is_known CHECK (kind IN (
        'ante', 'pair_bonus', 'play',        -- player to escrow: a stake is committed
        'stakes', 'payout',                  -- escrow to house, house to player: a round is settled
        'deposit', 'withdrawal',             -- cashier to player, player to cashier
        'demo_money')),                      -- promotion to player
    CONSTRAINT transfer_has_two_accounts CHECK (from_account <> to_account),
    CONSTRAINT transfer_from_fkey FOREIGN KEY (from_account, ledger_id) REFERENCES account (account_id, ledger_id),
    CONSTRAINT transfer_to_fkey FOREIGN KEY (to_account, ledger_id) REFERENCES account (account_id, ledger_id)
);
CREATE INDEX transfer_from_account ON transfer (from_account, made_at);
CREATE INDEX transfer_to_account ON transfer (to_account, made_at);
CREATE TRIGGER transfer_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON transfer
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE transfer ENABLE ALWAYS TRIGGER transfer_is_append_only;

-- The first answer to each idempotency key, byte for byte.
-- `fingerprint` is SHA-256 over the method, the path and the request; `cause_id` is what the request made.
CREATE TABLE answer (
    operator_id     uuid        NOT NULL,
    player_id       uuid        NOT NULL CONSTRAINT answer_player_fkey REFERENCES player,
    idempotency_key text        NOT NULL,
    fingerprint     bytea       NOT NULL,
    operation       text        NOT NULL,
    cause_id        uuid        NOT NULL,
    status          smallint    NOT NULL,
    body            text        NOT NULL,
    answered_at     timestamptz NOT NULL,
    CONSTRAINT answer_pkey PRIMARY KEY (operator_id, player_id, idempotency_key),
    CONSTRAINT answer_operation_is_known CHECK (operation IN ('open', 'decide', 'deposit', 'withdrawal')),
    CONSTRAINT answer_key_is_short CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    CONSTRAINT answer_is_one_per_operation UNIQUE (cause_id, operation)
);
CREATE TRIGGER answer_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON answer
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE answer ENABLE ALWAYS TRIGGER answer_is_append_only;

-- A player's time at the table, and the proof of who is calling: only the token's SHA-256 is kept.
CREATE TABLE session (
    session_id   uuid        NOT NULL CONSTRAINT session_pkey PRIMARY KEY,
    token_hash   bytea       NOT NULL CONSTRAINT session_token_is_known_once UNIQUE,
    operator_id  uuid        NOT NULL CONSTRAINT session_operator_fkey REFERENCES operator,
    player_id    uuid        NOT NULL CONSTRAINT session_player_fkey REFERENCES player,
    account_id   uuid        NOT NULL CONSTRAINT session_account_fkey REFERENCES account,
    currency     text        NOT NULL,
    mode         text        NOT NULL CONSTRAINT session_mode_is_known CHECK (mode IN ('real', 'demo')),
    game         text,
    jurisdiction text        NOT NULL,
    channel      text,
    language     text        NOT NULL,
    test         boolean     NOT NULL,
    return_url   text,
    opened_at    timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    closed_at    timestamptz,
    CONSTRAINT session_ends_after_it_began CHECK (expires_at > opened_at)
);
CREATE INDEX session_by_player ON session (player_id);

-- Who is calling, as a token shows it: the session with its operator, player and balance, read at one instant.
CREATE VIEW caller AS
    SELECT s.token_hash, s.session_id, s.operator_id, o.name AS operator, s.player_id, p.reference AS player,
        s.account_id, s.currency, s.mode, s.game AS session_game, s.jurisdiction, s.language, s.return_url, s.test,
        s.opened_at AS session_opened_at, s.expires_at, a.balance_minor,
        s.closed_at IS NULL AND s.expires_at > now() AS live, now() AS read_at
    FROM session AS s
    JOIN operator AS o USING (operator_id)
    JOIN player AS p USING (player_id)
    JOIN account AS a USING (account_id);

-- Opens the books of an operator in a currency and mode, once.
CREATE FUNCTION ledger_for(the_operator uuid, the_currency text, the_mode text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found uuid;
BEGIN
    SELECT ledger_id INTO found FROM ledger
        WHERE operator_id = the_operator AND currency = the_currency AND mode = the_mode;
    IF found IS NULL THEN
        INSERT INTO ledger (operator_id, currency, mode) VALUES (the_operator, the_currency, the_mode)
            ON CONFLICT DO NOTHING;
        SELECT ledger_id INTO STRICT found FROM ledger
            WHERE operator_id = the_operator AND currency = the_currency AND mode = the_mode;
        INSERT INTO account (ledger_id, kind)
            SELECT found, kind FROM unnest(ARRAY['escrow', 'house', 'cashier', 'promotion']) AS kind
            ON CONFLICT DO NOTHING;
    END IF;
    RETURN found;
END
$$;

-- The player an operator calls `the_reference`, and its account; both made on first mention.
CREATE FUNCTION player_account(
    the_operator uuid, the_reference text, the_currency text, the_mode text, new_player uuid
) RETURNS TABLE (player_id uuid, account_id uuid, ledger_id uuid)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO player (player_id, operator_id, reference, added_at)
        VALUES (new_player, the_operator, the_reference, now())
        ON CONFLICT (operator_id, reference) DO NOTHING;
    SELECT p.player_id INTO STRICT player_id FROM player AS p
        WHERE p.operator_id = the_operator AND p.reference = the_reference;
    ledger_id := ledger_for(the_operator, the_currency, the_mode);
    INSERT INTO account AS a (ledger_id, kind, player_id, balance_minor)
        VALUES (player_account.ledger_id, 'player', player_account.player_id, 0)
        ON CONFLICT DO NOTHING;
    SELECT a.account_id INTO STRICT account_id FROM account AS a
        WHERE a.ledger_id = player_account.ledger_id AND a.player_id = player_account.player_id
          AND a.kind = 'player';
    RETURN NEXT;
END
$$;

-- Holds the players of a list of operations until the transaction ends: a player's money moves one operation at a
-- time.  In order of id, so that no two lists wait for each other in a ring.
CREATE FUNCTION players_lock(ops jsonb) RETURNS void
    LANGUAGE sql SET search_path = public, pg_temp AS $$
    SELECT FROM player WHERE player_id IN (SELECT (op ->> 'player_id')::uuid FROM jsonb_array_elements(ops) AS op)
        ORDER BY player_id FOR NO KEY UPDATE
$$;

-- The set-based functions get a handful of operations, each found by its keys; plans made for a hundred would read
-- whole tables, so they are told not to.

-- Deposits and withdrawals: one status for each operation.
--   moved | replayed | idempotency_key_reused | insufficient_funds | balance_limit_exceeded | request_in_progress
-- The answer's body is written here, because only here the balance is known: head, balance, tail.
CREATE FUNCTION wallet_move(ops jsonb)
    RETURNS TABLE (item bigint, outcome text, status smallint, body text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM players_lock(ops);
    RETURN QUERY
    WITH op AS (
        SELECT t.*, t.ordinality AS item FROM ROWS FROM (jsonb_to_recordset(ops) AS (
            movement_id uuid, direction text, operator_id uuid, player_id uuid, account_id uuid, ledger_id uuid,
            amount_minor bigint, balance_max_minor bigint, made_at timestamptz,
            idempotency_key text, fingerprint bytea, status smallint, body_head text, body_tail text, audit text
        )) WITH ORDINALITY AS t
    ), judged AS (
        SELECT op.*, known.status AS known_status, known.body AS known_body,
            CASE
                WHEN known.fingerprint = op.fingerprint THEN 'replayed'
                WHEN known.fingerprint IS NOT NULL THEN 'idempotency_key_reused'
                WHEN row_number() OVER (PARTITION BY op.player_id ORDER BY op.item) > 1 THEN 'request_in_progress'
                WHEN op.direction = 'withdrawal' AND a.balance_minor < op.amount_minor THEN 'insufficient_funds'
                WHEN op.direction = 'deposit' AND a.balance_minor > op.balance_max_minor - op.amount_minor
                    THEN 'balance_limit_exceeded'
                ELSE 'moved'
            END AS outcome
        FROM op
        JOIN account AS a USING (account_id)
        LEFT JOIN answer AS known ON (known.operator_id, known.player_id, known.idempotency_key)
            = (op.operator_id, op.player_id, op.idempotency_key)
    ), accepted AS (
        SELECT * FROM judged WHERE outcome = 'moved'
    ), balance AS (
        UPDATE account AS a SET balance_minor = a.balance_minor
            + CASE x.direction WHEN 'deposit' THEN x.amount_minor ELSE -x.amount_minor END
        FROM accepted AS x WHERE a.account_id = x.account_id
        RETURNING x.item, a.balance_minor
    ), moved AS (
        INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
        SELECT x.movement_id, x.direction, x.ledger_id,
            CASE x.direction WHEN 'deposit' THEN cashier.account_id ELSE x.account_id END,
            CASE x.direction WHEN 'deposit' THEN x.account_id ELSE cashier.account_id END,
            x.amount_minor, x.made_at
        FROM accepted AS x
        JOIN account AS cashier ON cashier.ledger_id = x.ledger_id AND cashier.kind = 'cashier'
    ), logged AS (
        INSERT INTO audit_entry SELECT e.* FROM accepted AS x, audit_entry_of(x.audit) AS e
    ), answered AS (
        INSERT INTO answer (operator_id, player_id, idempotency_key, fingerprint, operation, cause_id,
                            status, body, answered_at)
        SELECT x.operator_id, x.player_id, x.idempotency_key, x.fingerprint, x.direction, x.movement_id,
            x.status, x.body_head || b.balance_minor || x.body_tail, x.made_at
        FROM accepted AS x JOIN balance AS b USING (item)
        RETURNING cause_id, status, body
    )
    SELECT j.item, j.outcome,
        CASE j.outcome WHEN 'moved' THEN n.status WHEN 'replayed' THEN j.known_status END,
        CASE j.outcome WHEN 'moved' THEN n.body WHEN 'replayed' THEN j.known_body END
    FROM judged AS j LEFT JOIN answered AS n ON n.cause_id = j.movement_id
    ORDER BY j.item;
END
$$;

-- Opens a session, given as a row of its table.  A demo account that holds less than `demo_floor_minor` is filled to it.
CREATE FUNCTION session_open(row_of_session jsonb, demo_floor_minor bigint, audit text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    opened  session := jsonb_populate_record(NULL::session, row_of_session);
    missing bigint;
BEGIN
    INSERT INTO session SELECT opened.*;
    IF opened.mode = 'demo' THEN
        PERFORM FROM player WHERE player_id = opened.player_id FOR NO KEY UPDATE;
        SELECT demo_floor_minor - balance_minor INTO missing FROM account WHERE account_id = opened.account_id;
        IF missing > 0 THEN
            UPDATE account SET balance_minor = balance_minor + missing WHERE account_id = opened.account_id;
            INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
                SELECT opened.session_id, 'demo_money', p.ledger_id, p.account_id, a.account_id, missing,
                    opened.opened_at
                FROM account AS a JOIN account AS p ON p.ledger_id = a.ledger_id AND p.kind = 'promotion'
                WHERE a.account_id = opened.account_id;
        END IF;
    END IF;
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
END
$$;

-- Ends a session; true when it was open.  A round that is being opened on it is opened before, or not at all.
CREATE FUNCTION session_close(the_operator uuid, the_session uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM player WHERE player_id = (
        SELECT player_id FROM session WHERE operator_id = the_operator AND session_id = the_session)
        FOR NO KEY UPDATE;
    UPDATE session SET closed_at = now()
        WHERE operator_id = the_operator AND session_id = the_session AND closed_at IS NULL;
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    RETURN FOUND;
END
$$;

GRANT SELECT ON ledger, account, transfer, answer, session, caller TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    player_account(uuid, text, text, text, uuid),
    wallet_move(jsonb),
    session_open(jsonb, bigint, text),
    session_close(uuid, uuid, text)
    TO casino_brag_app;
