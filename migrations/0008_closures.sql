-- Closing and opening: everything, one game or one paytable version, for all operators or for one, each with a reason.

-- draining: no new rounds; those that are open are decided as ever.    disabled: nothing moves; open rounds wait.
-- A null stands for all of them.  A row is there for as long as it holds; the audit log keeps what has been.
CREATE TABLE closure (
    operator_id uuid        CONSTRAINT closure_operator_fkey REFERENCES operator,
    game        text,
    version_id  uuid        CONSTRAINT closure_version_fkey REFERENCES paytable_version,
    state       text        NOT NULL,
    reason      text        NOT NULL,
    since       timestamptz NOT NULL,
    CONSTRAINT closure_is_one_per_scope UNIQUE NULLS NOT DISTINCT (operator_id, game, version_id),
    CONSTRAINT closure_state_is_known CHECK (state IN ('draining', 'disabled')),
    CONSTRAINT closure_has_a_reason CHECK (length(reason) BETWEEN 1 AND 500),
    CONSTRAINT closure_of_a_version_names_its_game CHECK (version_id IS NULL OR game IS NOT NULL)
);

-- What is closed for an operator's rounds of a version: the stricter of what applies, null when nothing does.
CREATE FUNCTION closure_of(the_operator uuid, the_game text, the_version uuid) RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT min(k.state) FROM closure AS k  -- `disabled` sorts before `draining`
    WHERE (k.operator_id IS NULL OR k.operator_id = the_operator) AND (k.game IS NULL OR k.game = the_game)
      AND (k.version_id IS NULL OR k.version_id = the_version)
$$;

-- Closes a scope, or opens it (`the_state` null); true when that changed something.
CREATE FUNCTION closure_set(
    the_operator uuid, the_game text, the_version uuid, the_state text, the_reason text, audit text
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF the_state IS NULL THEN
        DELETE FROM closure WHERE (operator_id, game, version_id)
            IS NOT DISTINCT FROM (the_operator, the_game, the_version);
    ELSE
        INSERT INTO closure AS k (operator_id, game, version_id, state, reason, since)
        VALUES (the_operator, the_game, the_version, the_state, the_reason, now())
        ON CONFLICT ON CONSTRAINT closure_is_one_per_scope DO UPDATE
            SET state = the_state, reason = the_reason, since = now()
            WHERE (k.state, k.reason) IS DISTINCT FROM (the_state, the_reason);
    END IF;
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    RETURN FOUND;
END
$$;

GRANT SELECT ON closure TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    closure_of(uuid, text, uuid),
    closure_set(uuid, text, uuid, text, text, text)
    TO casino_brag_app;
