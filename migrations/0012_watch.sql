-- The watch over live play: what settled rounds took and paid beside what their cards and decisions let expect.
--
-- Everything here follows from entries of the log, read in the order of their leaves; no settlement waits for it.

-- Rounds of a time, in their order: what replay reads.
CREATE INDEX round_by_time ON round (opened_at, round_id);

-- How far the log has been added up: every leaf before `next_leaf` is, none from there on.  Dealt cards are evidence in
-- the order of their deals; `dealt_at` and `dealt_id` are when the last one was opened that was taken, and which.
CREATE TABLE rtp_cursor (
    one_row   boolean     NOT NULL DEFAULT true CONSTRAINT rtp_cursor_pkey PRIMARY KEY,
    next_leaf bigint      NOT NULL,
    dealt_at  timestamptz NOT NULL,
    dealt_id  uuid        NOT NULL,
    CONSTRAINT rtp_cursor_is_one_row CHECK (one_row)
);
INSERT INTO rtp_cursor (next_leaf, dealt_at, dealt_id)
    VALUES (0, 'epoch', '00000000-0000-0000-0000-000000000000');

-- Sums over the settled rounds of a day (UTC) that agree in all of this.  `wager` is main (Ante, Play and Ante Bonus)
-- or pair_bonus; its base is the Ante or the Pair Bonus, and `stake_band` counts half powers of ten of the least base
-- that the paytable allows.  `expected` is what hand and decision let expect of the payout, over the 18,424 hands that
-- the dealer can have: × 18,424, so that it is whole; `variance` × 18,424².  A round that is voided moves to that kind
-- of play.
CREATE TABLE rtp_bucket (
    paytable_version_id uuid    NOT NULL CONSTRAINT rtp_bucket_paytable_version_fkey REFERENCES paytable_version,
    day                 date    NOT NULL,
    wager               text    NOT NULL,
    play                text    NOT NULL,
    operator_id         uuid    NOT NULL,
    currency            text    NOT NULL,
    channel             text,
    stake_band          integer NOT NULL,
    rounds              bigint  NOT NULL,
    base_minor          numeric NOT NULL,
    base_squares        numeric NOT NULL,
    staked_minor        numeric NOT NULL,
    returned_minor      numeric NOT NULL,
    expected            numeric NOT NULL,
    variance            numeric NOT NULL,
    CONSTRAINT rtp_bucket_is_one UNIQUE NULLS NOT DISTINCT
        (paytable_version_id, day, wager, play, operator_id, currency, channel, stake_band),
    CONSTRAINT rtp_bucket_wager_is_known CHECK (wager IN ('main', 'pair_bonus')),
    CONSTRAINT rtp_bucket_play_is_known CHECK (play IN ('real', 'demo', 'test', 'voided'))
);

-- What was dealt: how often each category came (high card, pair, flush, run, running flush, prial), and each card (0 to
-- 51) at each place: 52 counts for the player's first card, 52 for the second, up to the dealer's third.
CREATE TABLE rtp_dealt (
    paytable_version_id uuid     NOT NULL CONSTRAINT rtp_dealt_paytable_version_fkey REFERENCES paytable_version,
    day                 date     NOT NULL,
    play                text     NOT NULL,
    rounds              bigint   NOT NULL,
    player_categories   bigint[] NOT NULL,
    dealer_categories   bigint[] NOT NULL,
    cards               bigint[] NOT NULL,
    CONSTRAINT rtp_dealt_is_one PRIMARY KEY (paytable_version_id, day, play),
    CONSTRAINT rtp_dealt_play_is_known CHECK (play IN ('real', 'demo', 'test', 'voided')),
    CONSTRAINT rtp_dealt_counts_all CHECK (cardinality(player_categories) = 6
        AND cardinality(dealer_categories) = 6 AND cardinality(cards) = 312)
);

-- The numbers of the deals of a day, of all versions and kinds of play, in parts as they were read: 8 bytes a round,
-- so that a day's are compared with one another without reading a round.
CREATE TABLE rtp_deals (
    first_leaf   bigint   NOT NULL,
    day          date     NOT NULL,
    deal_indexes bigint[] NOT NULL,
    CONSTRAINT rtp_deals_pkey PRIMARY KEY (day, first_leaf)
);

-- The evidence against a version's rules, over real play that is no test, as casino_brag/watch/evidence.py has it.
-- `level` is the highest it has reached.  It begins anew when the version's case is closed.
CREATE TABLE rtp_evidence (
    paytable_version_id uuid             NOT NULL CONSTRAINT rtp_evidence_pkey PRIMARY KEY
                                         CONSTRAINT rtp_evidence_paytable_version_fkey REFERENCES paytable_version,
    begun_at            timestamptz      NOT NULL,
    rounds              bigint           NOT NULL,
    log_e               double precision NOT NULL,
    level               text             NOT NULL,
    state               jsonb            NOT NULL,
    CONSTRAINT rtp_evidence_level_is_known CHECK (level IN ('none', 'warn', 'alert', 'suspend'))
);

