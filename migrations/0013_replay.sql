-- Replay: rounds derived anew from their records.  It reads, and puts on record what came of it.

-- Puts on record that a period was replayed, and whether all of it agreed.
CREATE FUNCTION replay_record(audit text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT audit_append(audit, 'replay.completed', 'replay.differed')
$$;

GRANT EXECUTE ON FUNCTION replay_record(text) TO casino_brag_app;
