-- Steps that the module's stored functions have in common. They name them in braces, and so do steps that come later. Who
-- changes what belongs to a session's run locks the session's head first, and takes the time after that, so that a wait for
-- the lock shortens no lease.

-- :run_variables
  head record;
  lease record;
  project record;
  at timestamptz;
  ends_at timestamptz;
  event_id uuid;
  event_type text;
  event_data jsonb;
  event_bytes int;
  fenced boolean := false;
-- :read_head
  SELECT h.last_seq, h.updated_at, coalesce(h.fence, 0) AS fence, h.fenced_at, coalesce(h.requires_fence, false) AS requires_fence,
    coalesce(h.run_place, 0) AS place, h.proof IS NOT NULL AS is_chained
  INTO head FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session
-- :lock_head
  {read_head} FOR NO KEY UPDATE;
-- :lock_run
  {lock_head}
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  at := clock_timestamp();
-- :read_lease: into `lease`, and its end into `ends_at`.
  SELECT r.owner, r.ttl_ms, r.progress, r.expires_at, r.wake_at INTO lease
  FROM session_runs r WHERE r.project_id = p_project AND r.session_id = p_session;
  ends_at := {lease_end};
-- :take_run: grants the lease to `p_owner`, with the next fence.
  head.fence := greatest(head.fence + 1, floor(extract(epoch FROM at) * 1000)::bigint);
  lease.owner := p_owner;
  ends_at := at + p_ttl_ms * interval '1 millisecond';
  INSERT INTO session_runs AS r (project_id, session_id, owner, ttl_ms, progress, taken_at, expires_at, place)
  VALUES (p_project, p_session, p_owner, p_ttl_ms, p_progress, at, ends_at, head.place + 1)
  ON CONFLICT (project_id, session_id) DO UPDATE SET owner = excluded.owner, ttl_ms = excluded.ttl_ms,
    progress = excluded.progress, taken_at = excluded.taken_at, expires_at = excluded.expires_at, place = excluded.place;
  UPDATE session_heads AS h SET fence = head.fence, fenced_at = NULL, requires_fence = nullif(p_requires, false), run_place = head.place + 1
  WHERE h.project_id = p_project AND h.session_id = p_session;
-- :wake: sets when the session is to be looked at next, after a change of what is pending.
  SELECT min(CASE WHEN {due_at_once} THEN least(i.not_before, at) ELSE i.not_before END) INTO ends_at FROM session_inbox i
  WHERE i.project_id = p_project AND i.session_id = p_session AND {pending};
  UPDATE session_runs AS r SET wake_at = ends_at WHERE r.project_id = p_project AND r.session_id = p_session;
-- :append: appends an event to the locked session.
  head.last_seq := head.last_seq + 1;
  at := greatest(at, head.updated_at);
  event_bytes := octet_length(event_data::text);
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
  VALUES (p_project, p_session, head.last_seq, at, at, event_id, event_bytes, 0, 'event', event_type, event_data);
  UPDATE session_heads AS h SET last_seq = head.last_seq, updated_at = at, bytes = h.bytes + event_bytes, counted = h.counted + 1,
    run_place = head.place + 1, fenced_at = CASE WHEN fenced THEN at ELSE h.fenced_at END
  WHERE h.project_id = p_project AND h.session_id = p_session;
  SELECT p.proof, p.consumers INTO project FROM projects p WHERE p.id = p_project;
  IF head.is_chained OR project.proof THEN
    PERFORM {chain_stored}(p_project, p_session, head.last_seq - 1);
  END IF;
  IF cardinality(project.consumers) > 0 THEN{mark};
  END IF;
