-- The life of a paytable version: one person drafts and submits it, another approves it, and it is put in force by
-- somebody who did not approve it.  The rules of who may do what are kept here, whatever calls: a role is read while
-- the person's row is held, so that none is acted on that is being taken away.

-- What a version was approved for, and by whom.  Of one that came from a file, or from before, nothing is known.
ALTER TABLE paytable_version
    ADD COLUMN approved_by   uuid CONSTRAINT paytable_version_approver_fkey REFERENCES staff,
    ADD COLUMN jurisdictions text[],  -- in whose sessions it is offered; null is in all
    ADD COLUMN certificate   text,
    ADD COLUMN note          text,    -- why it was made
    ADD CONSTRAINT paytable_version_approved_is_for_jurisdictions
        CHECK ((approved_by IS NULL) = (jurisdictions IS NULL) AND cardinality(jurisdictions) > 0);

-- Drafts.  `text` is the file (TOML), and may be unfinished; `editors` is everybody who made or saved it.  What was
-- submitted is pinned by the digest of its canonical document.
CREATE TABLE paytable_draft (
    draft_id        uuid        NOT NULL CONSTRAINT paytable_draft_pkey PRIMARY KEY,
    game            text        NOT NULL,
    number          integer     NOT NULL CONSTRAINT paytable_draft_counts_from_1 CHECK (number >= 1),
    state           text        NOT NULL DEFAULT 'draft',
    text            text        NOT NULL,
    revision        integer     NOT NULL DEFAULT 1,  -- another after every change
    started_from    integer,  -- a version of the game
    created_by      uuid        NOT NULL CONSTRAINT paytable_draft_creator_fkey REFERENCES staff,
    editors         uuid[]      NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    changed_at      timestamptz NOT NULL DEFAULT now(),
    submitted_by    uuid        CONSTRAINT paytable_draft_submitter_fkey REFERENCES staff,
    submitted_at    timestamptz,
    digest          text,
    document        text,
    jurisdictions   text[],
    certificate     text,
    note            text,
    decided_by      uuid        CONSTRAINT paytable_draft_decider_fkey REFERENCES staff,
    decided_at      timestamptz,
    decision_reason text,
    version_id      uuid        CONSTRAINT paytable_draft_version_fkey REFERENCES paytable_version,
    CONSTRAINT paytable_draft_number_is_used_once UNIQUE (game, number),
    CONSTRAINT paytable_draft_state_is_known CHECK (state IN ('draft', 'submitted', 'approved', 'rejected')),
    CONSTRAINT paytable_draft_text_is_a_files CHECK (octet_length(text) <= 65536),
    CONSTRAINT paytable_draft_creator_is_an_editor CHECK (created_by = ANY (editors)),
    CONSTRAINT paytable_draft_submitted_is_whole CHECK ((state <> 'draft' OR submitted_by IS NULL)
        AND (state NOT IN ('submitted', 'approved') OR submitted_by IS NOT NULL)
        AND num_nulls(submitted_by, submitted_at, digest, document, jurisdictions, note) IN (0, 6)),
    CONSTRAINT paytable_draft_submitted_is_for_jurisdictions CHECK (cardinality(jurisdictions) > 0),
    CONSTRAINT paytable_draft_digest_is_of_its_document
        CHECK (digest = encode(sha256(convert_to(document, 'UTF8')), 'hex')),
    CONSTRAINT paytable_draft_decided_is_whole CHECK ((state IN ('approved', 'rejected')) = (decided_by IS NOT NULL)
        AND (decided_by IS NULL) = (decided_at IS NULL)
        AND (state = 'approved') = (version_id IS NOT NULL)
        AND (state = 'rejected') = (decision_reason IS NOT NULL)),
    CONSTRAINT paytable_draft_approver_is_another
        CHECK (state <> 'approved' OR decided_by <> ALL (editors || created_by || submitted_by))
);

