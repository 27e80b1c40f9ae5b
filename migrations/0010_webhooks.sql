-- Webhooks: an operator's server is told of what happened, by messages that are made with it and sent afterwards.

-- Where an operator is told.  Two secrets can be live at once, so that one is replaced without a gap.
-- Until `rests_until` nothing is sent: it did not answer, and its backlog shall not keep other operators waiting.
CREATE TABLE webhook_endpoint (
    operator_id            uuid        NOT NULL CONSTRAINT webhook_endpoint_pkey PRIMARY KEY
                                       CONSTRAINT webhook_endpoint_operator_fkey REFERENCES operator,
    url                    text        NOT NULL,
    sealed_secret          bytea       NOT NULL,
    sealed_previous_secret bytea,
    changed_at             timestamptz NOT NULL,
    rests_until            timestamptz NOT NULL,
    CONSTRAINT webhook_endpoint_is_encrypted_or_local
        CHECK (url ~ '^(https://.|http://(localhost|127\.[0-9.]+|\[::1\])([:/?]|$))')
);

-- What an operator is told.  A message bears the identifier of the audit entry it tells of, so that nothing is told
-- twice under two names, and keeps its text, so that every attempt sends the same bytes.
-- `due_at` is when to send it next; whoever takes it to send it moves that on, and it is taken again if nothing is
-- heard of it until then.  `operator_id` refers to no row: a settlement locks none that all of an operator's share.
CREATE TABLE webhook_message (
    message_id   uuid        NOT NULL CONSTRAINT webhook_message_entry_fkey REFERENCES audit_entry,
    operator_id  uuid        NOT NULL,
    type         text        NOT NULL,
    body         text        NOT NULL,
    state        text        NOT NULL DEFAULT 'pending',
    attempts     integer     NOT NULL DEFAULT 0,
    made_at      timestamptz NOT NULL DEFAULT now(),
    due_at       timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz,
    last_problem text,
    CONSTRAINT webhook_message_is_made_once PRIMARY KEY (message_id, operator_id),
    CONSTRAINT webhook_message_state_is_known CHECK (state IN ('pending', 'delivered', 'given_up')),
    CONSTRAINT webhook_message_ends_when_it_is_over CHECK ((state = 'pending') = (ended_at IS NULL)),
    CONSTRAINT webhook_message_problem_is_short CHECK (length(last_problem) <= 500)
);
CREATE INDEX webhook_message_pending ON webhook_message (operator_id, due_at) WHERE state = 'pending';
CREATE INDEX webhook_message_by_age ON webhook_message (made_at);

