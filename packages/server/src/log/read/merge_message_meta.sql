-- Merges into a message's meta, unless the result exceeds `p_bytes_max`, or `p_fence` is not the session's. The session's
-- head is locked first, as in every change of a session, and then the message is read: two at once lose nothing. Answer:
-- null if there is no such session, `no message`, `too large`, `fenced` with the fence that there is, or the merged meta.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_fence bigint, p_message uuid, p_body jsonb, p_bytes_max int
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  fence_of_head bigint;
  before record;
  after jsonb;
BEGIN
  SELECT coalesce(h.fence, 0) INTO fence_of_head
  FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF p_fence <> fence_of_head THEN
    RETURN concat('fenced ', fence_of_head);
  END IF;
  SELECT e.seq, e.kind, coalesce(e.patched_meta, e.meta) AS meta INTO before
  FROM entries e WHERE e.project_id = p_project AND {by_id};
  IF NOT FOUND OR before.kind <> 'message' THEN
    RETURN 'no message';
  END IF;
  SELECT {merged_json} INTO after;
  IF octet_length(after::text) > p_bytes_max THEN
    RETURN 'too large';
  END IF;
  UPDATE entries AS e SET patched_meta = after, updated_at = greatest(now(), e.updated_at)
  WHERE e.project_id = p_project AND e.session_id = p_session AND e.seq = before.seq;
  UPDATE session_heads AS h SET updated_at = greatest(now(), h.updated_at)
  WHERE h.project_id = p_project AND h.session_id = p_session;
  {mark_changes};
  RETURN after;
END
$function$
