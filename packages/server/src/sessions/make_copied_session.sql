-- Makes the copy's session and head. Answer: JSON; null: see FIND_OR_CREATE_OWNER.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_copy uuid, p_user text, p_new_user uuid, p_body jsonb, p_owner uuid,
  p_configs jsonb, p_disable_task_tracking boolean, p_expires_in_s int, p_last_seq bigint, p_total_tokens bigint,
  p_updated_at timestamptz, p_bytes bigint
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  made record;
  owner uuid;
  origin text;
  last_message uuid;
BEGIN
  SELECT o.id INTO last_message FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.kind = 'message' AND o.seq <= p_last_seq
  ORDER BY o.seq DESC LIMIT 1;
  {make_copy}
  RETURN {answer_json};
END
$function$
