-- Wallets of operators.  A player's money stays in the operator's own wallet, which is asked for each stake and given
-- each payout over HTTP.  The ledger keeps the same books as for the built-in wallet: what the wallet was debited comes
-- to the player's account the moment it is staked, and leaves it the moment the wallet has confirmed its credit.  So an
-- account of such a player holds exactly what the operator's wallet is still owed.

ALTER TABLE operator
    ADD COLUMN wallet_url text,  -- the operator's wallet; null: its players' real money is in the built-in one
    ADD COLUMN funding text NOT NULL DEFAULT 'two_debits',  -- whether Play is debited when it is played, or at the deal
    ADD COLUMN interruption_hours integer NOT NULL DEFAULT 720,
    ADD COLUMN interruption_policy text NOT NULL DEFAULT 'void',
    ADD CONSTRAINT operator_funding_is_known CHECK (funding IN ('two_debits', 'reserve')),
    ADD CONSTRAINT operator_interruption_is_bounded CHECK (interruption_hours BETWEEN 1 AND 17520),
    ADD CONSTRAINT operator_interruption_policy_is_known CHECK (interruption_policy IN ('fold', 'void'));

-- Who is calling, with what its operator has settled about money and interruptions.
CREATE VIEW session_caller AS
    SELECT c.*, CASE c.mode WHEN 'real' THEN o.wallet_url END AS wallet_url, o.funding, o.interruption_hours,
        o.interruption_policy
    FROM player_caller AS c JOIN operator AS o USING (operator_id);

-- What a wallet is asked, stored before it is asked.
-- purpose: stake (a debit), settlement or void (credits).
-- state: pending     the wallet has been asked or will be; for a debit only as long as a request waits for it
--        cancelling  it is not known whether the debit was done, so it is being cancelled until the wallet says so
--        done | refused | cancelled  the wallet's definite word
-- due_at: when whoever works on what is unfinished may take it up.
CREATE TABLE wallet_transaction (
    transaction_id uuid        NOT NULL CONSTRAINT wallet_transaction_pkey PRIMARY KEY,
    operator_id    uuid        NOT NULL CONSTRAINT wallet_transaction_operator_fkey REFERENCES operator,
    player_id      uuid        NOT NULL CONSTRAINT wallet_transaction_player_fkey REFERENCES player,
    account_id     uuid        NOT NULL CONSTRAINT wallet_transaction_account_fkey REFERENCES account,
    round_id       uuid        NOT NULL CONSTRAINT wallet_transaction_round_fkey REFERENCES commitment,
    purpose        text        NOT NULL,
    wager          text        NOT NULL,
    amount_minor   bigint      NOT NULL,
    state          text        NOT NULL,
    reason         text,  -- the wallet's, for refusing
    attempts       integer     NOT NULL DEFAULT 0,
    last_problem   text,
    begun_at       timestamptz NOT NULL,
    due_at         timestamptz,
    ended_at       timestamptz,
    CONSTRAINT wallet_transaction_purpose_is_known CHECK (purpose IN ('stake', 'settlement', 'void')),
    CONSTRAINT wallet_transaction_wager_is_of_its_purpose CHECK (
        CASE purpose WHEN 'stake' THEN wager IN ('ante', 'pair_bonus', 'play') ELSE wager = 'payout' END),
    CONSTRAINT wallet_transaction_amount_is_of_its_purpose CHECK (amount_minor > (purpose = 'stake')::integer - 1),
    CONSTRAINT wallet_transaction_state_is_of_its_purpose CHECK (
        state IN ('pending', 'done') OR (purpose = 'stake' AND state IN ('cancelling', 'refused', 'cancelled'))),
    CONSTRAINT wallet_transaction_refused_has_a_reason CHECK ((state = 'refused') = (reason IS NOT NULL)),
    CONSTRAINT wallet_transaction_unfinished_is_due CHECK (
        (state IN ('pending', 'cancelling')) = (due_at IS NOT NULL) AND (due_at IS NULL) = (ended_at IS NOT NULL))
);
-- A wager is debited once, however often it is tried; a round is paid once, and refunded once.
CREATE UNIQUE INDEX wallet_transaction_stakes_a_wager_once ON wallet_transaction (round_id, wager)
    WHERE purpose = 'stake' AND state IN ('pending', 'cancelling', 'done');
CREATE UNIQUE INDEX wallet_transaction_pays_once ON wallet_transaction (round_id, purpose) WHERE purpose <> 'stake';
CREATE INDEX wallet_transaction_unfinished ON wallet_transaction (operator_id, due_at) WHERE ended_at IS NULL;
CREATE INDEX wallet_transaction_unfinished_of_account ON wallet_transaction (account_id) WHERE ended_at IS NULL;

