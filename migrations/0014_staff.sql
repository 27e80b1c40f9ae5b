-- Staff: people who check, approve and run, what each of them may do, and the tokens their programs call with.

-- A name is a person's for good, so that what the log says of it stays true.
CREATE TABLE staff (
    staff_id   uuid        NOT NULL CONSTRAINT staff_pkey PRIMARY KEY,
    name       text        NOT NULL CONSTRAINT staff_name_is_taken UNIQUE,
    roles      text[]      NOT NULL,
    added_at   timestamptz NOT NULL,
    retired_at timestamptz,
    CONSTRAINT staff_name_is_plain CHECK (name ~ '^[a-z0-9][a-z0-9.-]{0,62}$'),
    CONSTRAINT staff_roles_are_known CHECK (
        cardinality(roles) > 0 AND roles <@ ARRAY['editor', 'approver', 'auditor', 'operations'])
);

-- Of a token its SHA-256 is kept.  It has 256 random bits, so no salt is needed.
CREATE TABLE staff_token (
    token_id   text        NOT NULL CONSTRAINT staff_token_pkey PRIMARY KEY,
    staff_id   uuid        NOT NULL CONSTRAINT staff_token_staff_fkey REFERENCES staff,
    token_hash bytea       NOT NULL CONSTRAINT staff_token_is_one_persons UNIQUE,
    label      text        NOT NULL,
    issued_at  timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    CONSTRAINT staff_token_id_is_no_name CHECK (token_id ~ '^t_[0-9a-f]{12}$'),
    CONSTRAINT staff_token_hash_is_sha256 CHECK (length(token_hash) = 32),
    CONSTRAINT staff_token_label_is_short CHECK (length(label) BETWEEN 1 AND 100),
    CONSTRAINT staff_token_ends_after_it_begins CHECK (expires_at > issued_at)
);
CREATE INDEX staff_token_by_staff ON staff_token (staff_id);

