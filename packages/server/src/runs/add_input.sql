-- Adds an input, unless its id is known. Answer: the `hooks` that are to hear of it, if it is new, and the input on a line
-- of its own; or its `seq`, if it was applied; or `refused`: fenced, input_differs, inbox_full, blob; null if there is no
-- such session. The session changed, but its log did not. The session refers to the blobs of its input, under seq 0, for
-- as long as it is there.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_session uuid, p_fence bigint, p_input jsonb) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
  known record;
  added record;
  hooks uuid[];
  missing text;
  p_id uuid := (p_input ->> 'id')::uuid;
BEGIN
  {lock_run}
  {check_fence}
  SELECT i.* INTO known FROM session_inbox i WHERE i.project_id = p_project AND i.session_id = p_session AND i.id = p_id;
  IF FOUND THEN
    IF known.withdrawn_at IS NULL AND (known.data <> p_input -> 'data' OR known.mode <> p_input ->> 'mode'
        OR known.type IS DISTINCT FROM p_input ->> 'type' OR known.entry_kind <> p_input ->> 'kind'
        OR known.key IS DISTINCT FROM p_input ->> 'key' OR known.format IS DISTINCT FROM p_input ->> 'format'
        OR known.meta IS DISTINCT FROM nullif(p_input -> 'meta', 'null')) THEN
      RETURN '{"refused":"input_differs"}';
    END IF;
    RETURN concat(E'{}\n', {known_json});
  END IF;
  SELECT e.seq, e.kind, e.data INTO known FROM entries e WHERE e.project_id = p_project AND {by_id};
  IF FOUND THEN
    IF known.kind <> p_input ->> 'kind' OR known.data <> p_input -> 'data' THEN
      RETURN '{"refused":"input_differs"}';
    END IF;
    RETURN concat('{"seq":', known.seq, E'}\n');
  END IF;
  IF (SELECT count(*) FROM (SELECT FROM session_inbox i WHERE i.project_id = p_project AND i.session_id = p_session AND {pending} LIMIT {pending_max}) i) = {pending_max} THEN
    RETURN '{"refused":"inbox_full"}';
  END IF;
  IF p_input -> 'blobs' <> '[]' THEN
    PERFORM FROM blobs b
    WHERE b.project_id = p_project AND b.sha256 = ANY (ARRAY(SELECT jsonb_array_elements_text(p_input -> 'blobs'))) ORDER BY b.sha256 FOR KEY SHARE;
    SELECT min(x.sha256) INTO missing FROM jsonb_array_elements_text(p_input -> 'blobs') AS x (sha256)
    WHERE NOT EXISTS (SELECT FROM blobs b WHERE b.project_id = p_project AND b.sha256 = x.sha256);
    IF missing IS NOT NULL THEN
      RETURN json_build_object('refused', 'blob', 'sha256', missing);
    END IF;
    INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
    SELECT p_project, p_session, 0, x.sha256 FROM jsonb_array_elements_text(p_input -> 'blobs') AS x (sha256) ORDER BY x.sha256
    ON CONFLICT DO NOTHING;
  END IF;
  DELETE FROM session_inbox AS i WHERE i.project_id = p_project AND i.session_id = p_session AND i.expires_at < at - interval '1 day';
  INSERT INTO session_inbox AS i (project_id, session_id, id, place, mode, entry_kind, type, key, role, format, bytes, tokens, data,
    meta, created_at, not_before, expires_at)
  VALUES (p_project, p_session, p_id, head.place + 1, p_input ->> 'mode', p_input ->> 'kind', p_input ->> 'type', p_input ->> 'key',
    p_input ->> 'role', p_input ->> 'format', (p_input ->> 'bytes')::int, (p_input ->> 'tokens')::int, p_input -> 'data',
    nullif(p_input -> 'meta', 'null'), at, coalesce((p_input ->> 'not_before')::timestamptz, at), (p_input ->> 'expires_at')::timestamptz)
  RETURNING i.* INTO added;
  INSERT INTO session_runs AS r (project_id, session_id, ttl_ms, progress, place, wake_at)
  VALUES (p_project, p_session, 0, false, 0, added.not_before)
  ON CONFLICT (project_id, session_id) DO UPDATE SET wake_at = least(r.wake_at, excluded.wake_at);
  UPDATE session_heads AS h SET run_place = head.place + 1, updated_at = greatest(at, head.updated_at)
  WHERE h.project_id = p_project AND h.session_id = p_session;
  hooks := ARRAY(SELECT w.id FROM webhooks w WHERE w.project_id = p_project AND 'input.added' = ANY (w.events));
  IF cardinality(hooks) > 0 THEN
    INSERT INTO webhook_deliveries AS d (project_id, webhook_id, session_id, input_session, delivered_seq, through_seq, attempts, not_before)
    SELECT p_project, x.id, p_id, p_session, -1, 0, 0, now() FROM unnest(hooks) AS x (id)
    ON CONFLICT (project_id, webhook_id, session_id) DO NOTHING;
  END IF;
  RETURN concat('{"hooks":', to_json(hooks), E'}\n', {added_json});
END
$function$
