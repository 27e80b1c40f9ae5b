-- A link that a proposal led to is half of what it takes to join.  The other half is a code, which whoever approved the
-- proposal hands over by another way, so that neither of the two can join in the place of the person who is meant.

-- The code that goes with the last approval of a person's coming or reset; codes of earlier ones are good no more.  Its
-- SHA-256 is kept, which the application does not read.  (The person of an invitation is added after its approval.)
CREATE TABLE staff_join_code (
    name        text  NOT NULL CONSTRAINT staff_join_code_pkey PRIMARY KEY,
    proposal_id uuid  NOT NULL CONSTRAINT staff_join_code_proposal_fkey REFERENCES proposal,
    code_hash   bytea NOT NULL,
    CONSTRAINT staff_join_code_hash_is_sha256 CHECK (length(code_hash) = 32)
);
GRANT SELECT (name, proposal_id) ON staff_join_code TO casino_brag_app;

-- How often somebody gave another code than the right one with this link.
ALTER TABLE staff_invitation
    ADD COLUMN wrong_codes smallint NOT NULL DEFAULT 0,
    ADD CONSTRAINT staff_invitation_wrong_codes_are_five_at_most CHECK (wrong_codes BETWEEN 0 AND 5);

-- Links from before have no other half.
UPDATE staff_invitation SET ended_at = now() WHERE proposal_id IS NOT NULL AND ended_at IS NULL;

-- Invites a person to join, which ends an invitation before:  invited | joined (already) | retired
-- One that a proposal led to is made by who proposed it and is of operations still, within a week of the decision and
-- as the first since then: whoever was invited in another way meanwhile is not displaced by it.  And its join code has
-- to be the person's: no approval came after it.  Otherwise: not_yours
CREATE OR REPLACE FUNCTION staff_invite(the_staff uuid, the_hash bytea, its_end timestamptz, its_proposal uuid,
    by_staff uuid, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM staff WHERE staff_id = the_staff AND retired_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'retired';
    ELSIF EXISTS (SELECT FROM staff_access WHERE staff_id = the_staff) THEN
        RETURN 'joined';
    ELSIF its_proposal IS NOT NULL AND NOT (staff_holds(by_staff, 'operations') AND EXISTS (
        SELECT FROM staff_join_code AS c JOIN proposal AS p USING (proposal_id) JOIN staff AS s ON s.name = c.name
        WHERE p.proposal_id = its_proposal AND s.staff_id = the_staff AND p.proposed_by = by_staff
            AND p.decided_at > now() - interval '7 days'
            AND NOT EXISTS (
                SELECT FROM staff_invitation AS i WHERE i.staff_id = the_staff AND (
                    i.proposal_id = its_proposal OR i.proposal_id IS NULL AND i.made_at >= p.decided_at)))) THEN
        RETURN 'not_yours';
    END IF;
    UPDATE staff_invitation SET ended_at = now() WHERE staff_id = the_staff AND ended_at IS NULL;
    INSERT INTO staff_invitation (token_hash, staff_id, proposal_id, expires_at)
        VALUES (the_hash, the_staff, its_proposal, its_end);
    PERFORM audit_append(audit, 'staff.invited');
    RETURN 'invited';
END
$$;

-- Makes a person of an invitation one who can sign in, and signs the person in by the code of that authenticator:
--   joined | gone (the link was used, replaced or has expired) | wrong_code | ended (the fifth wrong code ends the link)
-- Where a proposal led to the invitation, it takes the join code that goes with that proposal.
DROP FUNCTION staff_join(bytea, text, bytea, bigint, bytea[], uuid, bytea, text, text, text);
CREATE FUNCTION staff_join(the_hash bytea, its_code bytea, the_password text, the_secret bytea, the_step bigint,
    the_codes bytea[], the_session uuid, its_hash bytea, the_address text, audit text, signed_in_audit text,
    wrong_audit text, ended_audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    i staff_invitation;
BEGIN
    SELECT * INTO i FROM staff_invitation
        WHERE token_hash = the_hash AND ended_at IS NULL AND expires_at > now() FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'gone';
    ELSIF i.proposal_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM staff_join_code WHERE proposal_id = i.proposal_id AND code_hash = its_code) THEN
        UPDATE staff_invitation SET wrong_codes = i.wrong_codes + 1, ended_at = CASE i.wrong_codes WHEN 4 THEN now() END
            WHERE token_hash = the_hash;
        PERFORM audit_append(wrong_audit, 'staff.join_failed');
        IF i.wrong_codes < 4 THEN
            RETURN 'wrong_code';
        END IF;
        PERFORM audit_append(ended_audit, 'staff.invitation_ended');
        RETURN 'ended';
    END IF;
    UPDATE staff_invitation SET ended_at = now() WHERE token_hash = the_hash;
    INSERT INTO staff_access (staff_id, password_hash, sealed_secret, code_step, recovery_codes)
        VALUES (i.staff_id, the_password, the_secret, the_step, the_codes);
    PERFORM audit_append(audit, 'staff.joined');
    INSERT INTO staff_session (session_id, secret_hash, staff_id, address, expires_at, proved_at)
        VALUES (the_session, its_hash, i.staff_id, the_address, now() + interval '12 hours', now());
    PERFORM audit_append(signed_in_audit, 'staff.signed_in');
    RETURN 'joined';
END
$$;

-- Decides a proposal, once:  done | not_found | wrong_state (it is not open) | forbidden | same_person
-- An approver does who neither made it nor is its subject; who made it may withdraw it.  It is approved only while who
-- made it is of operations.  One after another, so that of two approvers who would retire each other one is left.
-- An approval that leads to a link comes with the hash of a join code; with that a code and a link from before end.
DROP FUNCTION proposal_decide(uuid, text, text, uuid, text);
CREATE FUNCTION proposal_decide(the_proposal uuid, verdict text, its_reason text, by_staff uuid, its_code bytea,
    audit text) RETURNS text
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
    IF verdict = 'approved' AND p.kind IN ('staff_invite', 'staff_reset') THEN
        INSERT INTO staff_join_code (name, proposal_id, code_hash) VALUES (p.subject, the_proposal, its_code)
        ON CONFLICT (name) DO UPDATE SET proposal_id = EXCLUDED.proposal_id, code_hash = EXCLUDED.code_hash;
        UPDATE staff_invitation SET ended_at = now() WHERE staff_id = p.subject_staff AND ended_at IS NULL;
    END IF;
    PERFORM audit_append_of(by_staff, NULL, audit, 'proposal.decided');
    RETURN 'done';
END
$$;

GRANT EXECUTE ON FUNCTION
    staff_join(bytea, bytea, text, bytea, bigint, bytea[], uuid, bytea, text, text, text, text, text),
    proposal_decide(uuid, text, text, uuid, bytea, text)
    TO casino_brag_app;
