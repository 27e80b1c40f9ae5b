-- How staff proves who it is: invitations, passwords and second factors, sessions.  And what two persons do together.

-- How a person signs in.  There is a row from joining on: nobody has a password and no second factor.
-- `code_step`: the time step of the last code that was taken; a code of it or before is not taken again.
-- `failures`: tries in a row that failed or are not judged yet; three lock the account for 15 minutes from `tried_at`.
-- `locked`: that this is so is on record.
CREATE TABLE staff_access (
    staff_id       uuid        NOT NULL CONSTRAINT staff_access_pkey PRIMARY KEY
                               CONSTRAINT staff_access_staff_fkey REFERENCES staff,
    password_hash  text        NOT NULL,
    sealed_secret  bytea       NOT NULL,
    code_step      bigint      NOT NULL,
    recovery_codes bytea[]     NOT NULL,  -- SHA-256 of each that is left
    failures       smallint    NOT NULL DEFAULT 0,
    tried_at       timestamptz NOT NULL DEFAULT now(),
    locked         boolean     NOT NULL DEFAULT false,
    joined_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT staff_access_password_is_hashed CHECK (password_hash ~ '^\$argon2id\$'),
    CONSTRAINT staff_access_recovery_codes_are_few CHECK (cardinality(recovery_codes) <= 10),
    CONSTRAINT staff_access_failures_are_three_at_most CHECK (failures BETWEEN 0 AND 3)
);

-- A link by which a person joins.  Of its token the SHA-256 is kept.
CREATE TABLE staff_invitation (
    token_hash  bytea       NOT NULL CONSTRAINT staff_invitation_pkey PRIMARY KEY,
    staff_id    uuid        NOT NULL CONSTRAINT staff_invitation_staff_fkey REFERENCES staff,
    proposal_id uuid        CONSTRAINT staff_invitation_is_made_once UNIQUE,
    made_at     timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    CONSTRAINT staff_invitation_token_hash_is_sha256 CHECK (length(token_hash) = 32),
    CONSTRAINT staff_invitation_ends_after_it_begins CHECK (expires_at > made_at)
);
CREATE UNIQUE INDEX staff_invitation_is_one ON staff_invitation (staff_id) WHERE ended_at IS NULL;

-- A session.  Until a code is given, `proved_at` is null, and it is good for nothing but giving one.
CREATE TABLE staff_session (
    session_id  uuid        NOT NULL CONSTRAINT staff_session_pkey PRIMARY KEY,
    secret_hash bytea       NOT NULL CONSTRAINT staff_session_is_one_persons UNIQUE,
    staff_id    uuid        NOT NULL CONSTRAINT staff_session_staff_fkey REFERENCES staff,
    address     text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    seen_at     timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    proved_at   timestamptz,
    ended_at    timestamptz,
    ended_why   text,
    CONSTRAINT staff_session_secret_hash_is_sha256 CHECK (length(secret_hash) = 32),
    CONSTRAINT staff_session_address_is_short CHECK (length(address) <= 64),
    CONSTRAINT staff_session_ends_for_a_reason CHECK (num_nulls(ended_at, ended_why) IN (0, 2)),
    CONSTRAINT staff_session_end_is_known CHECK (ended_why IN
        ('signed_in', 'signed_out', 'ended', 'password_changed', 'factor_changed', 'roles_changed', 'reset', 'retired'))
);
CREATE INDEX staff_session_by_staff ON staff_session (staff_id, created_at DESC);

