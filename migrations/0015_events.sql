-- Events that are to be told of without being looked for: faults of the program, clocks, large amounts.

-- What is worth a report among entries of which nearly all are play.  The types left out are those of every round and
-- session; whoever leaves out more still reads by this index.
CREATE INDEX audit_entry_of_note ON audit_entry (occurred_at, entry_id) WHERE type NOT IN (
    'session.opened', 'session.closed', 'wallet.deposit', 'wallet.withdrawal', 'wallet.debit_begun', 'wallet.debited',
    'wallet.credited', 'commitment.made', 'round.opened', 'round.settled');

-- Records a fault of the program.
CREATE FUNCTION program_failure_record(audit text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT audit_append(audit, 'program.failed')
$$;

-- The last look that a machine had at the database's clock, beside its own.  `uptime_us` is the machine's time since
-- it was started, which nobody sets; `apart` whether the two clocks showed different times.
CREATE TABLE clock_look (
    machine     text        NOT NULL CONSTRAINT clock_look_pkey PRIMARY KEY,
    looks       bigint      NOT NULL,
    uptime_us   bigint      NOT NULL,
    database_at timestamptz NOT NULL,
    apart       boolean     NOT NULL
);

-- Keeps a look at the clocks with the entries of what it found.  False where another process of the machine has looked
-- since the look that this one was compared with, which is number `looks_before`.
CREATE FUNCTION clock_look_keep(
    the_machine text, looks_before bigint, uptime bigint, shown timestamptz, is_apart boolean, audits text[]
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF looks_before = 0 THEN
        DELETE FROM clock_look WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM clock_look WHERE database_at < shown - interval '7 days' FOR UPDATE SKIP LOCKED));
        INSERT INTO clock_look (machine, looks, uptime_us, database_at, apart)
            VALUES (the_machine, 1, uptime, shown, is_apart) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE clock_look SET looks = looks + 1, uptime_us = uptime, database_at = shown, apart = is_apart
            WHERE machine = the_machine AND looks = looks_before;
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(a, 'clock.stepped', 'clock.drifted') FROM unnest(audits) AS a;
    RETURN true;
END
$$;

-- How far the ordered entries were gone through for large amounts.
CREATE TABLE large_amounts_done (
    one_row   boolean NOT NULL DEFAULT true CONSTRAINT large_amounts_done_pkey PRIMARY KEY,
    next_leaf bigint  NOT NULL,
    CONSTRAINT large_amounts_done_is_one_row CHECK (one_row)
);
INSERT INTO large_amounts_done (next_leaf) VALUES (0);

-- What a player's rounds for real money came to in a day, UTC.  `won_minor` is what rounds paid beyond their stakes,
-- those that did.
CREATE TABLE player_day (
    day          date    NOT NULL,
    player_id    uuid    NOT NULL CONSTRAINT player_day_player_fkey REFERENCES player,
    currency     text    NOT NULL,
    staked_minor numeric NOT NULL,
    won_minor    numeric NOT NULL,
    CONSTRAINT player_day_pkey PRIMARY KEY (day, player_id, currency)
);

-- Goes on from one leaf to another, with what players' days came to on the way and the entries of what was large.
-- False where somebody else has gone on from there.  Sums that no entry can come for any more are forgotten.
CREATE FUNCTION large_amounts_keep(from_leaf bigint, to_leaf bigint, days jsonb, audits text[]) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE large_amounts_done SET next_leaf = to_leaf WHERE next_leaf = from_leaf AND to_leaf > from_leaf
        AND EXISTS (SELECT FROM audit_leaf WHERE leaf_index = to_leaf - 1);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO player_day SELECT d.* FROM jsonb_populate_recordset(NULL::player_day, days) AS d
        ON CONFLICT ON CONSTRAINT player_day_pkey DO UPDATE
            SET staked_minor = excluded.staked_minor, won_minor = excluded.won_minor;
    DELETE FROM player_day WHERE ctid = ANY (ARRAY(
        SELECT p.ctid FROM player_day AS p
        WHERE p.day < (SELECT min(d.day) FROM jsonb_populate_recordset(NULL::player_day, days) AS d) - 40
        ORDER BY p.day LIMIT 1000));
    PERFORM audit_append(a, 'round.large_win', 'round.large_wager', 'player.large_win', 'player.large_wager')
        FROM unnest(audits) AS a;
    RETURN true;
END
$$;

GRANT SELECT ON clock_look, large_amounts_done, player_day TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    program_failure_record(text),
    clock_look_keep(text, bigint, bigint, timestamptz, boolean, text[]),
    large_amounts_keep(bigint, bigint, jsonb, text[])
    TO casino_brag_app;