CREATE TRIGGER wallet_transaction_ended_is_final
    BEFORE UPDATE ON wallet_transaction FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER wallet_transaction_keeps_what_was_asked
    BEFORE UPDATE ON wallet_transaction FOR EACH ROW WHEN (
        (OLD.transaction_id, OLD.operator_id, OLD.player_id, OLD.account_id, OLD.round_id, OLD.purpose, OLD.wager,
         OLD.amount_minor, OLD.begun_at)
        IS DISTINCT FROM
        (NEW.transaction_id, NEW.operator_id, NEW.player_id, NEW.account_id, NEW.round_id, NEW.purpose, NEW.wager,
         NEW.amount_minor, NEW.begun_at)
        OR (OLD.state = 'cancelling' AND NEW.state NOT IN ('cancelling', 'cancelled')))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER wallet_transaction_is_kept
    BEFORE DELETE OR TRUNCATE ON wallet_transaction FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE wallet_transaction ENABLE ALWAYS TRIGGER wallet_transaction_ended_is_final;
ALTER TABLE wallet_transaction ENABLE ALWAYS TRIGGER wallet_transaction_keeps_what_was_asked;
ALTER TABLE wallet_transaction ENABLE ALWAYS TRIGGER wallet_transaction_is_kept;

-- Two more causes of transfers: a wallet's transaction, and a void.
ALTER TABLE transfer
    DROP CONSTRAINT transfer_kind_is_known,
    ADD CONSTRAINT transfer_kind_is_known CHECK (kind IN (
        'ante', 'pair_bonus', 'play',        -- player to escrow: a stake is committed
        'stakes', 'payout',                  -- escrow to house, house to player: a round is settled
        'refund',                            -- escrow, or house, to player: a round is voided
        'compensation',                      -- house to player: and would have won
        'deposit', 'withdrawal',             -- cashier to player, player to cashier
        'wallet_debit', 'wallet_credit',     -- cashier to player, player to cashier: an operator's wallet has answered
        'demo_money')),                      -- promotion to player
    DROP COLUMN round_id,
    ADD COLUMN round_id uuid GENERATED ALWAYS AS (CASE WHEN kind IN (
        'ante', 'pair_bonus', 'play', 'stakes', 'payout', 'refund', 'compensation') THEN cause_id END) STORED,
    ADD COLUMN wallet_transaction_id uuid GENERATED ALWAYS AS (
        CASE WHEN kind IN ('wallet_debit', 'wallet_credit') THEN cause_id END) STORED,
    ADD CONSTRAINT transfer_round_fkey FOREIGN KEY (round_id) REFERENCES round,
    ADD CONSTRAINT transfer_wallet_transaction_fkey FOREIGN KEY (wallet_transaction_id) REFERENCES wallet_transaction;

-- A transaction with what a wallet is told of it.
CREATE VIEW wallet_call AS
    SELECT t.transaction_id, t.operator_id, t.player_id, t.round_id, t.purpose, t.wager, t.amount_minor, t.begun_at,
        c.game, l.currency, p.reference AS player, t.last_problem IS NOT NULL AS tried_before
    FROM wallet_transaction AS t
    JOIN commitment AS c USING (round_id)
    JOIN player AS p ON p.player_id = t.player_id
    JOIN account AS a USING (account_id)
    JOIN ledger AS l USING (ledger_id);

-- Says where an operator's wallet is, and how Play is funded.
--   changed | players_have_money (real money was in the built-in wallet, and would be out of reach)
--   | unfinished (the wallet so far has still to say what became of something)
CREATE FUNCTION operator_wallet(the_operator uuid, the_url text, the_funding text, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    url_before text;
BEGIN
    -- Whoever opens the operator's books meanwhile waits: a ledger refers to its operator.
    SELECT wallet_url INTO url_before FROM operator WHERE operator_id = the_operator FOR UPDATE;
    IF url_before IS NULL AND EXISTS (
        SELECT FROM ledger AS l WHERE l.operator_id = the_operator AND l.mode = 'real') THEN
        RETURN 'players_have_money';
    ELSIF url_before <> the_url AND EXISTS (
        SELECT FROM wallet_transaction AS t WHERE t.operator_id = the_operator AND t.ended_at IS NULL) THEN
        RETURN 'unfinished';
    END IF;
    UPDATE operator SET wallet_url = the_url, funding = the_funding WHERE operator_id = the_operator;
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    RETURN 'changed';
END
$$;

-- Refuses deposits and withdrawals where the money is in the operator's own wallet.
CREATE FUNCTION refuse_deposit_beside_wallet() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM ledger AS l JOIN operator AS o USING (operator_id)
               WHERE l.ledger_id = NEW.ledger_id AND l.mode = 'real' AND o.wallet_url IS NOT NULL) THEN
        RAISE EXCEPTION 'the money of this operator''s players is in its own wallet'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER transfer_is_not_beside_the_operators_wallet
    BEFORE INSERT ON transfer FOR EACH ROW WHEN (NEW.kind IN ('deposit', 'withdrawal'))
    EXECUTE FUNCTION refuse_deposit_beside_wallet();