CREATE TRIGGER webhook_message_keeps_what_it_says
    BEFORE UPDATE ON webhook_message FOR EACH ROW WHEN (
        (OLD.message_id, OLD.operator_id, OLD.type, OLD.body, OLD.made_at)
        IS DISTINCT FROM (NEW.message_id, NEW.operator_id, NEW.type, NEW.body, NEW.made_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER webhook_message_ended_is_final
    BEFORE UPDATE ON webhook_message FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
ALTER TABLE webhook_message ENABLE ALWAYS TRIGGER webhook_message_keeps_what_it_says;
ALTER TABLE webhook_message ENABLE ALWAYS TRIGGER webhook_message_ended_is_final;

-- Makes the messages of an audit entry, in the transaction of what they tell of: an entry of an operator for that one,
-- an entry of none in particular for all.  Of a round it names what it tells; never cards, never a seed.
CREATE FUNCTION webhook_messages_make() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO webhook_message (message_id, operator_id, type, body)
    SELECT NEW.entry_id, p.operator_id, NEW.type, row_to_json(message)::text
    FROM (SELECT operator_id FROM webhook_endpoint WHERE operator_id = NEW.operator_id
          UNION ALL SELECT operator_id FROM webhook_endpoint WHERE NEW.operator_id IS NULL) AS p
    LEFT JOIN round AS r ON r.round_id = NEW.round_id
    LEFT JOIN player ON player.player_id = r.player_id
    CROSS JOIN LATERAL (
        SELECT to_char(NEW.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
            r.ante_minor + r.pair_bonus_minor + coalesce(r.play_minor, 0) AS staked_minor,
            coalesce(r.total_payout_minor, 0) AS payout_minor,
            (NEW.payload ->> 'refund_minor')::bigint AS refund_minor,
            (NEW.payload ->> 'compensation_minor')::bigint AS compensation_minor) AS x
    CROSS JOIN LATERAL (
        SELECT NEW.type, x.at AS timestamp, CASE NEW.type
            WHEN 'round.settled' THEN (SELECT to_json(told) FROM (
                SELECT r.round_id, r.game, player.reference AS player, r.mode, r.currency, 'settled' AS state,
                    r.decision, r.result, x.staked_minor AS total_staked_minor, x.payout_minor AS total_payout_minor,
                    x.payout_minor - x.staked_minor AS net_minor, x.at AS settled_at) AS told)
            WHEN 'round.voided' THEN (SELECT to_json(told) FROM (
                SELECT r.round_id, r.game, player.reference AS player, r.mode, r.currency, 'voided' AS state,
                    r.decision, r.result, x.staked_minor AS total_staked_minor, x.payout_minor AS total_payout_minor,
                    x.refund_minor, x.compensation_minor,
                    x.payout_minor + x.refund_minor + x.compensation_minor - x.staked_minor AS net_minor,
                    NEW.reason, x.at AS voided_at) AS told)
            ELSE to_json(coalesce(NEW.after, '{}') || coalesce(NEW.payload, '{}')
                || jsonb_build_object('reason', NEW.reason))
        END AS data) AS message;
    RETURN NULL;
END
$$;

CREATE TRIGGER audit_entry_is_told_to_operators
    AFTER INSERT ON audit_entry FOR EACH ROW WHEN (NEW.type IN (
        'round.settled', 'round.voided', 'game.disabled', 'game.draining', 'game.enabled', 'rtp.alert'))
    EXECUTE FUNCTION webhook_messages_make();
ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_is_told_to_operators;

-- Tells an operator at this address from now on, signed with this secret alone.
CREATE FUNCTION webhook_endpoint_set(the_operator uuid, the_url text, the_secret bytea, audit text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO webhook_endpoint (operator_id, url, sealed_secret, changed_at, rests_until)
    VALUES (the_operator, the_url, the_secret, now(), now())
    ON CONFLICT (operator_id) DO UPDATE SET url = the_url, sealed_secret = the_secret, sealed_previous_secret = NULL,
        changed_at = now(), rests_until = now();
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit)
$$;

-- Gives an endpoint a secret beside its newest one; an older one ends.  False where there is no endpoint.
CREATE FUNCTION webhook_secret_rotate(the_operator uuid, the_secret bytea, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE webhook_endpoint
        SET sealed_previous_secret = sealed_secret, sealed_secret = the_secret, changed_at = now()
        WHERE operator_id = the_operator;
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    RETURN FOUND;
END
$$;

-- Tells an operator nothing any more, unless its address has become another than `the_url`.  False where there is no
-- such endpoint.  What the operator has not been told yet is given up by webhook_claim.
CREATE FUNCTION webhook_endpoint_remove(the_operator uuid, the_url text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM webhook_endpoint WHERE operator_id = the_operator AND url = the_url;
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    RETURN FOUND;
END
$$;

-- Takes messages that are due, to send them within `lease_seconds`: the oldest, a few of each operator, and each
-- operator's first before anybody's second.  On the way, a thousand at a time: what is 30 days old is forgotten,
-- whatever became of it, and what an operator without an endpoint was to be told is given up.
CREATE FUNCTION webhook_claim(the_limit integer, per_operator integer, lease_seconds integer)
    RETURNS TABLE (message_id uuid, operator_id uuid, url text, sealed_secret bytea, sealed_previous_secret bytea,
                   body text, attempts integer, made_at timestamptz, claimed_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM webhook_message WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM webhook_message WHERE made_at < now() - interval '30 days'
        ORDER BY made_at LIMIT 1000 FOR UPDATE SKIP LOCKED));
    UPDATE webhook_message SET state = 'given_up', ended_at = now(), last_problem = 'the endpoint was removed'
    WHERE ctid = ANY (ARRAY(
        SELECT m.ctid
        FROM operator AS o
        CROSS JOIN LATERAL (
            SELECT ctid FROM webhook_message WHERE operator_id = o.operator_id AND state = 'pending'
            LIMIT 1000 FOR UPDATE SKIP LOCKED) AS m
        WHERE NOT EXISTS (SELECT FROM webhook_endpoint AS p WHERE p.operator_id = o.operator_id)
        LIMIT 1000));
    RETURN QUERY
    WITH due AS (
        SELECT m.message_id, p.*
        FROM webhook_endpoint AS p
        CROSS JOIN LATERAL (
            SELECT message_id, due_at FROM webhook_message
            WHERE operator_id = p.operator_id AND state = 'pending' AND due_at <= now()
            ORDER BY due_at LIMIT per_operator FOR UPDATE SKIP LOCKED) AS m
        WHERE p.rests_until <= now()
        ORDER BY row_number() OVER (PARTITION BY p.operator_id ORDER BY m.due_at), m.due_at LIMIT the_limit
    )
    UPDATE webhook_message AS m
        SET attempts = m.attempts + 1, due_at = now() + make_interval(secs => lease_seconds)
    FROM due WHERE (m.message_id, m.operator_id) = (due.message_id, due.operator_id)
    RETURNING m.message_id, m.operator_id, due.url, due.sealed_secret, due.sealed_previous_secret, m.body, m.attempts,
        m.made_at, now();
END
$$;

-- The operator has taken a message.
CREATE FUNCTION webhook_delivered(the_operator uuid, the_message uuid) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE webhook_message SET state = 'delivered', ended_at = now()
        WHERE (message_id, operator_id) = (the_message, the_operator) AND state = 'pending'
$$;

-- It has not: the message is sent again after a delay, and nothing at all while the endpoint rests.
CREATE FUNCTION webhook_postpone(
    the_operator uuid, the_message uuid, the_problem text, delay_seconds integer, rest_seconds integer
) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE webhook_endpoint SET rests_until = now() + make_interval(secs => rest_seconds)
        WHERE operator_id = the_operator AND rest_seconds > 0;
    UPDATE webhook_message SET due_at = now() + make_interval(secs => delay_seconds), last_problem = the_problem
        WHERE (message_id, operator_id) = (the_message, the_operator) AND state = 'pending'
$$;

-- It has not for too long: the message is given up, and with it the operator's older ones.
CREATE FUNCTION webhook_give_up(the_operator uuid, the_message uuid, audit text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE webhook_message SET state = 'given_up', ended_at = now()
        WHERE operator_id = the_operator AND state = 'pending' AND made_at <= (
            SELECT made_at FROM webhook_message
            WHERE (message_id, operator_id) = (the_message, the_operator) AND state = 'pending');
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
END
$$;

GRANT SELECT ON webhook_endpoint, webhook_message TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    webhook_endpoint_set(uuid, text, bytea, text),
    webhook_secret_rotate(uuid, bytea, text),
    webhook_endpoint_remove(uuid, text, text),
    webhook_claim(integer, integer, integer),
    webhook_delivered(uuid, uuid),
    webhook_postpone(uuid, uuid, text, integer, integer),
    webhook_give_up(uuid, uuid, text)
    TO casino_brag_app;
