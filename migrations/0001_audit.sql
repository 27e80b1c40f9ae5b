-- The audit log, and the role the application works as.
--
-- casino_brag_app may read, and may call the functions granted to it; it writes no table directly.  Whoever runs
-- the migrations owns everything else.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'casino_brag_app') THEN
        BEGIN
            CREATE ROLE casino_brag_app NOLOGIN;
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE EXCEPTION 'have an administrator run: CREATE ROLE casino_brag_app NOLOGIN; '
                'GRANT casino_brag_app TO %', current_user;
        END;
        -- Who migrates may also work as the application: a first run uses one address for both.
        IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            EXECUTE format('GRANT casino_brag_app TO %I', current_user);
        END IF;
    END IF;
END
$$;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO casino_brag_app;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- Refuses to change what has been written.  Privileges stop the application; this stops a slip of the owner's.
CREATE FUNCTION refuse_change() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: its rows are written once', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', HINT = 'Correct by a new entry.';
END
$$;

-- What happened, written in the transaction in which it happened.
-- `bytes` is the entry, serialised once (RFC 8785); every other column is taken from it by audit_entry_of.
CREATE TABLE audit_entry (
    entry_id    uuid        NOT NULL CONSTRAINT audit_entry_pkey PRIMARY KEY,
    type        text        NOT NULL,
    occurred_at timestamptz NOT NULL,
    actor       text        NOT NULL,
    authoriser  text,
    operator_id uuid,
    player_id   uuid,
    session_id  uuid,
    round_id    uuid,
    reason      text,
    before      jsonb,
    after       jsonb,
    payload     jsonb,
    bytes       bytea       NOT NULL,
    leaf_hash   bytea       NOT NULL,
    CONSTRAINT audit_entry_type_is_subject_and_action CHECK (type ~ '^[a-z_]+\.[a-z_]+$'),
    -- The leaf hash of RFC 9162, section 2.1.1.
    CONSTRAINT audit_entry_leaf_hash_is_of_its_bytes CHECK (leaf_hash = sha256('\x00'::bytea || bytes))
);
CREATE INDEX audit_entry_by_round ON audit_entry (round_id) WHERE round_id IS NOT NULL;
CREATE INDEX audit_entry_by_time ON audit_entry (occurred_at);

CREATE TRIGGER audit_entry_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_is_append_only;

-- The row that an entry's text stands for.  The one place where columns are derived from bytes.
CREATE FUNCTION audit_entry_of(entry text) RETURNS audit_entry
    LANGUAGE sql STABLE STRICT AS $$
    SELECT ROW(
        j ->> 'entry_id', j ->> 'type', j ->> 'occurred_at', j ->> 'actor', j ->> 'authoriser',
        j -> 'subjects' ->> 'operator_id', j -> 'subjects' ->> 'player_id',
        j -> 'subjects' ->> 'session_id', j -> 'subjects' ->> 'round_id',
        j ->> 'reason', nullif(j -> 'before', 'null'), nullif(j -> 'after', 'null'), nullif(j -> 'payload', 'null'),
        b, sha256('\x00'::bytea || b)
    )::audit_entry
    FROM (SELECT entry::jsonb AS j, convert_to(entry, 'UTF8') AS b) AS parsed
$$;

GRANT SELECT ON audit_entry TO casino_brag_app;