-- What one person proposes and another decides.
CREATE TABLE proposal (
    proposal_id     uuid        NOT NULL CONSTRAINT proposal_pkey PRIMARY KEY,
    kind            text        NOT NULL,
    subject         text        NOT NULL,  -- a name of staff, or a round
    subject_staff   uuid        CONSTRAINT proposal_subject_fkey REFERENCES staff,
    payload         jsonb       NOT NULL,
    reason          text        NOT NULL,
    proposed_by     uuid        NOT NULL CONSTRAINT proposal_proposer_fkey REFERENCES staff,
    proposed_at     timestamptz NOT NULL DEFAULT now(),
    state           text        NOT NULL DEFAULT 'open',
    decided_by      uuid        CONSTRAINT proposal_decider_fkey REFERENCES staff,
    decided_at      timestamptz,
    decision_reason text,
    CONSTRAINT proposal_kind_is_known CHECK (kind IN
        ('staff_invite', 'staff_roles', 'staff_retire', 'staff_reset', 'round_void')),
    CONSTRAINT proposal_has_a_reason CHECK (length(reason) BETWEEN 1 AND 500),
    CONSTRAINT proposal_decision_reason_is_short CHECK (length(decision_reason) <= 500),
    CONSTRAINT proposal_state_is_known CHECK (state IN ('open', 'approved', 'rejected', 'withdrawn')),
    CONSTRAINT proposal_decision_is_complete CHECK (num_nulls(decided_by, decided_at) = (state = 'open')::integer * 2),
    CONSTRAINT proposal_takes_two CHECK (
        (state = 'approved') <= (decided_by <> proposed_by AND decided_by IS DISTINCT FROM subject_staff))
);
CREATE INDEX proposal_by_time ON proposal (proposed_at DESC, proposal_id DESC);
ALTER TABLE staff_invitation ADD CONSTRAINT staff_invitation_proposal_fkey FOREIGN KEY (proposal_id) REFERENCES proposal;