-- A draft keeps who began it; once submitted it only gets its decision, and with that it is final.
CREATE TRIGGER paytable_draft_keeps_its_beginning
    BEFORE UPDATE ON paytable_draft FOR EACH ROW WHEN (
        (OLD.draft_id, OLD.game, OLD.number, OLD.started_from, OLD.created_by, OLD.created_at)
            IS DISTINCT FROM
            (NEW.draft_id, NEW.game, NEW.number, NEW.started_from, NEW.created_by, NEW.created_at)
        OR NOT OLD.editors <@ NEW.editors OR NEW.revision <= OLD.revision)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER paytable_draft_submitted_is_only_decided
    BEFORE UPDATE ON paytable_draft FOR EACH ROW WHEN (
        OLD.state IN ('approved', 'rejected')
        OR OLD.state = 'submitted' AND (NEW.state NOT IN ('approved', 'rejected')
            OR to_jsonb(OLD) - '{state,revision,decided_by,decided_at,decision_reason,version_id}'::text[]
            IS DISTINCT FROM
            to_jsonb(NEW) - '{state,revision,decided_by,decided_at,decision_reason,version_id}'::text[]))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER paytable_draft_is_kept
    BEFORE DELETE OR TRUNCATE ON paytable_draft FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE paytable_draft ENABLE ALWAYS TRIGGER paytable_draft_keeps_its_beginning;
ALTER TABLE paytable_draft ENABLE ALWAYS TRIGGER paytable_draft_submitted_is_only_decided;
ALTER TABLE paytable_draft ENABLE ALWAYS TRIGGER paytable_draft_is_kept;

-- The PAR sheet that a version was approved with: JSON, as it was computed then.
CREATE TABLE paytable_par_sheet (
    version_id uuid NOT NULL CONSTRAINT paytable_par_sheet_pkey PRIMARY KEY
                    CONSTRAINT paytable_par_sheet_version_fkey REFERENCES paytable_version,
    document   text NOT NULL,
    digest     text NOT NULL,
    CONSTRAINT paytable_par_sheet_digest_is_of_its_document
        CHECK (digest = encode(sha256(convert_to(document, 'UTF8')), 'hex'))
);
CREATE TRIGGER paytable_par_sheet_is_immutable
    BEFORE UPDATE OR DELETE OR TRUNCATE ON paytable_par_sheet FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE paytable_par_sheet ENABLE ALWAYS TRIGGER paytable_par_sheet_is_immutable;

-- The file that a version was made of, for its comments and layout.  Versions from before have none until theirs is
-- published again.
CREATE TABLE paytable_text (
    version_id uuid NOT NULL CONSTRAINT paytable_text_pkey PRIMARY KEY
                    CONSTRAINT paytable_text_version_fkey REFERENCES paytable_version,
    text       text NOT NULL
);
CREATE TRIGGER paytable_text_is_immutable
    BEFORE UPDATE OR DELETE OR TRUNCATE ON paytable_text FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE paytable_text ENABLE ALWAYS TRIGGER paytable_text_is_immutable;

-- Versions that are never put in force again.
CREATE TABLE paytable_retirement (
    version_id uuid        NOT NULL CONSTRAINT paytable_retirement_pkey PRIMARY KEY
                           CONSTRAINT paytable_retirement_version_fkey REFERENCES paytable_version,
    retired_by uuid        NOT NULL CONSTRAINT paytable_retirement_staff_fkey REFERENCES staff,
    retired_at timestamptz NOT NULL DEFAULT now(),
    reason     text        NOT NULL
);
CREATE TRIGGER paytable_retirement_is_final
    BEFORE UPDATE OR DELETE OR TRUNCATE ON paytable_retirement FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE paytable_retirement ENABLE ALWAYS TRIGGER paytable_retirement_is_final;

-- Versions that are to come into force; a row is there until that is done or called off, and the log keeps what was.
CREATE TABLE paytable_schedule (
    game         text        NOT NULL CONSTRAINT paytable_schedule_pkey PRIMARY KEY,
    version_id   uuid        NOT NULL CONSTRAINT paytable_schedule_version_fkey REFERENCES paytable_version,
    activates_at timestamptz NOT NULL,
    scheduled_by uuid        NOT NULL CONSTRAINT paytable_schedule_staff_fkey REFERENCES staff,
    made_at      timestamptz NOT NULL DEFAULT now(),
    reason       text        NOT NULL
);

-- What the log says of games and their paytables, which is little beside what it says of rounds: the view asks as the
-- index has it.
CREATE INDEX audit_entry_of_games ON audit_entry (occurred_at, entry_id)
    WHERE type LIKE 'paytable.%' OR type LIKE 'game.%';
CREATE VIEW game_entry AS
    SELECT entry_id, occurred_at, type, actor, authoriser, reason, before, after, payload,
        coalesce(after ->> 'game', before ->> 'game') AS game
    FROM audit_entry WHERE type LIKE 'paytable.%' OR type LIKE 'game.%';

