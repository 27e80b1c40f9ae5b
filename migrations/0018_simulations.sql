-- Simulations that staff queues: paytables played by the thousand million beside the service, one at a time.
--
-- What is to be played stands in the row itself, so that the result is of exactly that digest whatever becomes of the
-- draft.  `progress` is what a run goes on from after an interruption: a whole state, replaced by each next one, so that
-- no chunk is ever counted twice.  `course` holds some estimates on the way, `result` the figures of `rounds_done`.
CREATE TABLE simulation (
    simulation_id uuid        NOT NULL CONSTRAINT simulation_pkey PRIMARY KEY,
    game          text        NOT NULL,
    version_id    uuid        CONSTRAINT simulation_paytable_version_fkey REFERENCES paytable_version,
    draft         integer,
    digest        text        NOT NULL,
    document      text        NOT NULL,  -- canonical JSON (RFC 8785)
    strategy      text        NOT NULL,
    rounds        bigint      NOT NULL,
    seed          bytea       NOT NULL,
    state         text        NOT NULL,
    queued_by     uuid        NOT NULL CONSTRAINT simulation_staff_fkey REFERENCES staff,
    queued_at     timestamptz NOT NULL,
    begun_at      timestamptz,
    ended_at      timestamptz,
    beginnings    integer     NOT NULL,  -- since it last came further
    rounds_done   bigint      NOT NULL,
    progress      jsonb,
    course        json        NOT NULL,  -- as they were written: figures keep their order
    result        json,
    conclusion    text,
    failure       text,
    CONSTRAINT simulation_is_of_a_version_or_a_draft CHECK (num_nonnulls(version_id, draft) = 1),
    CONSTRAINT simulation_digest_is_of_its_document
        CHECK (digest = encode(sha256(convert_to(document, 'UTF8')), 'hex')),
    CONSTRAINT simulation_strategy_is_short CHECK (length(strategy) BETWEEN 1 AND 100),
    CONSTRAINT simulation_rounds_are_bounded CHECK (rounds BETWEEN 1 AND 10000000000),
    CONSTRAINT simulation_seed_is_of_its_length CHECK (length(seed) = 48),
    CONSTRAINT simulation_state_is_known CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    CONSTRAINT simulation_rounds_done_are_some_of_all CHECK (rounds_done BETWEEN 0 AND rounds),
    CONSTRAINT simulation_course_is_short CHECK (json_array_length(course) <= 500),
    CONSTRAINT simulation_conclusion_is_of_all_rounds CHECK ((conclusion IS NOT NULL) = (state = 'done')
        AND (conclusion IS NULL OR conclusion IN ('agrees', 'repeat', 'disagrees') AND rounds_done = rounds)),
    CONSTRAINT simulation_failure_has_a_reason CHECK ((failure IS NOT NULL) = (state = 'failed')),
    CONSTRAINT simulation_end_is_dated CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'failed', 'cancelled')))
);
CREATE UNIQUE INDEX simulation_one_runs ON simulation (state) WHERE state = 'running';
CREATE INDEX simulation_in_the_queue ON simulation (queued_at, simulation_id) WHERE state IN ('queued', 'running');

CREATE TRIGGER simulation_is_kept
    BEFORE DELETE OR TRUNCATE ON simulation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER simulation_end_is_final
    BEFORE UPDATE ON simulation FOR EACH ROW WHEN (
        OLD.state IN ('done', 'failed', 'cancelled')
        OR (OLD.simulation_id, OLD.game, OLD.version_id, OLD.draft, OLD.digest, OLD.document, OLD.strategy, OLD.rounds,
            OLD.seed, OLD.queued_by, OLD.queued_at)
            IS DISTINCT FROM
            (NEW.simulation_id, NEW.game, NEW.version_id, NEW.draft, NEW.digest, NEW.document, NEW.strategy, NEW.rounds,
            NEW.seed, NEW.queued_by, NEW.queued_at))
    EXECUTE FUNCTION refuse_change();
ALTER TABLE simulation ENABLE ALWAYS TRIGGER simulation_is_kept;
ALTER TABLE simulation ENABLE ALWAYS TRIGGER simulation_end_is_final;