ALTER TABLE transfer ENABLE ALWAYS TRIGGER transfer_is_not_beside_the_operators_wallet;

-- Says how long an operator's interrupted rounds wait, and what becomes of them then.
CREATE FUNCTION operator_interruption(the_operator uuid, hours integer, policy text, audit text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE operator SET interruption_hours = hours, interruption_policy = policy WHERE operator_id = the_operator;
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit)
$$;

-- Stores the debits of a stake before the wallet is asked.  `decided`: for the Play of an open round, else for a deal.
--   reserved | wallet_unavailable | request_in_progress | payout_pending | round_open | commitment_changed
--   | already_decided | round_voided
-- While one is unfinished the player's money is somewhere between two books, and no other stake is begun.
CREATE FUNCTION wallet_reserve(op jsonb) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    the_round   uuid := op ->> 'round_id';
    the_player  uuid := op ->> 'player_id';
    the_account uuid := op ->> 'account_id';
    decided     boolean := op ->> 'decided';
    now_is      text;
    outcome     text;
BEGIN
    PERFORM players_lock(jsonb_build_array(op));
    SELECT state INTO now_is FROM round WHERE round_id = the_round;
    outcome := CASE
        WHEN EXISTS (SELECT FROM wallet_transaction AS t WHERE t.account_id = the_account AND t.state = 'cancelling')
            THEN 'wallet_unavailable'
        WHEN EXISTS (SELECT FROM wallet_transaction AS t WHERE t.account_id = the_account AND t.purpose = 'stake'
                     AND t.state = 'pending') THEN 'request_in_progress'
        WHEN decided THEN CASE now_is
            WHEN 'awaiting_decision' THEN 'reserved' WHEN 'voided' THEN 'round_voided' ELSE 'already_decided' END
        WHEN EXISTS (SELECT FROM wallet_transaction AS t WHERE t.account_id = the_account AND t.ended_at IS NULL)
            THEN 'payout_pending'
        WHEN EXISTS (SELECT FROM round AS r WHERE r.player_id = the_player AND r.game = op ->> 'game'
                     AND r.mode = op ->> 'mode' AND r.state = 'awaiting_decision') THEN 'round_open'
        WHEN now_is IS NOT NULL OR NOT EXISTS (
            SELECT FROM commitment AS c WHERE c.round_id = the_round AND c.ended_at IS NULL) THEN 'commitment_changed'
        ELSE 'reserved' END;
    IF outcome = 'reserved' THEN
        INSERT INTO wallet_transaction (transaction_id, operator_id, player_id, account_id, round_id, purpose, wager,
            amount_minor, state, begun_at, due_at)
        SELECT d.transaction_id, (op ->> 'operator_id')::uuid, the_player, the_account, the_round, 'stake', d.wager,
            d.amount_minor, 'pending', now(), now() + make_interval(secs => (op ->> 'lease_seconds')::integer)
        FROM jsonb_to_recordset(op -> 'debits') AS d (transaction_id uuid, wager text, amount_minor bigint);
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(op ->> 'audit');
    END IF;
    RETURN outcome;
END
$$;