-- A version with where it is in its life, and who is meant by its identifiers.
CREATE VIEW paytable_version_now AS
    SELECT v.version_id, v.game, v.version, v.digest, v.published_at, v.jurisdictions, v.certificate, v.note,
        v.approved_by, approver.name AS approver, s.activates_at AS scheduled_at, scheduler.name AS scheduler,
        r.retired_at,
        CASE WHEN r.version_id IS NOT NULL THEN 'retired'
             WHEN g.active_version_id = v.version_id THEN 'active'
             WHEN s.version_id IS NOT NULL THEN 'scheduled' ELSE 'approved' END AS state,
        d.number AS draft
    FROM paytable_version AS v
    LEFT JOIN game AS g USING (game)
    LEFT JOIN paytable_retirement AS r USING (version_id)
    LEFT JOIN paytable_schedule AS s USING (version_id)
    LEFT JOIN paytable_draft AS d USING (version_id)
    LEFT JOIN staff AS approver ON approver.staff_id = v.approved_by
    LEFT JOIN staff AS scheduler ON scheduler.staff_id = s.scheduled_by;

-- Lets those who change a game's paytables do so one after another.
CREATE FUNCTION paytable_lock(the_game text) RETURNS void
    LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('paytable_publish:' || the_game, 0))
$$;

-- Whether a person is of staff; who is stays so until the transaction ends.
CREATE FUNCTION staff_works(the_staff uuid) RETURNS boolean
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM staff WHERE staff_id = the_staff AND retired_at IS NULL FOR SHARE;
    RETURN FOUND;
END
$$;

-- Whether a person has a role; who has it keeps it until the transaction ends.
CREATE FUNCTION staff_holds(the_staff uuid, the_role text) RETURNS boolean
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM staff WHERE staff_id = the_staff AND retired_at IS NULL AND the_role = ANY (roles) FOR SHARE;
    RETURN FOUND;
END
$$;

-- Writes an entry of this type, which has to name these two: who did it, and who allowed it.
CREATE FUNCTION audit_append_of(the_staff uuid, the_authoriser uuid, entry text, type text) RETURNS void
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF (entry::jsonb ->> 'actor', entry::jsonb ->> 'authoriser') IS DISTINCT FROM (
            (SELECT 'staff:' || name FROM staff WHERE staff_id = the_staff),
            (SELECT 'staff:' || name FROM staff WHERE staff_id = the_authoriser)) THEN
        RAISE EXCEPTION 'an entry names somebody else' USING ERRCODE = 'check_violation';
    END IF;
    PERFORM audit_append(entry, type);
END
$$;

-- Whether paytables are approved by persons here, so that files alone change nothing.
CREATE FUNCTION paytable_needs_approval() RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM staff WHERE retired_at IS NULL AND 'approver' = ANY (roles))
$$;

-- What these functions answer: 'done', or the code of the refusal.

