-- Staff that signs in at the operator's identity provider (OpenID Connect), by an account linked to the person before.

-- An account at a provider, and whose it is: for good, also after the link has ended.  So no account leads to two
-- persons, one after the other.
CREATE TABLE staff_provider_account (
    issuer    text        NOT NULL,
    subject   text        NOT NULL,
    staff_id  uuid        NOT NULL CONSTRAINT staff_provider_account_staff_fkey REFERENCES staff,
    linked_at timestamptz NOT NULL DEFAULT now(),
    ended_at  timestamptz,
    CONSTRAINT staff_provider_account_pkey PRIMARY KEY (issuer, subject),
    CONSTRAINT staff_provider_account_subject_is_short CHECK (length(subject) BETWEEN 1 AND 255)
);
CREATE UNIQUE INDEX staff_provider_account_is_one ON staff_provider_account (staff_id) WHERE ended_at IS NULL;

CREATE TRIGGER staff_provider_account_is_kept
    BEFORE DELETE OR TRUNCATE ON staff_provider_account FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER staff_provider_account_is_one_persons
    BEFORE UPDATE ON staff_provider_account FOR EACH ROW WHEN (
        (OLD.issuer, OLD.subject, OLD.staff_id) IS DISTINCT FROM (NEW.issuer, NEW.subject, NEW.staff_id))
    EXECUTE FUNCTION refuse_change();
ALTER TABLE staff_provider_account ENABLE ALWAYS TRIGGER staff_provider_account_is_kept;
ALTER TABLE staff_provider_account ENABLE ALWAYS TRIGGER staff_provider_account_is_one_persons;

-- Whoever retires or is reset has no link any more, by whichever way that comes.
CREATE FUNCTION staff_provider_account_end() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_provider_account SET ended_at = now() WHERE staff_id = OLD.staff_id AND ended_at IS NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER staff_retired_has_no_link
    AFTER UPDATE ON staff FOR EACH ROW WHEN (NEW.retired_at IS NOT NULL) EXECUTE FUNCTION staff_provider_account_end();
CREATE TRIGGER staff_reset_has_no_link
    AFTER DELETE ON staff_access FOR EACH ROW EXECUTE FUNCTION staff_provider_account_end();
ALTER TABLE staff ENABLE ALWAYS TRIGGER staff_retired_has_no_link;
ALTER TABLE staff_access ENABLE ALWAYS TRIGGER staff_reset_has_no_link;

-- Links an account to the person of a session, who gave a code within ten minutes:
-- linked | no_proof | has_one | taken (it is another person's, or was)
CREATE FUNCTION staff_provider_link(the_session uuid, the_issuer text, the_subject text, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    who uuid;
BEGIN
    who := staff_session_hold(the_session);
    PERFORM FROM staff_session_now
        WHERE session_id = the_session AND state = 'live' AND proved_at > now() - interval '10 minutes';
    IF NOT FOUND THEN
        RETURN 'no_proof';
    ELSIF EXISTS (SELECT FROM staff_provider_account WHERE staff_id = who AND ended_at IS NULL) THEN
        RETURN 'has_one';
    END IF;
    INSERT INTO staff_provider_account AS a (issuer, subject, staff_id) VALUES (the_issuer, the_subject, who)
        ON CONFLICT (issuer, subject) DO UPDATE SET linked_at = now(), ended_at = NULL WHERE a.staff_id = who;
    IF NOT FOUND THEN
        RETURN 'taken';
    END IF;
    PERFORM audit_append(audit, 'staff.provider_linked');
    RETURN 'linked';
END
$$;

-- Ends the link of the person of a session, and the person's other sessions; false where there is none.
CREATE FUNCTION staff_provider_unlink(the_session uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    who uuid;
BEGIN
    who := staff_session_hold(the_session);
    UPDATE staff_provider_account SET ended_at = now()
        WHERE staff_id = who AND ended_at IS NULL
            AND EXISTS (SELECT FROM staff_session_now WHERE session_id = the_session AND state = 'live');
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM staff_sessions_end(who, the_session, 'factor_changed');
    PERFORM audit_append(audit, 'staff.provider_unlinked');
    RETURN true;
END
$$;

-- Does what the right password does, by the account that is linked: a session, in which a code can be given within five
-- minutes.  False where it is not linked, or not any more, and while the account here is locked.
CREATE FUNCTION staff_provider_sign_in(the_staff uuid, the_issuer text, the_subject text, the_session uuid,
    its_hash bytea, the_address text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- What could end the link meanwhile waits; it locks in the same order.
    PERFORM FROM staff WHERE staff_id = the_staff FOR SHARE;
    PERFORM FROM staff_access WHERE staff_id = the_staff FOR UPDATE;
    PERFORM FROM staff_provider_account JOIN staff_access_now USING (staff_id)
        WHERE issuer = the_issuer AND subject = the_subject AND staff_id = the_staff AND ended_at IS NULL
            AND locked_until IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO staff_session (session_id, secret_hash, staff_id, address, expires_at)
        VALUES (the_session, its_hash, the_staff, the_address, now() + interval '5 minutes');
    RETURN true;
END
$$;

GRANT SELECT ON staff_provider_account TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    staff_provider_link(uuid, text, text, text),
    staff_provider_unlink(uuid, text),
    staff_provider_sign_in(uuid, text, text, uuid, bytea, text)
    TO casino_brag_app;
