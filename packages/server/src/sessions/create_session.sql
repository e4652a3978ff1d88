-- Creates a session with its head, its user if new, and its idempotency key. `p_id` is the session's, `p_user` an
-- identifier or null, `p_new_user` an id for a new user, `p_key` may be null. Answer: the session as JSON; empty: its
-- parent does not exist; null: see FIND_OR_CREATE_OWNER.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_id uuid, p_user text, p_new_user uuid, p_body jsonb, p_key text, p_request_hash text
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  owner uuid;
  parent uuid := (p_body ->> 'parent')::uuid;
  expires_in integer := {expires_in};
  made record;
  made_head record;
  answer text;
BEGIN
  -- Looked at before a user is created, so that a refused request leaves none.
  IF parent IS NOT NULL AND NOT EXISTS (
    SELECT FROM session_heads h WHERE h.project_id = p_project AND h.session_id = parent) THEN
    RETURN '';
  END IF;
  {find_or_create_owner}
  {hold_parent}
  INSERT INTO sessions AS s (project_id, id, user_id, parent_id, expires_in_s, expiry_due_at, configs,
    disable_task_tracking, created_at)
  VALUES (p_project, p_id, owner, parent, expires_in, {expiry}, coalesce(nullif(p_body -> 'configs', 'null'), '{}'),
    coalesce((p_body ->> 'disable_task_tracking')::boolean, false), now())
  RETURNING s.* INTO made;
  {refuse_reserved_id}
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at)
  VALUES (p_project, p_id, 0, 0, now())
  RETURNING h.* INTO made_head;
  {insert_terms};
  {mark_changes};
  answer := {session_json};
  {remember_answer}
  RETURN answer;
END
$function$
