-- Paytable versions, which never change, and the games that offer one of them.

CREATE TABLE paytable_version (
    version_id   uuid        NOT NULL CONSTRAINT paytable_version_pkey PRIMARY KEY,
    game         text        NOT NULL,
    version      integer     NOT NULL CONSTRAINT paytable_version_counts_from_1 CHECK (version >= 1),
    digest       text        NOT NULL,
    document     text        NOT NULL,  -- canonical JSON (RFC 8785)
    figures      jsonb       NOT NULL,  -- exact figures, computed when it was published
    published_at timestamptz NOT NULL,
    CONSTRAINT paytable_version_number_is_used_once UNIQUE (game, version),
    CONSTRAINT paytable_version_content_is_published_once UNIQUE (game, digest),
    CONSTRAINT paytable_version_digest_is_of_its_document
        CHECK (digest = encode(sha256(convert_to(document, 'UTF8')), 'hex'))
);
CREATE TRIGGER paytable_version_is_immutable
    BEFORE UPDATE OR DELETE OR TRUNCATE ON paytable_version
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE paytable_version ENABLE ALWAYS TRIGGER paytable_version_is_immutable;

-- A game takes new rounds while it is enabled, on its active version.
CREATE TABLE game (
    game              text        NOT NULL CONSTRAINT game_pkey PRIMARY KEY,
    state             text        NOT NULL,
    reason            text,
    active_version_id uuid        CONSTRAINT game_active_version_fkey REFERENCES paytable_version,
    changed_at        timestamptz NOT NULL,
    CONSTRAINT game_state_is_known CHECK (state IN ('enabled', 'disabled')),
    CONSTRAINT game_enabled_has_a_version CHECK (state <> 'enabled' OR active_version_id IS NOT NULL),
    CONSTRAINT game_disabled_has_a_reason CHECK (state <> 'disabled' OR reason IS NOT NULL)
);

-- Publishes a version (unless its content is published already), makes it the active one and enables the game.
-- Returns the version's number, and whether anything changed.
CREATE FUNCTION paytable_publish(
    the_version uuid, the_game text, the_digest text, the_document text, the_figures jsonb, audit text
) RETURNS TABLE (version integer, changed boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    published paytable_version;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('paytable_publish:' || the_game, 0));
    SELECT * INTO published FROM paytable_version WHERE game = the_game AND digest = the_digest;
    IF published.version_id IS NULL THEN
        INSERT INTO paytable_version (version_id, game, version, digest, document, figures, published_at)
        SELECT the_version, the_game, coalesce(max(v.version), 0) + 1, the_digest, the_document, the_figures, now()
        FROM paytable_version AS v WHERE v.game = the_game
        RETURNING * INTO published;
    END IF;
    INSERT INTO game AS g (game, state, reason, active_version_id, changed_at)
    VALUES (the_game, 'enabled', NULL, published.version_id, now())
    ON CONFLICT (game) DO UPDATE
        SET state = 'enabled', reason = NULL, active_version_id = published.version_id, changed_at = now()
        WHERE g.state <> 'enabled' OR g.active_version_id IS DISTINCT FROM published.version_id;
    changed := FOUND;
    version := published.version;
    IF changed THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    RETURN NEXT;
END
$$;

-- Disables a game with a reason; true when that changed something.
CREATE FUNCTION game_disable(the_game text, the_reason text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO game AS g (game, state, reason, changed_at) VALUES (the_game, 'disabled', the_reason, now())
    ON CONFLICT (game) DO UPDATE SET state = 'disabled', reason = the_reason, changed_at = now()
        WHERE g.state <> 'disabled' OR g.reason IS DISTINCT FROM the_reason;
    IF FOUND THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
        RETURN true;
    END IF;
    RETURN false;
END
$$;

GRANT SELECT ON paytable_version, game TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    paytable_publish(uuid, text, text, text, jsonb, text),
    game_disable(text, text, text)
    TO casino_brag_app;
