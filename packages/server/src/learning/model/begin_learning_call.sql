-- Begins a call, unless its input was answered before, or a budget does not allow it. `p_space`: null where the call is
-- for no space. `p_tokens`: an estimate, which
-- counts until the call ends: for the space in 24 hours, for the project on this day, in UTC, whose row lets one call
-- pass at a time. Answer: `send` and the id; `answered` and the answer; `applied`; `space` or `project`, whose budget is
-- used up; null if the space or a session is gone. A call that is sent outlives the machine, so that it always counts.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_space uuid, p_id uuid, p_hash text, p_step text, p_model text, p_sessions uuid[], p_tokens bigint,
  p_space_max bigint, p_project_max bigint
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  known record;
BEGIN
  IF p_space IS NOT NULL THEN
    PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions) ORDER BY h.session_id FOR KEY SHARE;
  IF (SELECT count(*) FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions)) < cardinality(p_sessions) THEN
    RETURN NULL;
  END IF;
  SELECT c.id, c.status, c.answer INTO known FROM learning_calls c
  WHERE c.project_id = p_project AND c.input_hash = p_hash AND c.learning_space_id IS NOT DISTINCT FROM p_space FOR UPDATE;
  IF known.status IN ('answered', 'applied') AND known.answer IS NOT NULL THEN
    RETURN concat('answered ', known.id, ' ', known.answer);
  ELSIF known.status = 'applied' THEN
    RETURN 'applied';
  END IF;
  IF p_space IS NOT NULL AND (SELECT coalesce(sum(u.tokens_in + u.tokens_out), 0) FROM learning_calls u
    WHERE u.project_id = p_project AND u.learning_space_id = p_space AND u.sent_at > now() - {day}) + p_tokens > p_space_max THEN
    RETURN 'space';
  END IF;
  IF p_tokens > p_project_max THEN
    RETURN 'project';
  END IF;
  PERFORM set_config('synchronous_commit', 'on', true);
  INSERT INTO usage_days AS u (project_id, day, model_tokens) VALUES (p_project, {today}, p_tokens)
  ON CONFLICT (project_id, day) DO UPDATE SET model_tokens = u.model_tokens + excluded.model_tokens
  WHERE u.model_tokens + excluded.model_tokens <= p_project_max;
  IF NOT FOUND THEN
    RETURN 'project';
  END IF;
  INSERT INTO learning_calls AS c (project_id, learning_space_id, id, input_hash, step, model, session_id, other_session_id, status, attempts, tokens_in, tokens_out, created_at, sent_at)
  VALUES (p_project, p_space, p_id, p_hash, p_step, p_model, p_sessions[1], p_sessions[2], 'sent', 1, p_tokens, 0, now(), now())
  ON CONFLICT (project_id, input_hash, learning_space_id) DO UPDATE
  SET status = 'sent', model = excluded.model, attempts = c.attempts + 1, tokens_in = c.tokens_in + excluded.tokens_in, sent_at = excluded.sent_at;
  RETURN concat('send ', coalesce(known.id, p_id));
END
$function$
