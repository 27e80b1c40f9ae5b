-- Replay: rounds derived anew from their records.  It reads, and puts on record what came of it.

-- Puts on record that a period was replayed, and whether all of it agreed.
CREATE FUNCTION replay_record(audit text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    entry audit_entry := audit_entry_of(audit);
BEGIN
    IF entry.type NOT IN ('replay.completed', 'replay.differed') THEN
        RAISE EXCEPTION '% is no outcome of a replay', entry.type USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO audit_entry SELECT entry.*;
END
$$;

GRANT EXECUTE ON FUNCTION replay_record(text) TO casino_brag_app;