-- What became of an alert: who looked into it, and how it ended.  A version has one case at a time.
CREATE TABLE rtp_case (
    case_id             uuid        NOT NULL CONSTRAINT rtp_case_pkey PRIMARY KEY,
    paytable_version_id uuid        NOT NULL CONSTRAINT rtp_case_paytable_version_fkey REFERENCES paytable_version,
    level               text        NOT NULL,
    state               text        NOT NULL,
    opened_at           timestamptz NOT NULL,
    changed_at          timestamptz NOT NULL,
    CONSTRAINT rtp_case_level_is_known CHECK (level IN ('alert', 'suspend')),
    CONSTRAINT rtp_case_state_is_known CHECK (state IN ('open', 'investigated', 'closed'))
);
CREATE UNIQUE INDEX rtp_case_one_is_open ON rtp_case (paytable_version_id) WHERE state <> 'closed';
CREATE TABLE rtp_case_change (
    case_id    uuid        NOT NULL CONSTRAINT rtp_case_change_case_fkey REFERENCES rtp_case,
    number     integer     NOT NULL,
    changed_at timestamptz NOT NULL,
    actor      text        NOT NULL,
    state      text        NOT NULL,
    note       text        NOT NULL,
    CONSTRAINT rtp_case_change_pkey PRIMARY KEY (case_id, number),
    CONSTRAINT rtp_case_change_has_a_note CHECK (length(note) BETWEEN 1 AND 500)
);
CREATE TRIGGER rtp_case_closed_is_final
    BEFORE UPDATE ON rtp_case FOR EACH ROW WHEN (OLD.state = 'closed') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER rtp_case_is_kept
    BEFORE DELETE OR TRUNCATE ON rtp_case FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER rtp_case_change_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON rtp_case_change FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE rtp_case ENABLE ALWAYS TRIGGER rtp_case_closed_is_final;
ALTER TABLE rtp_case ENABLE ALWAYS TRIGGER rtp_case_is_kept;
ALTER TABLE rtp_case_change ENABLE ALWAYS TRIGGER rtp_case_change_is_append_only;

-- The checks that were made: one a day (UTC) of what was settled until then, and those that somebody asked for.
CREATE TABLE rtp_check (
    check_id  uuid        NOT NULL CONSTRAINT rtp_check_pkey PRIMARY KEY,
    day       date        NOT NULL,
    scheduled boolean     NOT NULL,
    made_at   timestamptz NOT NULL,
    result    jsonb       NOT NULL
);
CREATE UNIQUE INDEX rtp_check_is_made_once_a_day ON rtp_check (day) WHERE scheduled;
CREATE TRIGGER rtp_check_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON rtp_check FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE rtp_check ENABLE ALWAYS TRIGGER rtp_check_is_append_only;

-- One at a time: true for whoever adds up, or changes a case, until its transaction ends.
CREATE FUNCTION rtp_take(wait boolean) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF wait THEN
        PERFORM pg_advisory_xact_lock(hashtext('casino_brag rtp'));
        RETURN true;
    END IF;
    RETURN pg_try_advisory_xact_lock(hashtext('casino_brag rtp'));
END
$$;

-- The settlements among some leaves, as they were recorded: to be added (`sign` 1) to their kind of play.  What a void
-- among the leaves takes back is to be taken away from there (-1) and added to `voided`.
CREATE FUNCTION rtp_pending(from_leaf bigint, until_leaf bigint) RETURNS TABLE (
    sign integer, play text, opened_at timestamptz, settled_at timestamptz, deal_index bigint, decision text, player_cards jsonb,
    dealer_cards jsonb, wagers jsonb, paytable_version_id uuid, operator_id uuid, currency text, channel text
)
    LANGUAGE sql STABLE
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
    WITH told AS MATERIALIZED (
        SELECT l.leaf_index, e.type, e.round_id, e.occurred_at, e.before, e.payload
        FROM audit_leaf AS l JOIN audit_entry AS e USING (entry_id)
        WHERE l.leaf_index >= from_leaf AND l.leaf_index < until_leaf AND e.type IN ('round.settled', 'round.voided')
    ), settled AS (
        SELECT t.leaf_index, 1 AS sign, NULL AS play, t.round_id, t.occurred_at, t.payload
        FROM told AS t WHERE t.type = 'round.settled'
        UNION ALL
        SELECT t.leaf_index, moved.sign, moved.play, t.round_id, e.occurred_at, e.payload
        FROM told AS t JOIN audit_entry AS e ON e.round_id = t.round_id AND e.type = 'round.settled'
        CROSS JOIN (VALUES (-1, NULL), (1, 'voided')) AS moved (sign, play)
        WHERE t.type = 'round.voided' AND t.before ->> 'state' = 'settled'
    )
    SELECT x.sign, coalesce(x.play, CASE WHEN s.test THEN 'test' ELSE r.mode END), r.opened_at, x.occurred_at,
        (x.payload ->> 'deal_index')::bigint, x.payload ->> 'decision', x.payload -> 'player_cards',
        x.payload -> 'dealer_cards', x.payload -> 'wagers', r.paytable_version_id, r.operator_id, r.currency, s.channel
    FROM settled AS x
    JOIN round AS r ON r.round_id = x.round_id
    JOIN session AS s ON s.session_id = r.session_id
    ORDER BY x.leaf_index
