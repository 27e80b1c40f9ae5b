-- Operators, their keys and their players.

CREATE TABLE operator (
    operator_id uuid        NOT NULL CONSTRAINT operator_pkey PRIMARY KEY,
    name        text        NOT NULL CONSTRAINT operator_name_is_taken UNIQUE,
    origins     text[]      NOT NULL DEFAULT '{}',  -- web origins whose pages may call the player's API
    launch_url  text,                               -- the operator's front-end; a session's token is appended
    added_at    timestamptz NOT NULL,
    CONSTRAINT operator_name_is_plain CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);

-- Two keys can be live at once, so that a secret is replaced without a gap.
CREATE TABLE operator_key (
    operator_id   uuid        NOT NULL CONSTRAINT operator_key_operator_fkey REFERENCES operator,
    key_id        text        NOT NULL,
    slot          smallint    NOT NULL CONSTRAINT operator_key_slot_is_1_or_2 CHECK (slot IN (1, 2)),
    sealed_secret bytea       NOT NULL,
    added_at      timestamptz NOT NULL,
    retired_at    timestamptz,
    CONSTRAINT operator_key_pkey PRIMARY KEY (operator_id, key_id)
);
CREATE UNIQUE INDEX operator_key_two_are_live ON operator_key (operator_id, slot) WHERE retired_at IS NULL;

-- A nonce is remembered for as long as the timestamp beside it could be accepted.
CREATE TABLE operator_nonce (
    operator_id uuid        NOT NULL CONSTRAINT operator_nonce_operator_fkey REFERENCES operator,
    nonce       text        NOT NULL,
    expires_at  timestamptz NOT NULL,
    CONSTRAINT operator_nonce_pkey PRIMARY KEY (operator_id, nonce)
);
CREATE INDEX operator_nonce_by_expiry ON operator_nonce (expires_at);

CREATE TABLE player (
    player_id   uuid        NOT NULL CONSTRAINT player_pkey PRIMARY KEY,
    operator_id uuid        NOT NULL CONSTRAINT player_operator_fkey REFERENCES operator,
    reference   text        NOT NULL,  -- the operator's own name for the player
    added_at    timestamptz NOT NULL,
    CONSTRAINT player_reference_is_the_operators UNIQUE (operator_id, reference),
    CONSTRAINT player_reference_is_short CHECK (length(reference) BETWEEN 1 AND 128)
);

-- True once for a nonce; false when it was seen before.  Forgets a few that can no longer be accepted.
CREATE FUNCTION operator_nonce_take(the_operator uuid, the_nonce text, until timestamptz) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    DELETE FROM operator_nonce WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM operator_nonce WHERE expires_at < now() LIMIT 100 FOR UPDATE SKIP LOCKED));
    WITH taken AS (
        INSERT INTO operator_nonce (operator_id, nonce, expires_at) VALUES (the_operator, the_nonce, until)
        ON CONFLICT DO NOTHING RETURNING 1)
    SELECT EXISTS (SELECT FROM taken)
$$;

-- Adds an operator with its first key.
CREATE FUNCTION operator_add(
    the_operator uuid, the_name text, its_origins text[], its_launch_url text,
    the_key text, the_secret bytea, audit text
) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO operator (operator_id, name, origins, launch_url, added_at)
    VALUES (the_operator, the_name, its_origins, its_launch_url, now());
    INSERT INTO operator_key (operator_id, key_id, slot, sealed_secret, added_at)
    VALUES (the_operator, the_key, 1, the_secret, now());
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit)
$$;

-- Adds a key beside the newest live one; the older of two live keys is retired.
CREATE FUNCTION operator_key_rotate(the_operator uuid, the_key text, the_secret bytea, audit text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    newest operator_key;
BEGIN
    PERFORM FROM operator WHERE operator_id = the_operator FOR UPDATE;
    SELECT * INTO newest FROM operator_key
        WHERE operator_id = the_operator AND retired_at IS NULL ORDER BY added_at DESC, slot DESC LIMIT 1;
    UPDATE operator_key SET retired_at = now()
        WHERE operator_id = the_operator AND retired_at IS NULL AND key_id <> newest.key_id;
    INSERT INTO operator_key (operator_id, key_id, slot, sealed_secret, added_at)
        VALUES (the_operator, the_key, CASE newest.slot WHEN 1 THEN 2 ELSE 1 END, the_secret, now());
    INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
END
$$;

GRANT SELECT ON operator, operator_key, player TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    operator_nonce_take(uuid, text, timestamptz),
    operator_add(uuid, text, text[], text, text, bytea, text),
    operator_key_rotate(uuid, text, bytea, text)
    TO casino_brag_app;