-- Queues a simulation; false where the queue holds `at_most` already.
CREATE FUNCTION simulation_queue(
    the_simulation uuid, the_game text, the_version uuid, the_draft integer, the_digest text, the_document text,
    the_strategy text, its_rounds bigint, its_seed bytea, the_person uuid, at_most integer, audit text
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- One after another, so that each sees those before it.
    PERFORM pg_advisory_xact_lock(hashtextextended('simulation_queue', 0));
    IF NOT staff_works(the_person) THEN
        RAISE EXCEPTION 'a person who is not of staff queues nothing' USING ERRCODE = 'restrict_violation';
    END IF;
    IF at_most <= (SELECT count(*) FROM simulation WHERE state IN ('queued', 'running')) THEN
        RETURN false;
    END IF;
    INSERT INTO simulation (simulation_id, game, version_id, draft, digest, document, strategy, rounds, seed, state,
            queued_by, queued_at, beginnings, rounds_done, course)
        VALUES (the_simulation, the_game, the_version, the_draft, the_digest, the_document, the_strategy, its_rounds,
            its_seed, 'queued', the_person, now(), 0, 0, '[]');
    PERFORM audit_append_of(the_person, NULL, audit, 'simulation.queued');
    RETURN true;
END
$$;

-- Ends a simulation that is queued or running, as a person wishes; false where it had ended before.
CREATE FUNCTION simulation_cancel(the_simulation uuid, the_person uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT staff_works(the_person) THEN
        RAISE EXCEPTION 'a person who is not of staff cancels nothing' USING ERRCODE = 'restrict_violation';
    END IF;
    UPDATE simulation SET state = 'cancelled', ended_at = now(), progress = NULL
        WHERE simulation_id = the_simulation AND state IN ('queued', 'running');
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append_of(the_person, NULL, audit, 'simulation.cancelled');
    RETURN true;
END
$$;

-- Makes the session that asks the one that plays simulations, until it ends; false while another one is.  However it
-- ends, by a kill, a lost machine or the database's own end, the next one may play.
CREATE FUNCTION simulation_take() RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT pg_try_advisory_lock(hashtext('casino_brag simulation'), 0)
$$;

-- The process of the database that serves the session which plays, if there is one.
CREATE FUNCTION simulation_player() RETURNS integer
    LANGUAGE sql STABLE AS $$
    SELECT l.pid FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = hashtext('casino_brag simulation')::oid
      AND l.objid = 0 AND l.objsubid = 2
$$;

-- Refuses what only the session that plays may do.
CREATE FUNCTION simulation_must_play() RETURNS void
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF simulation_player() IS DISTINCT FROM pg_backend_pid() THEN
        RAISE EXCEPTION 'this session does not play simulations' USING
            ERRCODE = 'restrict_violation', HINT = 'Call simulation_take first.';
    END IF;
END
$$;

-- The simulation to play: the one that was begun, or else the first of the queue; none when there is none.
CREATE FUNCTION simulation_begin() RETURNS SETOF simulation
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM simulation_must_play();
    RETURN QUERY UPDATE simulation AS s
        SET state = 'running', begun_at = coalesce(s.begun_at, now()), beginnings = s.beginnings + 1
        WHERE s.state IN ('queued', 'running') AND s.simulation_id = (
            SELECT q.simulation_id FROM simulation AS q WHERE q.state IN ('queued', 'running')
            ORDER BY q.state = 'queued', q.queued_at, q.simulation_id LIMIT 1)
        RETURNING s.*;
END
$$;

-- Keeps how far a simulation has come; false where it was cancelled meanwhile.
CREATE FUNCTION simulation_keep(
    the_simulation uuid, is_done bigint, its_progress jsonb, its_course json, its_result json
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM simulation_must_play();
    UPDATE simulation SET rounds_done = is_done, progress = its_progress, course = its_course, result = its_result,
            beginnings = 1
        WHERE simulation_id = the_simulation AND state = 'running';
    RETURN FOUND;
END
$$;

-- Ends a simulation with what it concludes, all rounds played, or with what has stopped it; false where it was
-- cancelled meanwhile.
CREATE FUNCTION simulation_end(
    the_simulation uuid, its_conclusion text, its_failure text, its_course json, its_result json, audit text
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM simulation_must_play();
    UPDATE simulation SET ended_at = now(), progress = NULL, conclusion = its_conclusion, failure = its_failure,
            state = CASE WHEN its_conclusion IS NULL THEN 'failed' ELSE 'done' END,
            rounds_done = CASE WHEN its_conclusion IS NULL THEN rounds_done ELSE rounds END,
            course = coalesce(its_course, course), result = coalesce(its_result, result)
        WHERE simulation_id = the_simulation AND state = 'running';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'simulation.completed');
    RETURN true;
END
$$;

GRANT SELECT ON simulation TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    simulation_queue(uuid, text, uuid, integer, text, text, text, bigint, bytea, uuid, integer, text),
    simulation_cancel(uuid, uuid, text),
    simulation_take(),
    simulation_player(),
    simulation_begin(),
    simulation_keep(uuid, bigint, jsonb, json, json),
    simulation_end(uuid, text, text, json, json, text)
    TO casino_brag_app;