$$;

-- The rounds after one in the order of their deals, up to the first one of real play that is not over yet; up to what
-- was settled before the leaf `until_leaf`; and up to `lag_seconds` ago, when all that was to be opened has been.
-- None is left out for having waited, or for having been voided: whoever has poor cards may do nothing, and the cards of
-- the others would not be fair ones.  A day after the longest time that an operator lets rounds wait nothing is waited
-- for: there the service has failed.  A round whose deal could not be opened any more has no `cards`.
CREATE FUNCTION rtp_dealt_next(
    after_at timestamptz, after_id uuid, until_leaf bigint, lag_seconds integer, at_most integer
)
    RETURNS TABLE (opened_at timestamptz, round_id uuid, paytable_version_id uuid, is_real boolean, cards text[])
    LANGUAGE sql STABLE
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
    SELECT r.opened_at, r.round_id, r.paytable_version_id, r.mode = 'real' AND NOT s.test,
        CASE WHEN cardinality(r.player_cards || dealer.cards) = 6 THEN r.player_cards || dealer.cards END
    FROM round AS r JOIN session AS s ON s.session_id = r.session_id
    CROSS JOIN LATERAL (SELECT coalesce(r.dealer_cards, (
        SELECT array_agg(card ORDER BY place) FROM audit_entry AS e
        CROSS JOIN jsonb_array_elements_text(e.payload -> 'dealer_cards') WITH ORDINALITY AS t (card, place)
        WHERE e.round_id = r.round_id AND e.type = 'round.voided'))) AS dealer (cards)
    WHERE (r.opened_at, r.round_id) > (after_at, after_id)
      AND r.opened_at < (SELECT least(
        now() - make_interval(secs => lag_seconds),
        (SELECT e.occurred_at FROM audit_leaf AS l JOIN audit_entry AS e USING (entry_id)
         WHERE l.leaf_index = until_leaf),
        (SELECT min(w.opened_at) FROM round AS w WHERE w.state = 'awaiting_decision' AND w.mode = 'real'
           AND w.opened_at >= now() - (SELECT make_interval(hours => max(o.interruption_hours) + 24) FROM operator AS o))))
    ORDER BY r.opened_at, r.round_id LIMIT at_most
$$;