-- Moves what transactions of one player moved at the wallet into, or out of, the player's account.
CREATE FUNCTION wallet_confirm(ids uuid[], audits text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    confirmed integer;
BEGIN
    PERFORM FROM player WHERE player_id IN (SELECT player_id FROM wallet_transaction WHERE transaction_id = ANY (ids))
        ORDER BY player_id FOR NO KEY UPDATE;
    WITH ended AS (
        UPDATE wallet_transaction SET state = 'done', ended_at = now(), due_at = NULL, last_problem = NULL
        WHERE transaction_id = ANY (ids) AND state = 'pending' RETURNING *
    ), moved AS (
        INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
        SELECT e.transaction_id, m.kind, a.ledger_id, m.from_account, m.to_account, e.amount_minor, now()
        FROM ended AS e
        JOIN account AS a USING (account_id)
        JOIN account AS cashier ON cashier.ledger_id = a.ledger_id AND cashier.kind = 'cashier'
        CROSS JOIN LATERAL (
            SELECT 'wallet_debit', cashier.account_id, a.account_id WHERE e.purpose = 'stake'
            UNION ALL SELECT 'wallet_credit', a.account_id, cashier.account_id WHERE e.purpose <> 'stake'
        ) AS m (kind, from_account, to_account)
        WHERE e.amount_minor > 0
    ), balance AS (
        UPDATE account AS a SET balance_minor = a.balance_minor + s.amount_minor
        FROM (SELECT account_id, sum(CASE purpose WHEN 'stake' THEN amount_minor ELSE -amount_minor END)::bigint
                  AS amount_minor FROM ended GROUP BY account_id) AS s
        WHERE a.account_id = s.account_id
    ), logged AS (
        INSERT INTO audit_entry SELECT e.* FROM unnest(audits) AS a, audit_entry_of(a) AS e
        WHERE EXISTS (SELECT FROM ended)
    )
    SELECT count(*) INTO confirmed FROM ended;
    RETURN confirmed;
END
$$;

-- Ends debits that did not come about, or sets them to being cancelled.  One that ended meanwhile is left alone.
CREATE FUNCTION wallet_give_up(ids uuid[], states text[], reasons text[], problems text[], audits text[])
    RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed integer;
BEGIN
    WITH given_up AS (
        UPDATE wallet_transaction AS t SET state = n.state, reason = n.reason, last_problem = n.problem,
            due_at = CASE n.state WHEN 'cancelling' THEN now() END,
            ended_at = CASE n.state WHEN 'cancelling' THEN NULL ELSE now() END
        FROM unnest(ids, states, reasons, problems) AS n (transaction_id, state, reason, problem)
        WHERE t.transaction_id = n.transaction_id AND t.purpose = 'stake'
          AND (t.state = 'pending' OR (t.state = 'cancelling' AND n.state = 'cancelled'))
        RETURNING t.transaction_id
    ), logged AS (
        INSERT INTO audit_entry SELECT e.* FROM unnest(ids, audits) AS n (transaction_id, audit)
        JOIN given_up USING (transaction_id) CROSS JOIN LATERAL audit_entry_of(n.audit) AS e
    )
    SELECT count(*) INTO changed FROM given_up;
    RETURN changed;
END
$$;

-- Operators with unfinished transactions that may be taken up.
CREATE VIEW wallet_due AS
    SELECT operator_id, count(*) AS transactions, min(due_at) AS since
    FROM wallet_transaction WHERE ended_at IS NULL AND due_at <= now() GROUP BY operator_id;

-- Hands out some of what is due of an operator, what was tried least first: a transaction that its wallet cannot do
-- stands in nobody's way.  Nobody else gets it for `lease_seconds`.
-- A debit that nobody waits for any more is cancelled.
CREATE FUNCTION wallet_claim(the_operator uuid, at_most integer, lease_seconds integer) RETURNS SETOF uuid
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE wallet_transaction AS t SET attempts = t.attempts + 1, due_at = now() + make_interval(secs => lease_seconds),
        state = CASE t.purpose WHEN 'stake' THEN 'cancelling' ELSE t.state END
    WHERE t.transaction_id IN (
        SELECT d.transaction_id FROM wallet_transaction AS d
        WHERE d.operator_id = the_operator AND d.ended_at IS NULL AND d.due_at <= now()
        ORDER BY d.attempts, d.due_at LIMIT at_most FOR UPDATE SKIP LOCKED)
    RETURNING t.transaction_id
$$;

-- Puts a transaction off that the wallet gave no definite word on: 1 s, 2 s, 4 s … 64 s, a little scattered.
CREATE FUNCTION wallet_postpone(the_transaction uuid, problem text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE wallet_transaction SET last_problem = problem,
        due_at = now() + make_interval(secs => 2 ^ least(attempts, 6) * (0.75 + random() / 2))
    WHERE transaction_id = the_transaction AND ended_at IS NULL
$$;

-- Has everything of an operator taken up at once: its wallet answers again.  So is what a clock that was set back has
-- put further off than anything is ever put off.
CREATE FUNCTION wallet_resume(the_operator uuid) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE wallet_transaction SET due_at = now()
    WHERE transaction_id IN (
        SELECT transaction_id FROM wallet_transaction
        WHERE operator_id = the_operator AND ended_at IS NULL
          AND (last_problem IS NOT NULL AND due_at > now() OR due_at > now() + interval '2 minutes')
        FOR UPDATE SKIP LOCKED)
$$;

GRANT SELECT ON wallet_transaction, session_caller, wallet_call, wallet_due TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    operator_wallet(uuid, text, text, text),
    operator_interruption(uuid, integer, text, text),
    wallet_reserve(jsonb),
    wallet_confirm(uuid[], text[]),
    wallet_give_up(uuid[], text[], text[], text[], text[]),
    wallet_claim(uuid, integer, integer),
    wallet_postpone(uuid, text),
    wallet_resume(uuid)
    TO casino_brag_app;
