-- Copies a session with a short log, up to `p_up_to_seq` or its end. The lock on its head keeps deletions away, so that
-- the log stays as the head says; appends go on. `p_copy` is the id of the copy, `p_body` may have configs for it;
-- `p_user` (an identifier), `p_new_user` (an id for it) and `p_key` may be null. Answer: JSON; null if there is no such
-- session, or its log ends before, or is longer than `p_entries_max` or `p_bytes_max`.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_copy uuid, p_up_to_seq bigint, p_user text, p_new_user uuid, p_body jsonb,
  p_key text, p_request_hash text, p_entries_max bigint, p_bytes_max bigint
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  head record;
  log record;
  source record;
  made record;
  owner uuid;
  until bigint;
  origin text;
  answer text;
BEGIN
  SELECT h.last_seq, h.updated_at INTO head
  FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  until := coalesce(p_up_to_seq, head.last_seq);
  IF head.last_seq IS NULL OR until > least(head.last_seq, p_entries_max) THEN
    RETURN NULL;
  END IF;
  SELECT coalesce(sum(o.bytes), 0) AS bytes, coalesce(sum(o.tokens) FILTER (WHERE (o.retracted_by <= until) IS NOT TRUE), 0) AS tokens,
     {last_message} AS last_message INTO log
  FROM entries o WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= until;
  IF log.bytes > p_bytes_max THEN
    RETURN NULL;
  END IF;
  SELECT s.user_id, s.configs, s.disable_task_tracking, s.expires_in_s INTO source
  FROM sessions s WHERE s.project_id = p_project AND s.id = p_session;
  {make_copy}
  INSERT INTO entries AS e ({entry_columns})
  SELECT {copied_entry}
  FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= until;
  {copy_references};
  answer := {answer_json};
  {remember_answer}
  RETURN answer;
END
$function$
