-- The log proves itself: entries by the month, their order in a Merkle tree (RFC 9162), and signed checkpoints of it.
--
-- Nothing of this is in the way of whoever writes an entry but the number of the writing transaction beside it.  A
-- sealer orders afterwards what was committed.

-- An entry's identifier (UUID version 7) begins with the time at which it was made: this is the least of a time.
CREATE FUNCTION entry_id_at(moment timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- The log is kept by the month, so that a month can be archived, and after its five years be let go, as a whole.
-- What was written before this migration, and what is left of its month, is the first part.
-- `written_xid` is the transaction that wrote the entry: by it the sealer finds what is new.  It is no part of the
-- record, and is not under the hash.
ALTER TABLE webhook_message DROP CONSTRAINT webhook_message_entry_fkey;
DROP TRIGGER audit_entry_is_append_only ON audit_entry;
DROP TRIGGER audit_entry_is_told_to_operators ON audit_entry;
DROP FUNCTION audit_entry_of(text);
ALTER TABLE audit_entry ADD COLUMN written_xid xid8 NOT NULL DEFAULT '0';
ALTER TABLE audit_entry ALTER COLUMN written_xid SET DEFAULT pg_current_xact_id();
ALTER TABLE audit_entry RENAME TO audit_entry_first;
ALTER TABLE audit_entry_first RENAME CONSTRAINT audit_entry_pkey TO audit_entry_first_pkey;
ALTER INDEX audit_entry_by_round RENAME TO audit_entry_first_by_round;
ALTER INDEX audit_entry_by_time RENAME TO audit_entry_first_by_time;
CREATE TABLE audit_entry (LIKE audit_entry_first INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (entry_id);
ALTER TABLE audit_entry ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (entry_id);
CREATE INDEX audit_entry_by_round ON audit_entry (round_id) WHERE round_id IS NOT NULL;
CREATE INDEX audit_entry_by_time ON audit_entry (occurred_at);
CREATE INDEX audit_entry_by_xid ON audit_entry (written_xid, entry_id);
CREATE TRIGGER audit_entry_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_is_append_only;
CREATE TRIGGER audit_entry_is_told_to_operators
    AFTER INSERT ON audit_entry FOR EACH ROW WHEN (NEW.type IN (
        'round.settled', 'round.voided', 'game.disabled', 'game.draining', 'game.enabled', 'rtp.alert'))
    EXECUTE FUNCTION webhook_messages_make();
ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_is_told_to_operators;

-- The same as ever, and the transaction.
CREATE FUNCTION audit_entry_of(entry text) RETURNS audit_entry
    LANGUAGE sql VOLATILE STRICT AS $$
    SELECT ROW(
        j ->> 'entry_id', j ->> 'type', j ->> 'occurred_at', j ->> 'actor', j ->> 'authoriser',
        j -> 'subjects' ->> 'operator_id', j -> 'subjects' ->> 'player_id',
        j -> 'subjects' ->> 'session_id', j -> 'subjects' ->> 'round_id',
        j ->> 'reason', nullif(j -> 'before', 'null'), nullif(j -> 'after', 'null'), nullif(j -> 'payload', 'null'),
        b, sha256('\x00'::bytea || b), pg_current_xact_id()
    )::audit_entry
    -- (OFFSET keeps the two from being worked out anew for every column.)
    FROM (SELECT entry::jsonb AS j, convert_to(entry, 'UTF8') AS b OFFSET 0) AS parsed
$$;

-- Writes an entry of one of these types, and refuses others.
CREATE FUNCTION audit_append(entry text, VARIADIC types text[]) RETURNS void
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    written audit_entry := audit_entry_of(entry);
BEGIN
    IF written.type <> ALL (types) THEN
        RAISE EXCEPTION '% is none of %', written.type, types USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO audit_entry SELECT written.*;
END
$$;

-- Makes a table a part of the log, whose rows nobody changes past the whole either.
CREATE FUNCTION audit_part_attach(part text, bounds text) RETURNS void
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER audit_entry_part_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I'
        ' FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', part);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER audit_entry_part_is_append_only', part);
    EXECUTE format('ALTER TABLE audit_entry ATTACH PARTITION %I %s', part, bounds);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER audit_entry_is_told_to_operators', part);
    EXECUTE format('GRANT SELECT ON %I TO casino_brag_app', part);
END
$$;

SELECT audit_part_attach('audit_entry_first', format('FOR VALUES FROM (MINVALUE) TO (%L)',
    entry_id_at((date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC')));

-- Takes what has no month of its own yet, so that no entry is ever refused for its time.
CREATE TABLE audit_entry_other (LIKE audit_entry INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
SELECT audit_part_attach('audit_entry_other', 'DEFAULT');

ALTER TABLE webhook_message
    ADD CONSTRAINT webhook_message_entry_fkey FOREIGN KEY (message_id) REFERENCES audit_entry;

-- Makes the parts of the months ahead that are missing; returns how many.  A month that has begun without a part of
-- its own stays in audit_entry_other, and so does one of which that holds something already.
CREATE FUNCTION audit_parts_make(months_ahead integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    -- It waits for whoever reads the whole log, and play would wait for it: rather it is tried again.
    SET lock_timeout = '200ms' AS $$
DECLARE
    first_day timestamp;
    part      text;
    least_id  uuid;
    end_id    uuid;
    made      integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('audit_parts_make')) THEN
        RETURN 0;
    END IF;
    FOR ahead IN 1 .. least(months_ahead, 12) LOOP
        first_day := date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead);
        part := 'audit_entry_' || to_char(first_day, 'YYYY_MM');
        least_id := entry_id_at(first_day AT TIME ZONE 'UTC');
        end_id := entry_id_at((first_day + interval '1 month') AT TIME ZONE 'UTC');
        IF to_regclass(part) IS NULL
            AND NOT EXISTS (SELECT FROM audit_entry_other WHERE entry_id >= least_id AND entry_id < end_id) THEN
            EXECUTE format('CREATE TABLE %I (LIKE audit_entry INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part);
            PERFORM audit_part_attach(part, format('FOR VALUES FROM (%L) TO (%L)', least_id, end_id));
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END
$$;
SELECT audit_parts_make(3);

-- The order of the entries: gapless from 0.  It outlives the entries, which may be archived.
CREATE TABLE audit_leaf (
    leaf_index bigint NOT NULL CONSTRAINT audit_leaf_pkey PRIMARY KEY,
    entry_id   uuid   NOT NULL CONSTRAINT audit_leaf_of_an_entry_is_one UNIQUE,
    leaf_hash  bytea  NOT NULL,
    CONSTRAINT audit_leaf_index_counts_from_0 CHECK (leaf_index >= 0),
    CONSTRAINT audit_leaf_hash_is_sha256 CHECK (length(leaf_hash) = 32)
);

-- Hashes of complete subtrees of 256, 256², ... leaves, so that a proof reads a few hundred hashes of any tree.
-- Node `node_index` of `level` is over the leaves from node_index × 2^level on, 2^level of them.
CREATE TABLE audit_node (
    level      smallint NOT NULL,
    node_index bigint   NOT NULL,
    hash       bytea    NOT NULL,
    CONSTRAINT audit_node_pkey PRIMARY KEY (level, node_index),
    CONSTRAINT audit_node_level_is_kept CHECK (level IN (8, 16, 24, 32, 40, 48, 56)),
    CONSTRAINT audit_node_hash_is_sha256 CHECK (length(hash) = 32)
);

-- What the tree was once its first `tree_size` leaves were there.  `note` is the signed note (C2SP tlog-checkpoint).
-- One for a size: a second tree of that size has no place.
CREATE TABLE audit_checkpoint (
    tree_size bigint      NOT NULL CONSTRAINT audit_checkpoint_pkey PRIMARY KEY,
    root_hash bytea       NOT NULL,
    note      text        NOT NULL,
    made_at   timestamptz NOT NULL,
    CONSTRAINT audit_checkpoint_is_of_some_leaves CHECK (tree_size > 0),
    CONSTRAINT audit_checkpoint_root_is_sha256 CHECK (length(root_hash) = 32),
    CONSTRAINT audit_checkpoint_note_names_its_size CHECK (split_part(note, E'\n', 2) = tree_size::text),
    CONSTRAINT audit_checkpoint_note_names_its_root CHECK (decode(split_part(note, E'\n', 3), 'base64') = root_hash)
);
CREATE INDEX audit_checkpoint_by_time ON audit_checkpoint (made_at);

-- Keys that have signed checkpoints, as signed-note verifier keys.  They are published elsewhere too: this table is
-- no proof of whose they are.
CREATE TABLE audit_key (
    verifier_key text        NOT NULL CONSTRAINT audit_key_pkey PRIMARY KEY,
    added_at     timestamptz NOT NULL
);

-- How far the sealer is.  Every entry of a transaction that `sealed` sees has its leaf, if it was ever to be seen;
-- `attended_at` is when nothing that could be seen was without one.  `system` is the database cluster whose
-- transactions these are: in another one, into which the records were brought, their numbers say nothing.  There, as
-- after this migration, all entries are gone through once by their identifiers, and `walked_to` is how far that is.
CREATE TABLE audit_sealing (
    one_row     boolean     NOT NULL DEFAULT true CONSTRAINT audit_sealing_pkey PRIMARY KEY,
    system      bigint      NOT NULL,
    sealed      pg_snapshot NOT NULL,
    walked_to   uuid,
    attended_at timestamptz NOT NULL,
    CONSTRAINT audit_sealing_is_one_row CHECK (one_row)
);
INSERT INTO audit_sealing (system, sealed, attended_at) VALUES (0, '1:1:', now());

CREATE TRIGGER audit_leaf_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_leaf
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_leaf ENABLE ALWAYS TRIGGER audit_leaf_is_append_only;
CREATE TRIGGER audit_node_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_node
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_node ENABLE ALWAYS TRIGGER audit_node_is_append_only;
CREATE TRIGGER audit_checkpoint_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_checkpoint ENABLE ALWAYS TRIGGER audit_checkpoint_is_append_only;
CREATE TRIGGER audit_key_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_key
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_key ENABLE ALWAYS TRIGGER audit_key_is_append_only;

-- One sealer at a time: true for whoever is it until its transaction ends.
CREATE FUNCTION audit_sealer_take() RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT pg_try_advisory_xact_lock(hashtext('casino_brag audit sealer'))
$$;

-- What `seen` sees of the transactions before `upto`.  The present one is not over, whatever its number.
CREATE FUNCTION audit_seen(seen pg_snapshot, upto xid8) RETURNS pg_snapshot
    LANGUAGE sql AS $$
    SELECT format('%s:%s:%s', coalesce(min(x), upto), upto, string_agg(x::text, ',' ORDER BY x))::pg_snapshot
    FROM (SELECT pg_snapshot_xip(seen) AS x UNION SELECT pg_current_xact_id()) AS under_way WHERE x < upto
$$;

-- Gives entries that are committed and have no leaf the next ones.  Goes through `at_most` of them; returns how many
-- it went through, so that there may be more when it is all of these.
-- A transaction that is still under way keeps nobody else's entries waiting: `sealed` does not see it, so that its own
-- follow once it is committed.
CREATE FUNCTION audit_order(at_most integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    -- However many entries there are, those of a batch are taken by their indexes.
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    here     bigint := (SELECT system_identifier FROM pg_control_system());
    progress audit_sealing;
    snapshot pg_snapshot;
    gone     integer;
    last_xid xid8;
    last_id  uuid;
    entries  uuid[];
    hashes   bytea[];
BEGIN
    IF NOT audit_sealer_take() THEN
        RETURN 0;
    END IF;
    SELECT * INTO STRICT progress FROM audit_sealing;
    IF progress.system <> here THEN
        snapshot := pg_current_snapshot();
        progress.system := here;
        progress.sealed := audit_seen(snapshot, pg_snapshot_xmax(snapshot));
        progress.walked_to := '00000000-0000-0000-0000-000000000000';
    END IF;
    IF progress.walked_to IS NOT NULL THEN
        SELECT count(*), (array_agg(p.entry_id ORDER BY p.entry_id DESC))[1],
            array_agg(p.entry_id ORDER BY p.entry_id) FILTER (WHERE l.entry_id IS NULL),
            array_agg(p.leaf_hash ORDER BY p.entry_id) FILTER (WHERE l.entry_id IS NULL)
        INTO gone, last_id, entries, hashes
        FROM (SELECT e.entry_id, e.leaf_hash FROM audit_entry AS e WHERE e.entry_id > progress.walked_to
              ORDER BY e.entry_id LIMIT at_most) AS p
        LEFT JOIN audit_leaf AS l USING (entry_id);
        progress.walked_to := CASE WHEN gone = at_most THEN last_id END;
    ELSE
        -- What was under way then, and what has begun since.
        SELECT pg_current_snapshot(), count(*), max(f.written_xid),
            array_agg(f.entry_id ORDER BY f.written_xid, f.entry_id),
            array_agg(f.leaf_hash ORDER BY f.written_xid, f.entry_id)
        INTO snapshot, gone, last_xid, entries, hashes
        FROM (
            (SELECT e.entry_id, e.leaf_hash, e.written_xid FROM audit_entry AS e
             WHERE e.written_xid = ANY (ARRAY(SELECT pg_snapshot_xip(progress.sealed)))
               AND NOT EXISTS (SELECT FROM audit_leaf AS l WHERE l.entry_id = e.entry_id)
             ORDER BY e.written_xid, e.entry_id LIMIT at_most)
            UNION ALL
            (SELECT e.entry_id, e.leaf_hash, e.written_xid FROM audit_entry AS e
             WHERE e.written_xid >= pg_snapshot_xmax(progress.sealed)
               AND e.written_xid < pg_snapshot_xmax(pg_current_snapshot())
               AND NOT EXISTS (SELECT FROM audit_leaf AS l WHERE l.entry_id = e.entry_id)
             ORDER BY e.written_xid, e.entry_id LIMIT at_most)
            ORDER BY written_xid, entry_id LIMIT at_most
        ) AS f;
        IF gone < at_most THEN
            progress.sealed := audit_seen(snapshot, pg_snapshot_xmax(snapshot));
            progress.attended_at := now();
        ELSIF last_xid >= pg_snapshot_xmax(progress.sealed) THEN
            progress.sealed := audit_seen(snapshot, last_xid);
        END IF;
    END IF;
    INSERT INTO audit_leaf (leaf_index, entry_id, leaf_hash)
    SELECT (SELECT coalesce(max(leaf_index) + 1, 0) FROM audit_leaf) + f.number - 1, f.entry_id, f.leaf_hash
    FROM unnest(entries, hashes) WITH ORDINALITY AS f (entry_id, leaf_hash, number);
    UPDATE audit_sealing SET system = progress.system, sealed = progress.sealed,
        walked_to = progress.walked_to, attended_at = progress.attended_at;
    RETURN gone;
END
$$;

-- Puts a checkpoint and the complete subtrees that are new in it on record.  False for a size that is not larger than
-- every one before, or has leaves missing.
CREATE FUNCTION audit_checkpoint_add(
    the_size bigint, the_root bytea, the_note text, levels smallint[], indexes bigint[], hashes bytea[]
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF the_size <= coalesce((SELECT max(tree_size) FROM audit_checkpoint), 0)
        OR NOT EXISTS (SELECT FROM audit_leaf WHERE leaf_index = the_size - 1) THEN
        RETURN false;
    END IF;
    INSERT INTO audit_node (level, node_index, hash) SELECT * FROM unnest(levels, indexes, hashes);
    INSERT INTO audit_checkpoint (tree_size, root_hash, note, made_at)
        VALUES (the_size, the_root, the_note, now());
    RETURN true;
END
$$;

-- Puts a key that signs from now on on record; false when it is there already.
CREATE FUNCTION audit_key_add(the_key text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO audit_key (verifier_key, added_at) VALUES (the_key, now()) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'log.key_added');
    RETURN true;
END
$$;

GRANT SELECT ON audit_entry, audit_leaf, audit_node, audit_checkpoint, audit_key, audit_sealing TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    audit_parts_make(integer),
    audit_sealer_take(),
    audit_order(integer),
    audit_checkpoint_add(bigint, bytea, text, smallint[], bigint[], bytea[]),
    audit_key_add(text, text)
    TO casino_brag_app;