CREATE TRIGGER staff_is_kept
    BEFORE DELETE OR TRUNCATE ON staff FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER staff_retired_is_final
    BEFORE UPDATE ON staff FOR EACH ROW WHEN (
        OLD.retired_at IS NOT NULL
        OR (OLD.staff_id, OLD.name, OLD.added_at) IS DISTINCT FROM (NEW.staff_id, NEW.name, NEW.added_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER staff_token_is_kept
    BEFORE DELETE OR TRUNCATE ON staff_token FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER staff_token_is_only_revoked
    BEFORE UPDATE ON staff_token FOR EACH ROW WHEN (
        OLD.revoked_at IS NOT NULL
        OR (OLD.token_id, OLD.staff_id, OLD.token_hash, OLD.label, OLD.issued_at, OLD.expires_at)
            IS DISTINCT FROM
            (NEW.token_id, NEW.staff_id, NEW.token_hash, NEW.label, NEW.issued_at, NEW.expires_at))
    EXECUTE FUNCTION refuse_change();
ALTER TABLE staff ENABLE ALWAYS TRIGGER staff_is_kept;
ALTER TABLE staff ENABLE ALWAYS TRIGGER staff_retired_is_final;
ALTER TABLE staff_token ENABLE ALWAYS TRIGGER staff_token_is_kept;
ALTER TABLE staff_token ENABLE ALWAYS TRIGGER staff_token_is_only_revoked;

-- A token as it is now: it is good while it is live.
CREATE VIEW staff_token_now AS
    SELECT t.*, s.name, s.roles,
        CASE WHEN s.retired_at IS NOT NULL THEN 'retired' WHEN t.revoked_at IS NOT NULL THEN 'revoked'
             WHEN t.expires_at <= now() THEN 'expired' ELSE 'live' END AS state
    FROM staff_token AS t JOIN staff AS s USING (staff_id);

-- When tokens that are nobody's came from an address, oldest first: a third within a minute shuts it out for the next.
-- A row is forgotten once it means nothing any more.
CREATE TABLE staff_failure (
    address   text          NOT NULL CONSTRAINT staff_failure_pkey PRIMARY KEY,
    failed_at timestamptz[] NOT NULL,
    CONSTRAINT staff_failure_address_is_short CHECK (length(address) <= 64),
    CONSTRAINT staff_failure_are_three_at_most CHECK (cardinality(failed_at) BETWEEN 1 AND 3)
);

-- Adds a person.
CREATE FUNCTION staff_add(the_staff uuid, the_name text, its_roles text[], audit text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO staff (staff_id, name, roles, added_at) VALUES (the_staff, the_name, its_roles, now());
    SELECT audit_append(audit, 'staff.added')
$$;

-- Gives a person these roles in place of those held before; false where that changes nothing.
CREATE FUNCTION staff_roles_set(the_staff uuid, its_roles text[], audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff SET roles = its_roles WHERE staff_id = the_staff AND retired_at IS NULL AND roles <> its_roles;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'staff.roles_changed');
    RETURN true;
END
$$;

-- Gives a person a token; false where the person has retired meanwhile.
CREATE FUNCTION staff_token_issue(
    the_token text, the_staff uuid, its_hash bytea, its_label text, its_end timestamptz, audit text
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM staff WHERE staff_id = the_staff AND retired_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO staff_token (token_id, staff_id, token_hash, label, issued_at, expires_at)
        VALUES (the_token, the_staff, its_hash, its_label, now(), its_end);
    PERFORM audit_append(audit, 'staff.token_issued');
    RETURN true;
END
$$;

-- Ends a token; false where it has been ended before.
CREATE FUNCTION staff_token_revoke(the_token text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_token SET revoked_at = now() WHERE token_id = the_token AND revoked_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'staff.token_revoked');
    RETURN true;
END
$$;

-- Retires a person, whose tokens end with that; false where that was done before.
CREATE FUNCTION staff_retire(the_staff uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff SET retired_at = now() WHERE staff_id = the_staff AND retired_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE staff_token SET revoked_at = now() WHERE staff_id = the_staff AND revoked_at IS NULL;
    PERFORM audit_append(audit, 'staff.retired');
    RETURN true;
END
$$;

-- Puts a call of a person's on record.
CREATE FUNCTION staff_called(audit text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT audit_append(audit, 'staff.called')
$$;

-- Puts a token that was refused on record, and counts it against the address it came from.  False for an address that
-- is shut out already, and while sixty came within a minute from wherever: of that nothing is written, so three a
-- minute is all that one address can write, and sixty all of them.
CREATE FUNCTION staff_refused(the_address text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- One after another, so that each sees those before it.
    PERFORM pg_advisory_xact_lock(hashtext('casino_brag staff refused'));
    IF 60 <= (SELECT count(*) FROM staff_failure, unnest(failed_at) AS t WHERE t > now() - interval '1 minute') THEN
        RETURN false;
    END IF;
    INSERT INTO staff_failure AS f (address, failed_at) VALUES (the_address, ARRAY[now()])
    ON CONFLICT (address) DO UPDATE SET failed_at = ARRAY(
            SELECT t FROM unnest(f.failed_at) AS t WHERE t > now() - interval '1 minute' ORDER BY t) || now()
        WHERE cardinality(f.failed_at) < 3 OR f.failed_at[3] <= now() - interval '1 minute';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'staff.refused');
    DELETE FROM staff_failure WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM staff_failure WHERE failed_at[cardinality(failed_at)] <= now() - interval '1 minute'
        LIMIT 100 FOR UPDATE SKIP LOCKED));
    RETURN true;
END
$$;

GRANT SELECT ON staff, staff_token, staff_token_now, staff_failure TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    staff_add(uuid, text, text[], text),
    staff_roles_set(uuid, text[], text),
    staff_token_issue(text, uuid, bytea, text, timestamptz, text),
    staff_token_revoke(text, text),
    staff_retire(uuid, text),
    staff_called(text),
    staff_refused(text, text)
    TO casino_brag_app;