CREATE TRIGGER staff_session_ended_is_final
    BEFORE UPDATE ON staff_session FOR EACH ROW WHEN (
        OLD.ended_at IS NOT NULL
        OR (OLD.session_id, OLD.secret_hash, OLD.staff_id, OLD.created_at, OLD.expires_at)
            IS DISTINCT FROM (NEW.session_id, NEW.secret_hash, NEW.staff_id, NEW.created_at, NEW.expires_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER staff_invitation_ended_is_final
    BEFORE UPDATE ON staff_invitation FOR EACH ROW WHEN (
        OLD.ended_at IS NOT NULL
        OR (OLD.token_hash, OLD.staff_id, OLD.proposal_id, OLD.expires_at)
            IS DISTINCT FROM (NEW.token_hash, NEW.staff_id, NEW.proposal_id, NEW.expires_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER proposal_is_kept
    BEFORE DELETE OR TRUNCATE ON proposal FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER proposal_decided_is_final
    BEFORE UPDATE ON proposal FOR EACH ROW WHEN (
        OLD.state <> 'open'
        OR (OLD.proposal_id, OLD.kind, OLD.subject, OLD.subject_staff, OLD.payload, OLD.reason, OLD.proposed_by,
            OLD.proposed_at)
            IS DISTINCT FROM
            (NEW.proposal_id, NEW.kind, NEW.subject, NEW.subject_staff, NEW.payload, NEW.reason, NEW.proposed_by,
            NEW.proposed_at))
    EXECUTE FUNCTION refuse_change();
ALTER TABLE staff_session ENABLE ALWAYS TRIGGER staff_session_ended_is_final;
ALTER TABLE staff_invitation ENABLE ALWAYS TRIGGER staff_invitation_ended_is_final;
ALTER TABLE proposal ENABLE ALWAYS TRIGGER proposal_is_kept;
ALTER TABLE proposal ENABLE ALWAYS TRIGGER proposal_decided_is_final;

-- A session as it is now.
CREATE VIEW staff_session_now AS
    SELECT s.*, p.name, p.roles,
        CASE WHEN s.ended_at IS NOT NULL THEN 'ended'
             WHEN p.retired_at IS NOT NULL OR s.expires_at <= now() OR s.seen_at <= now() - interval '30 minutes'
                 THEN 'expired'
             WHEN s.proved_at IS NULL THEN 'awaiting_code' ELSE 'live' END AS state
    FROM staff_session AS s JOIN staff AS p USING (staff_id);

-- How it stands with everybody's signing in, without what proves it.
CREATE VIEW staff_access_now AS
    SELECT s.staff_id, a.joined_at, cardinality(a.recovery_codes) AS recovery_codes_left,
        CASE WHEN a.failures >= 3 AND a.tried_at > now() - interval '15 minutes'
             THEN a.tried_at + interval '15 minutes' END AS locked_until,
        i.expires_at AS invited_until
    FROM staff AS s LEFT JOIN staff_access AS a USING (staff_id)
    LEFT JOIN staff_invitation AS i
        ON i.staff_id = s.staff_id AND i.ended_at IS NULL AND i.expires_at > now() AND s.retired_at IS NULL;

-- A proposal as it is now, with the names of persons.
CREATE VIEW proposal_now AS
    SELECT p.proposal_id, p.kind, p.subject, p.subject_staff, p.payload, p.reason, p.proposed_by,
        proposer.name AS proposer, p.proposed_at,
        CASE WHEN p.state = 'open' AND p.proposed_at <= now() - interval '7 days' THEN 'expired' ELSE p.state END AS state,
        decider.name AS decider, p.decided_at, p.decision_reason,
        EXISTS (SELECT FROM staff_invitation AS i WHERE i.proposal_id = p.proposal_id) AS link_made
    FROM proposal AS p
    JOIN staff AS proposer ON proposer.staff_id = p.proposed_by
    LEFT JOIN staff AS decider ON decider.staff_id = p.decided_by;

-- Counts a failure against the address it came from.  False for an address that is shut out already, and while sixty
-- came within a minute from wherever: of that nothing is written.
CREATE FUNCTION staff_address_failed(the_address text) RETURNS boolean
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
    DELETE FROM staff_failure WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM staff_failure WHERE failed_at[cardinality(failed_at)] <= now() - interval '1 minute'
        LIMIT 100 FOR UPDATE SKIP LOCKED));
    RETURN true;
END
$$;

-- Puts a token that was refused on record, and counts it against the address it came from; false where neither is done.
CREATE OR REPLACE FUNCTION staff_refused(the_address text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT staff_address_failed(the_address) THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'staff.refused');
    RETURN true;
END
$$;

-- Ends a person's sessions, but for one where that is named.
CREATE FUNCTION staff_sessions_end(the_staff uuid, spared uuid, why text) RETURNS void
    LANGUAGE sql SET search_path = public, pg_temp AS $$
    UPDATE staff_session SET ended_at = now(), ended_why = why
    WHERE staff_id = the_staff AND ended_at IS NULL AND session_id IS DISTINCT FROM spared
$$;

-- Gives a person these roles in place of those held before, and ends the person's sessions; false where that changes
-- nothing.
CREATE OR REPLACE FUNCTION staff_roles_set(the_staff uuid, its_roles text[], audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff SET roles = its_roles WHERE staff_id = the_staff AND retired_at IS NULL AND roles <> its_roles;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM staff_sessions_end(the_staff, NULL, 'roles_changed');
    PERFORM audit_append(audit, 'staff.roles_changed');
    RETURN true;
END
$$;

-- Retires a person, whose tokens, sessions and invitation end with that; false where that was done before.
CREATE OR REPLACE FUNCTION staff_retire(the_staff uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff SET retired_at = now() WHERE staff_id = the_staff AND retired_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE staff_token SET revoked_at = now() WHERE staff_id = the_staff AND revoked_at IS NULL;
    UPDATE staff_invitation SET ended_at = now() WHERE staff_id = the_staff AND ended_at IS NULL;
    PERFORM staff_sessions_end(the_staff, NULL, 'retired');
    PERFORM audit_append(audit, 'staff.retired');
    RETURN true;
END
$$;

-- Invites a person to join, which ends an invitation before:  invited | joined (already) | retired
-- One that a proposal led to is made by who proposed it and is of operations still, within a week of the decision and
-- as the first since then: whoever was invited in another way meanwhile is not displaced by it.  Otherwise: not_yours
CREATE FUNCTION staff_invite(the_staff uuid, the_hash bytea, its_end timestamptz, its_proposal uuid, by_staff uuid,
    audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM staff WHERE staff_id = the_staff AND retired_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'retired';
    ELSIF EXISTS (SELECT FROM staff_access WHERE staff_id = the_staff) THEN
        RETURN 'joined';
    ELSIF its_proposal IS NOT NULL AND NOT (staff_holds(by_staff, 'operations') AND EXISTS (
        SELECT FROM proposal AS p JOIN staff AS s ON s.name = p.subject
        WHERE p.proposal_id = its_proposal AND s.staff_id = the_staff AND p.state = 'approved'
            AND p.kind IN ('staff_invite', 'staff_reset') AND p.proposed_by = by_staff
            AND p.decided_at > now() - interval '7 days'
            AND NOT EXISTS (
                SELECT FROM staff_invitation AS i WHERE i.staff_id = the_staff AND i.made_at >= p.decided_at))) THEN
        RETURN 'not_yours';
    END IF;
    UPDATE staff_invitation SET ended_at = now() WHERE staff_id = the_staff AND ended_at IS NULL;
    INSERT INTO staff_invitation (token_hash, staff_id, proposal_id, expires_at)
        VALUES (the_hash, the_staff, its_proposal, its_end);
    PERFORM audit_append(audit, 'staff.invited');
    RETURN 'invited';
END
$$;

-- Makes a person of an invitation one who can sign in, and signs the person in by the code of that authenticator; false
-- where it was used, replaced or has expired.
CREATE FUNCTION staff_join(the_hash bytea, the_password text, the_secret bytea, the_step bigint, the_codes bytea[],
    the_session uuid, its_hash bytea, the_address text, audit text, signed_in_audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    who uuid;
BEGIN
    UPDATE staff_invitation SET ended_at = now()
        WHERE token_hash = the_hash AND ended_at IS NULL AND expires_at > now() RETURNING staff_id INTO who;
    IF who IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO staff_access (staff_id, password_hash, sealed_secret, code_step, recovery_codes)
        VALUES (who, the_password, the_secret, the_step, the_codes);
    PERFORM audit_append(audit, 'staff.joined');
    INSERT INTO staff_session (session_id, secret_hash, staff_id, address, expires_at, proved_at)
        VALUES (the_session, its_hash, who, the_address, now() + interval '12 hours', now());
    PERFORM audit_append(signed_in_audit, 'staff.signed_in');
    RETURN true;
END
$$;

-- Puts away how a person signs in, and ends the person's sessions and tokens; false for somebody who has not joined.
CREATE FUNCTION staff_reset(the_staff uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM staff_access WHERE staff_id = the_staff;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE staff_token SET revoked_at = now() WHERE staff_id = the_staff AND revoked_at IS NULL;
    PERFORM staff_sessions_end(the_staff, NULL, 'reset');
    PERFORM audit_append(audit, 'staff.reset');
    RETURN true;
END
$$;

-- A person whose lock is lifted before its time; false for one who is not locked out.
CREATE FUNCTION staff_unlock(the_staff uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM staff_access WHERE staff_id = the_staff FOR UPDATE;
    UPDATE staff_access SET failures = 0, locked = false
        WHERE staff_id = (SELECT staff_id FROM staff_access_now WHERE staff_id = the_staff AND locked_until IS NOT NULL);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'staff.unlocked');
    RETURN true;
END
$$;

-- Begins a try at a password or a code.  It counts as failed until it is judged, so that no more than three can be
-- under way.  No row where the person is nobody, has retired or has not joined, or while the account is locked.
CREATE FUNCTION staff_try(the_staff uuid) RETURNS TABLE (password_hash text, sealed_secret bytea)
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT FROM staff_access WHERE staff_id = the_staff FOR UPDATE;
    UPDATE staff_access AS a SET tried_at = now(), locked = a.locked AND a.failures < 3,
        failures = CASE WHEN a.failures < 3 THEN a.failures + 1 ELSE 1 END
    FROM staff AS s JOIN staff_access_now AS n USING (staff_id)
    WHERE a.staff_id = the_staff AND s.staff_id = the_staff AND s.retired_at IS NULL AND n.locked_until IS NULL
    RETURNING a.password_hash, a.sealed_secret
$$;

-- A try that failed is on record, and counts against the address; a third in a row locks the account.
-- One that was not begun, for whatever cause, is on record as far as its address allows.
CREATE FUNCTION staff_try_failed(the_staff uuid, begun boolean, the_address text, audit text, locked_audit text)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF staff_address_failed(the_address) OR begun THEN
        PERFORM audit_append(audit, 'staff.sign_in_failed');
    END IF;
    IF begun THEN
        UPDATE staff_access SET locked = true WHERE staff_id = the_staff AND failures >= 3 AND NOT locked;
        IF FOUND THEN
            PERFORM audit_append(locked_audit, 'staff.locked_out');
        END IF;
    END IF;
END
$$;

-- A try whose password was right: a session, in which a code can be given within five minutes.  It takes back what it
-- counted, and no more: a password does not give new tries at codes.  False where the account was locked, or its
-- password changed, since the try began.
CREATE FUNCTION staff_password_right(the_staff uuid, the_hash text, a_newer_hash text, the_session uuid,
    its_hash bytea, the_address text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_access SET failures = greatest(0, failures - 1), password_hash = coalesce(a_newer_hash, password_hash)
        WHERE staff_id = the_staff AND password_hash = the_hash AND NOT locked;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO staff_session (session_id, secret_hash, staff_id, address, expires_at)
        VALUES (the_session, its_hash, the_staff, the_address, now() + interval '5 minutes');
    RETURN true;
END
$$;

-- Takes a code, once: of a time step after the last one's, or a recovery code that is left.  False where it does not.
-- A secret that was sealed anew takes the place of the one before.
CREATE FUNCTION staff_code_taken(the_staff uuid, its_step bigint, its_hash bytea, sealed_again bytea) RETURNS boolean
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_access SET failures = 0, code_step = coalesce(its_step, code_step),
            recovery_codes = array_remove(recovery_codes, its_hash),
            sealed_secret = coalesce(sealed_again, sealed_secret)
        WHERE staff_id = the_staff AND NOT locked
            AND CASE WHEN its_step IS NULL THEN its_hash = ANY (recovery_codes) ELSE its_step > code_step END;
    RETURN FOUND;
END
$$;

-- Whose session it is, null for somebody who has retired.  What could end it meanwhile waits; it locks in the same order.
CREATE FUNCTION staff_session_hold(the_session uuid) RETURNS uuid
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    who uuid := (SELECT staff_id FROM staff_session WHERE session_id = the_session);
BEGIN
    PERFORM FROM staff WHERE staff_id = who AND retired_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM staff_access WHERE staff_id = who FOR UPDATE;
    PERFORM FROM staff_session WHERE session_id = the_session FOR UPDATE;
    RETURN who;
END
$$;

-- Signs a person in whose session awaits a code: that session ends, and another with another secret begins.
CREATE FUNCTION staff_sign_in(awaiting uuid, its_step bigint, its_code bytea, sealed_again bytea, the_session uuid,
    its_hash bytea, the_address text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    who uuid;
BEGIN
    who := staff_session_hold(awaiting);
    PERFORM FROM staff_session_now WHERE session_id = awaiting AND state = 'awaiting_code';
    IF NOT FOUND OR NOT staff_code_taken(who, its_step, its_code, sealed_again) THEN
        RETURN false;
    END IF;
    UPDATE staff_session SET ended_at = now(), ended_why = 'signed_in' WHERE session_id = awaiting;
    INSERT INTO staff_session (session_id, secret_hash, staff_id, address, expires_at, proved_at)
        VALUES (the_session, its_hash, who, the_address, now() + interval '12 hours', now());
    PERFORM audit_append(audit, 'staff.signed_in');
    RETURN true;
END
$$;

-- Somebody who is signed in gives a code once more.
CREATE FUNCTION staff_prove(the_session uuid, its_step bigint, its_code bytea, sealed_again bytea, audit text)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    who uuid;
BEGIN
    who := staff_session_hold(the_session);
    PERFORM FROM staff_session_now WHERE session_id = the_session AND state = 'live';
    IF NOT FOUND OR NOT staff_code_taken(who, its_step, its_code, sealed_again) THEN
        RETURN false;
    END IF;
    UPDATE staff_session SET proved_at = now(), seen_at = now() WHERE session_id = the_session;
    PERFORM audit_append(audit, 'staff.proved');
    RETURN true;
END
$$;

-- That a session is in use.
CREATE FUNCTION staff_session_seen(the_session uuid) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE staff_session SET seen_at = now() WHERE session_id = the_session AND ended_at IS NULL
$$;

-- Ends a session; false where that was done before.
CREATE FUNCTION staff_session_end(the_session uuid, why text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_session SET ended_at = now(), ended_why = why WHERE session_id = the_session AND ended_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM audit_append(audit, 'staff.signed_out');
    RETURN true;
END
$$;

-- Gives a person another password after a try whose password was right, and ends the person's other sessions.  False
-- where the account was locked, or its password changed, since the try began.
CREATE FUNCTION staff_password_change(the_staff uuid, the_hash text, its_new_hash text, the_session uuid, audit text)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_access SET failures = greatest(0, failures - 1), password_hash = its_new_hash
        WHERE staff_id = the_staff AND password_hash = the_hash AND NOT locked;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM staff_sessions_end(the_staff, the_session, 'password_changed');
    PERFORM audit_append(audit, 'staff.password_changed');
    RETURN true;
END
$$;

-- Gives a person another second factor and ends the person's other sessions, or, without a secret, other recovery codes.
CREATE FUNCTION staff_factor_change(the_staff uuid, the_secret bytea, the_step bigint, the_codes bytea[],
    the_session uuid, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE staff_access SET recovery_codes = the_codes, sealed_secret = coalesce(the_secret, sealed_secret),
            code_step = coalesce(the_step, code_step)
        WHERE staff_id = the_staff;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF the_secret IS NOT NULL THEN
        PERFORM staff_sessions_end(the_staff, the_session, 'factor_changed');
    END IF;
    PERFORM audit_append(audit, 'staff.factor_changed');
    RETURN true;
END
$$;

-- Proposes something:  done | forbidden | wrong_state (the same is open already)
CREATE FUNCTION proposal_make(the_proposal uuid, its_kind text, its_subject text, its_payload jsonb, its_reason text,
    by_staff uuid, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT staff_holds(by_staff, 'operations') THEN
        RETURN 'forbidden';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('casino_brag proposal ' || its_kind || ' ' || its_subject));
    IF EXISTS (SELECT FROM proposal_now WHERE kind = its_kind AND subject = its_subject AND state = 'open') THEN
        RETURN 'wrong_state';
    END IF;
    INSERT INTO proposal (proposal_id, kind, subject, subject_staff, payload, reason, proposed_by)
        VALUES (the_proposal, its_kind, its_subject,
            (SELECT staff_id FROM staff WHERE its_kind LIKE 'staff_%' AND name = its_subject),
            its_payload, its_reason, by_staff);
    PERFORM audit_append_of(by_staff, NULL, audit, 'proposal.made');
    RETURN 'done';
END
$$;

-- Decides a proposal, once:  done | not_found | wrong_state (it is not open) | forbidden | same_person
-- An approver does who neither made it nor is its subject; who made it may withdraw it.  It is approved only while who
-- made it is of operations.  One after another, so that of two approvers who would retire each other one is left.
CREATE FUNCTION proposal_decide(the_proposal uuid, verdict text, its_reason text, by_staff uuid, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    p proposal_now;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('casino_brag proposal decided'));
    PERFORM FROM proposal WHERE proposal_id = the_proposal FOR UPDATE;
    SELECT * INTO p FROM proposal_now WHERE proposal_id = the_proposal;
    IF NOT FOUND THEN
        RETURN 'not_found';
    ELSIF p.state <> 'open' THEN
        RETURN 'wrong_state';
    ELSIF NOT (CASE verdict WHEN 'withdrawn' THEN by_staff = p.proposed_by AND staff_works(by_staff)
            ELSE staff_holds(by_staff, 'approver') END) THEN
        RETURN 'forbidden';
    ELSIF verdict <> 'withdrawn' AND (by_staff = p.proposed_by OR by_staff IS NOT DISTINCT FROM p.subject_staff) THEN
        RETURN 'same_person';
    ELSIF verdict = 'approved' AND NOT staff_holds(p.proposed_by, 'operations') THEN
        RETURN 'wrong_state';
    END IF;
    UPDATE proposal SET state = verdict, decided_by = by_staff, decided_at = now(), decision_reason = its_reason
        WHERE proposal_id = the_proposal;
    PERFORM audit_append_of(by_staff, NULL, audit, 'proposal.decided');
    RETURN 'done';
END
$$;

GRANT SELECT ON
    staff_session, staff_session_now, staff_access_now, staff_invitation, proposal, proposal_now
    TO casino_brag_app;
GRANT SELECT (staff_id, sealed_secret) ON staff_access TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    staff_invite(uuid, bytea, timestamptz, uuid, uuid, text),
    staff_join(bytea, text, bytea, bigint, bytea[], uuid, bytea, text, text, text),
    staff_reset(uuid, text),
    staff_unlock(uuid, text),
    staff_try(uuid),
    staff_try_failed(uuid, boolean, text, text, text),
    staff_password_right(uuid, text, text, uuid, bytea, text),
    staff_sign_in(uuid, bigint, bytea, bytea, uuid, bytea, text, text),
    staff_prove(uuid, bigint, bytea, bytea, text),
    staff_session_seen(uuid),
    staff_session_end(uuid, text, text),
    staff_password_change(uuid, text, text, uuid, text),
    staff_factor_change(uuid, bytea, bigint, bytea[], uuid, text),
    proposal_make(uuid, text, text, jsonb, text, uuid, text),
    proposal_decide(uuid, text, text, uuid, text)
    TO casino_brag_app;