-- Begins a draft.  Where it is made of another one, whoever wrote that has written this too.
CREATE FUNCTION paytable_draft_create(
    the_draft uuid, the_game text, the_number integer, its_text text, its_start integer, its_origin integer,
    the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM paytable_lock(the_game);
    IF NOT staff_holds(the_staff, 'editor') THEN
        RETURN 'forbidden';
    END IF;
    INSERT INTO paytable_draft (draft_id, game, number, text, started_from, created_by, editors)
        VALUES (the_draft, the_game, the_number, its_text, its_start, the_staff, the_staff || ARRAY(
            SELECT e FROM paytable_draft AS origin, unnest(origin.editors) WITH ORDINALITY AS editor (e, place)
            WHERE (origin.game, origin.number) = (the_game, its_origin) AND e <> the_staff ORDER BY place));
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.draft_created');
    RETURN 'done';
END
$$;

-- Gives a draft another text, where nobody else did so since it was read.
CREATE FUNCTION paytable_draft_save(
    the_game text, the_number integer, its_revision integer, its_text text, the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found_draft paytable_draft;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO found_draft FROM paytable_draft WHERE (game, number) = (the_game, the_number);
    IF NOT staff_holds(the_staff, 'editor') THEN
        RETURN 'forbidden';
    ELSIF found_draft.state IS DISTINCT FROM 'draft' THEN
        RETURN 'wrong_state';
    ELSIF found_draft.revision <> its_revision THEN
        RETURN 'precondition_failed';
    END IF;
    UPDATE paytable_draft SET text = its_text, revision = revision + 1, changed_at = now(),
        editors = CASE WHEN the_staff = ANY (editors) THEN editors ELSE editors || the_staff END
        WHERE draft_id = found_draft.draft_id;
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.draft_saved');
    RETURN 'done';
END
$$;

-- Submits a draft as it is read at that revision; it changes no more.
CREATE FUNCTION paytable_draft_submit(
    the_game text, the_number integer, its_revision integer, its_digest text, its_document text,
    its_jurisdictions text[], its_certificate text, its_note text, the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found_draft paytable_draft;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO found_draft FROM paytable_draft WHERE (game, number) = (the_game, the_number);
    IF NOT staff_holds(the_staff, 'editor') THEN
        RETURN 'forbidden';
    ELSIF found_draft.state IS DISTINCT FROM 'draft'
            OR EXISTS (SELECT FROM paytable_version WHERE (game, digest) = (the_game, its_digest)) THEN
        RETURN 'wrong_state';
    ELSIF found_draft.revision <> its_revision THEN
        RETURN 'precondition_failed';
    END IF;
    UPDATE paytable_draft SET state = 'submitted', revision = revision + 1, submitted_by = the_staff,
        submitted_at = now(), digest = its_digest, document = its_document, jurisdictions = its_jurisdictions,
        certificate = its_certificate, note = its_note
        WHERE draft_id = found_draft.draft_id;
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.submitted');
    RETURN 'done';
END
$$;

-- Approves what was submitted under this digest, which makes it a version with its PAR sheet.
CREATE FUNCTION paytable_draft_approve(
    the_game text, the_number integer, its_digest text, the_version uuid, its_version integer, its_figures jsonb,
    its_sheet text, the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found_draft paytable_draft;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO found_draft FROM paytable_draft WHERE (game, number) = (the_game, the_number);
    IF NOT staff_holds(the_staff, 'approver') THEN
        RETURN 'forbidden';
    ELSIF found_draft.state IS DISTINCT FROM 'submitted'
            OR EXISTS (SELECT FROM paytable_version WHERE (game, digest) = (the_game, found_draft.digest)) THEN
        RETURN 'wrong_state';
    ELSIF the_staff = ANY (found_draft.editors || found_draft.created_by || found_draft.submitted_by) THEN
        RETURN 'same_person';
    ELSIF found_draft.digest IS DISTINCT FROM its_digest THEN
        RETURN 'precondition_failed';
    ELSIF its_version <> (SELECT coalesce(max(version), 0) + 1 FROM paytable_version WHERE game = the_game) THEN
        RETURN 'invalid';
    END IF;
    INSERT INTO paytable_version (version_id, game, version, digest, document, figures, published_at,
            approved_by, jurisdictions, certificate, note)
        VALUES (the_version, the_game, its_version, found_draft.digest, found_draft.document, its_figures, now(),
            the_staff, found_draft.jurisdictions, found_draft.certificate, found_draft.note);
    INSERT INTO paytable_par_sheet (version_id, document, digest)
        VALUES (the_version, its_sheet, encode(sha256(convert_to(its_sheet, 'UTF8')), 'hex'));
    INSERT INTO paytable_text (version_id, text) VALUES (the_version, found_draft.text);
    UPDATE paytable_draft SET state = 'approved', revision = revision + 1, decided_by = the_staff,
        decided_at = now(), version_id = the_version
        WHERE draft_id = found_draft.draft_id;
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.approved');
    RETURN 'done';
END
$$;

-- Rejects what was submitted: an approver does, or takes back who submitted it.  Of what was not submitted any editor
-- does: it is discarded.
CREATE FUNCTION paytable_draft_reject(
    the_game text, the_number integer, the_reason text, the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found_draft paytable_draft;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO found_draft FROM paytable_draft WHERE (game, number) = (the_game, the_number);
    IF NOT (CASE found_draft.state WHEN 'draft' THEN staff_holds(the_staff, 'editor')
            ELSE staff_holds(the_staff, 'approver')
                OR the_staff IS NOT DISTINCT FROM found_draft.submitted_by AND staff_holds(the_staff, 'editor') END) THEN
        RETURN 'forbidden';
    ELSIF (found_draft.state IN ('draft', 'submitted')) IS NOT TRUE THEN
        RETURN 'wrong_state';
    END IF;
    UPDATE paytable_draft SET state = 'rejected', revision = revision + 1, decided_by = the_staff,
        decided_at = now(), decision_reason = the_reason
        WHERE draft_id = found_draft.draft_id;
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.rejected');
    RETURN 'done';
END
$$;

-- Makes a version its game's active one, and the game open; what was scheduled of that is done with it.  False where it
-- is so already.
CREATE FUNCTION game_offer(the_game text, the_version uuid) RETURNS boolean
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO game AS g (game, state, reason, active_version_id, changed_at)
    VALUES (the_game, 'enabled', NULL, the_version, now())
    ON CONFLICT (game) DO UPDATE SET state = 'enabled', reason = NULL, active_version_id = the_version, changed_at = now()
        WHERE g.state <> 'enabled' OR g.active_version_id IS DISTINCT FROM the_version;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM paytable_schedule WHERE version_id = the_version;
    RETURN true;
END
$$;

-- Has a game offer a version, in the name of somebody who did not approve it.
CREATE FUNCTION paytable_put_in_force(the_version uuid, the_staff uuid, audit text) RETURNS text
    LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    found_version paytable_version_now;
BEGIN
    SELECT * INTO found_version FROM paytable_version_now WHERE version_id = the_version;
    IF found_version.version_id IS NULL OR found_version.state = 'retired' THEN
        RETURN 'wrong_state';
    ELSIF found_version.approved_by = the_staff THEN
        RETURN 'same_person';
    ELSIF NOT game_offer(found_version.game, the_version) THEN
        RETURN 'wrong_state';
    END IF;
    PERFORM audit_append_of(the_staff, found_version.approved_by, audit, 'paytable.activated');
    RETURN 'done';
END
$$;

-- Puts a version in force.
CREATE FUNCTION paytable_activate(the_game text, the_version integer, the_staff uuid, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM paytable_lock(the_game);
    IF NOT staff_holds(the_staff, 'operations') THEN
        RETURN 'forbidden';
    END IF;
    RETURN paytable_put_in_force(
        (SELECT version_id FROM paytable_version WHERE (game, version) = (the_game, the_version)), the_staff, audit);
END
$$;

-- Puts a version in force whose time has come; 'wrong_state' where somebody else has done so, or called it off.  Nothing
-- comes by itself of those who have left: where who scheduled it is not of operations now, or who approved it has
-- retired, it is called off, with an entry that says so.
CREATE FUNCTION paytable_activate_scheduled(the_game text, audit text, audit_if_not text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    due paytable_schedule;
    the_approver uuid;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO due FROM paytable_schedule WHERE game = the_game AND activates_at <= now();
    SELECT approved_by INTO the_approver FROM paytable_version WHERE version_id = due.version_id;
    IF due.game IS NOT NULL AND NOT (staff_holds(due.scheduled_by, 'operations')
            AND (the_approver IS NULL OR staff_works(the_approver))) THEN
        DELETE FROM paytable_schedule WHERE game = the_game;
        PERFORM audit_append(audit_if_not, 'paytable.unscheduled');
        RETURN 'done';
    END IF;
    RETURN paytable_put_in_force(due.version_id, due.scheduled_by, audit);
END
$$;

-- Has a version put in force at a time to come, of which a game has one at most.
CREATE FUNCTION paytable_schedule_set(
    the_game text, the_version integer, its_time timestamptz, the_reason text, the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found_version paytable_version_now;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO found_version FROM paytable_version_now WHERE (game, version) = (the_game, the_version);
    IF NOT staff_holds(the_staff, 'operations') THEN
        RETURN 'forbidden';
    ELSIF found_version.state IS DISTINCT FROM 'approved'
            OR EXISTS (SELECT FROM paytable_schedule WHERE game = the_game) THEN
        RETURN 'wrong_state';
    ELSIF found_version.approved_by = the_staff THEN
        RETURN 'same_person';
    ELSIF its_time <= now() OR its_time > now() + interval '366 days' THEN
        RETURN 'invalid';
    END IF;
    INSERT INTO paytable_schedule (game, version_id, activates_at, scheduled_by, reason)
        VALUES (the_game, found_version.version_id, its_time, the_staff, the_reason);
    PERFORM audit_append_of(the_staff, found_version.approved_by, audit, 'paytable.scheduled');
    RETURN 'done';
END
$$;

-- Calls that off.
CREATE FUNCTION paytable_schedule_end(the_game text, the_staff uuid, audit text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM paytable_lock(the_game);
    IF NOT staff_holds(the_staff, 'operations') THEN
        RETURN 'forbidden';
    END IF;
    DELETE FROM paytable_schedule WHERE game = the_game;
    IF NOT FOUND THEN
        RETURN 'wrong_state';
    END IF;
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.unscheduled');
    RETURN 'done';
END
$$;

-- Has a version never put in force again.
CREATE FUNCTION paytable_retire(
    the_game text, the_version integer, the_reason text, the_staff uuid, audit text
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found_version paytable_version_now;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO found_version FROM paytable_version_now WHERE (game, version) = (the_game, the_version);
    IF NOT staff_holds(the_staff, 'operations') THEN
        RETURN 'forbidden';
    ELSIF found_version.state IS DISTINCT FROM 'approved' THEN
        RETURN 'wrong_state';
    END IF;
    INSERT INTO paytable_retirement (version_id, retired_by, reason)
        VALUES (found_version.version_id, the_staff, the_reason);
    PERFORM audit_append_of(the_staff, NULL, audit, 'paytable.retired');
    RETURN 'done';
END
$$;

-- As before, where nobody is there to approve; else, and for content that is retired, it changes nothing, and the
-- version is null unless the game offers that very content.  `its_text` is the file.
DROP FUNCTION paytable_publish(uuid, text, text, text, jsonb, text);
CREATE FUNCTION paytable_publish(
    the_version uuid, the_game text, the_digest text, the_document text, the_figures jsonb, audit text,
    its_text text
) RETURNS TABLE (version integer, changed boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    published paytable_version;
    is_withheld boolean;
BEGIN
    PERFORM paytable_lock(the_game);
    SELECT * INTO published FROM paytable_version WHERE game = the_game AND digest = the_digest;
    is_withheld := paytable_needs_approval()
        OR EXISTS (SELECT FROM paytable_retirement AS r WHERE r.version_id = published.version_id);
    IF published.version_id IS NULL AND NOT is_withheld THEN
        INSERT INTO paytable_version (version_id, game, version, digest, document, figures, published_at)
        SELECT the_version, the_game, coalesce(max(v.version), 0) + 1, the_digest, the_document, the_figures, now()
        FROM paytable_version AS v WHERE v.game = the_game
        RETURNING * INTO published;
    END IF;
    IF published.version_id IS NOT NULL THEN
        INSERT INTO paytable_text (version_id, text) VALUES (published.version_id, its_text)
        ON CONFLICT DO NOTHING;
    END IF;
    changed := CASE WHEN is_withheld THEN false ELSE game_offer(the_game, published.version_id) END;
    IF changed THEN
        INSERT INTO audit_entry SELECT * FROM audit_entry_of(audit);
    END IF;
    version := (SELECT published.version FROM game AS g
        WHERE g.game = the_game AND g.state = 'enabled' AND g.active_version_id = published.version_id);
    RETURN NEXT;
END
$$;

-- As before, where nobody is there to approve; else it changes nothing.
CREATE OR REPLACE FUNCTION game_disable(the_game text, the_reason text, audit text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF paytable_needs_approval() THEN
        RETURN false;
    END IF;
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

GRANT SELECT ON paytable_draft, paytable_par_sheet, paytable_text, paytable_retirement, paytable_schedule,
    paytable_version_now, game_entry TO casino_brag_app;
GRANT EXECUTE ON FUNCTION
    paytable_publish(uuid, text, text, text, jsonb, text, text),
    paytable_needs_approval(),
    paytable_lock(text),
    paytable_draft_create(uuid, text, integer, text, integer, integer, uuid, text),
    paytable_draft_save(text, integer, integer, text, uuid, text),
    paytable_draft_submit(text, integer, integer, text, text, text[], text, text, uuid, text),
    paytable_draft_approve(text, integer, text, uuid, integer, jsonb, text, uuid, text),
    paytable_draft_reject(text, integer, text, uuid, text),
    paytable_activate(text, integer, uuid, text),
    paytable_activate_scheduled(text, text, text),
    paytable_schedule_set(text, integer, timestamptz, text, uuid, text),
    paytable_schedule_end(text, uuid, text),
    paytable_retire(text, integer, text, uuid, text)
    TO casino_brag_app;