-- The sums of two arrays, place by place.
CREATE FUNCTION rtp_sums(a bigint[], b bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(x + y ORDER BY place) FROM unnest(a, b) WITH ORDINALITY AS t (x, y, place)
$$;

-- Adds what the leaves from `from_leaf` to before `until_leaf` tell: all of it, once, or nothing.
-- `evidence` is what it has become with that and with the deals up to `dealt_to`; everything else is added to what
-- there is.
CREATE FUNCTION rtp_accumulate(
    from_leaf bigint, until_leaf bigint, buckets jsonb, dealt jsonb, deals jsonb,
    dealt_to_at timestamptz, dealt_to_id uuid, evidence jsonb
) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE rtp_cursor SET next_leaf = until_leaf, dealt_at = dealt_to_at, dealt_id = dealt_to_id
        WHERE next_leaf = from_leaf AND (dealt_to_at, dealt_to_id) >= (dealt_at, dealt_id)
          AND (until_leaf = from_leaf OR until_leaf > from_leaf
               AND EXISTS (SELECT FROM audit_leaf WHERE leaf_index = until_leaf - 1));
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the leaves from % to % are not the next', from_leaf, until_leaf
            USING ERRCODE = 'restrict_violation', HINT = 'Read rtp_cursor while rtp_take holds.';
    END IF;
    INSERT INTO rtp_bucket AS b SELECT * FROM jsonb_populate_recordset(NULL::rtp_bucket, buckets)
        ON CONFLICT ON CONSTRAINT rtp_bucket_is_one DO UPDATE SET
            rounds = b.rounds + excluded.rounds, base_minor = b.base_minor + excluded.base_minor,
            base_squares = b.base_squares + excluded.base_squares,
            staked_minor = b.staked_minor + excluded.staked_minor,
            returned_minor = b.returned_minor + excluded.returned_minor,
            expected = b.expected + excluded.expected, variance = b.variance + excluded.variance;
    INSERT INTO rtp_dealt AS d SELECT * FROM jsonb_populate_recordset(NULL::rtp_dealt, dealt)
        ON CONFLICT ON CONSTRAINT rtp_dealt_is_one DO UPDATE SET
            rounds = d.rounds + excluded.rounds,
            player_categories = rtp_sums(d.player_categories, excluded.player_categories),
            dealer_categories = rtp_sums(d.dealer_categories, excluded.dealer_categories),
            cards = rtp_sums(d.cards, excluded.cards);
    INSERT INTO rtp_deals (first_leaf, day, deal_indexes)
        SELECT from_leaf, d.day, d.deal_indexes FROM jsonb_populate_recordset(NULL::rtp_deals, deals) AS d;
    -- No check comes so late.
    DELETE FROM rtp_deals WHERE day < (now() AT TIME ZONE 'UTC')::date - 40;
    INSERT INTO rtp_evidence SELECT * FROM jsonb_populate_recordset(NULL::rtp_evidence, evidence)
        ON CONFLICT ON CONSTRAINT rtp_evidence_pkey DO UPDATE SET
            rounds = excluded.rounds, log_e = excluded.log_e, level = excluded.level, state = excluded.state;
END
$$;

-- Puts an alert on record and opens a case of it, or adds it to the version's open one, which is `the_case` then.
CREATE FUNCTION rtp_alert(
    the_case uuid, the_version uuid, the_level text, the_actor text, the_note text, audit text, case_audit text
) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    is_new boolean := NOT EXISTS (SELECT FROM rtp_case WHERE case_id = the_case);
BEGIN
    INSERT INTO rtp_case AS c (case_id, paytable_version_id, level, state, opened_at, changed_at)
    VALUES (the_case, the_version, the_level, 'open', now(), now())
    ON CONFLICT ON CONSTRAINT rtp_case_pkey DO UPDATE SET level = the_level, state = 'open', changed_at = now()
        WHERE c.paytable_version_id = the_version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the case is of another version' USING ERRCODE = 'restrict_violation';
    END IF;
    INSERT INTO rtp_case_change (case_id, number, changed_at, actor, state, note)
    SELECT the_case, count(*) + 1, now(), the_actor, 'open', the_note FROM rtp_case_change WHERE case_id = the_case;
    PERFORM audit_append(audit, 'rtp.alert');
    PERFORM audit_append(case_audit, CASE WHEN is_new THEN 'rtp.case_opened' ELSE 'rtp.case_changed' END);
END
$$;

-- Takes a case from one state to another, or adds a note to it; false when it is not in `state_before` any more.
-- With the case its evidence ends, and begins anew.
CREATE FUNCTION rtp_case_set(
    the_case uuid, state_before text, the_state text, the_actor text, the_note text, audit text
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM rtp_take(true);
    UPDATE rtp_case SET state = the_state, changed_at = now() WHERE case_id = the_case AND state = state_before;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO rtp_case_change (case_id, number, changed_at, actor, state, note)
    SELECT the_case, count(*) + 1, now(), the_actor, the_state, the_note FROM rtp_case_change WHERE case_id = the_case;
    IF the_state = 'closed' THEN
        DELETE FROM rtp_evidence
            WHERE paytable_version_id = (SELECT paytable_version_id FROM rtp_case WHERE case_id = the_case);
    END IF;
    PERFORM audit_append(audit, 'rtp.case_changed');
    RETURN true;
END
$$;

-- Puts a check on record; false when the day's has been made already.
CREATE FUNCTION rtp_check_add(
    the_check uuid, the_day date, is_scheduled boolean, the_result jsonb, audit text
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO rtp_check (check_id, day, scheduled, made_at, result)
    VALUES (the_check, the_day, is_scheduled, now(), the_result)
    ON CONFLICT (day) WHERE scheduled DO NOTHING;
    IF FOUND THEN
        PERFORM audit_append(audit, 'rtp.checked');
        RETURN true;
    END IF;
    RETURN false;
END
$$;

GRANT SELECT ON
    rtp_cursor, rtp_bucket, rtp_dealt, rtp_deals, rtp_evidence, rtp_case, rtp_case_change, rtp_check
    TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    rtp_take(boolean),
    rtp_pending(bigint, bigint),
    rtp_dealt_next(timestamptz, uuid, bigint, integer, integer),
    rtp_accumulate(bigint, bigint, jsonb, jsonb, jsonb, timestamptz, uuid, jsonb),
    rtp_alert(uuid, uuid, text, text, text, text, text),
    rtp_case_set(uuid, text, text, text, text, text),
    rtp_check_add(uuid, date, boolean, jsonb, text)
    TO casino_brag_app;
