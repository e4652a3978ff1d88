-- Stores what rules found in a piece of a session, in all spaces that learn from it. Each finding is one statement of
-- the space, whatever the session, with the session's citations; a known one gets the repair if it had none.
-- `p_findings`: an array of { id, skill_id, key, skill, description, text, is_repaired, cites }. `p_outcome`: null where
-- there is none. Statements of rules are the words of tools, so no mode makes them active without a person.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_space uuid, p_session uuid, p_seq bigint, p_is_whole boolean, p_findings jsonb, p_tools jsonb,
  p_outcome jsonb, p_has_model boolean
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  finding record;
  known record;
  skill uuid;
  digest text;
  is_new boolean;
  repaired_by jsonb;
  tools_so_far jsonb;
  soon timestamptz := now();
  quiet timestamptz := now() + interval '10 minutes';
BEGIN
  FOR finding IN
    SELECT f.*, encode(sha256(convert_to(f.key, 'UTF8')), 'hex') AS digest
    FROM jsonb_to_recordset(p_findings) AS f (id uuid, skill_id uuid, key text, skill text, description text, text text, is_repaired boolean, cites jsonb)
    ORDER BY f.key
  LOOP
    -- The error is the same in all sessions; how it was mended is what one of them showed.
    repaired_by := CASE WHEN finding.is_repaired THEN jsonb_build_object(p_session::text, true) END;
    SELECT s.id, s.state, s.pinned, s.text INTO known FROM statements s
    WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = finding.digest FOR UPDATE;
    IF known.id IS NULL OR known.state = 'revoked' THEN
      CONTINUE WHEN known.id IS NULL AND (SELECT count(*) FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = p_space) >= {statements_max};
      {find_or_create_skill}
      INSERT INTO statements AS s (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, supports, contradicts, origins, created_at, updated_at)
      VALUES (p_project, p_space, finding.id, skill, finding.digest, 'fact', 'proposed', 'rule', false, finding.text, 0, 0, repaired_by, now(), now())
      ON CONFLICT (project_id, learning_space_id, rule_key) DO UPDATE SET skill_id = excluded.skill_id WHERE s.state = 'revoked';
      SELECT s.id, s.state, s.pinned, s.text INTO known FROM statements s
      WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = finding.digest FOR UPDATE;
    END IF;
    PERFORM FROM statement_cites c WHERE c.project_id = p_project AND c.statement_id = known.id AND c.session_id = p_session AND c.polarity = '+' LIMIT 1;
    is_new := NOT FOUND;
    IF is_new OR finding.is_repaired AND length(known.text) < length(finding.text) THEN
      INSERT INTO statement_cites AS c (project_id, learning_space_id, statement_id, session_id, seq, polarity, quote, is_origin)
      SELECT p_project, p_space, known.id, p_session, c.seq, '+', c.quote, false
      FROM jsonb_to_recordset(finding.cites) AS c (seq bigint, quote text)
      ON CONFLICT (project_id, statement_id, session_id, seq) DO NOTHING;
      UPDATE statements AS s SET supports = s.supports + is_new::int,
        state = CASE WHEN s.state = 'revoked' THEN 'proposed' ELSE s.state END,
        text = CASE WHEN NOT s.pinned AND (s.state = 'revoked' OR finding.is_repaired AND length(s.text) < length(finding.text))
          THEN finding.text ELSE s.text END,
        origins = CASE WHEN NOT s.pinned AND (s.state = 'revoked' OR finding.is_repaired AND length(s.text) < length(finding.text))
          THEN repaired_by ELSE s.origins END,
        updated_at = greatest(now(), s.updated_at)
      WHERE s.project_id = p_project AND s.id = known.id;
    END IF;
  END LOOP;
  SELECT jsonb_object_agg(t.name, t.calls) INTO tools_so_far FROM (
    SELECT e.key AS name, sum(e.value::bigint) AS calls
    FROM (SELECT * FROM jsonb_each_text((SELECT x.tools FROM space_sessions x
        WHERE x.project_id = p_project AND x.session_id = p_session AND x.learning_space_id = p_space AND x.learnt_seq < p_seq))
      UNION ALL SELECT * FROM jsonb_each_text(p_tools)) e
    WHERE e.value ~ '^[0-9]{1,15}$' GROUP BY e.key ORDER BY e.key LIMIT 100) t;
  UPDATE space_sessions AS x SET learnt_seq = greatest(x.learnt_seq, p_seq),
    tools = CASE WHEN x.learnt_seq < p_seq THEN coalesce(tools_so_far, x.tools) ELSE x.tools END,
    outcome = CASE WHEN p_outcome IS NULL THEN x.outcome ELSE coalesce(x.outcome, '{}') || p_outcome END,
    status = CASE WHEN NOT p_is_whole THEN x.status WHEN NOT p_has_model THEN 'completed'
      WHEN x.status = 'failed' OR x.due_at IS NOT NULL THEN x.status
      WHEN p_seq > x.reflected_seq THEN 'queued' ELSE 'completed' END,
    due_at = CASE WHEN p_is_whole AND p_has_model AND p_seq > x.reflected_seq AND (x.status = 'queued' OR x.due_at IS NULL AND x.status <> 'failed')
      THEN CASE WHEN x.asked OR coalesce(p_outcome, x.outcome) ? 'reward'
          AND (x.reflected_seq = 0 OR coalesce(x.outcome, '{}') || p_outcome IS DISTINCT FROM x.outcome)
        THEN soon ELSE quiet END ELSE x.due_at END,
    updated_at = greatest(now(), x.updated_at)
  WHERE x.project_id = p_project AND x.session_id = p_session AND x.learning_space_id = p_space
    -- What was learnt already is read once more after an import, or an interruption, and then nothing has changed.
    AND (x.learnt_seq < p_seq OR NOT coalesce(x.outcome, '{}') @> coalesce(p_outcome, '{}')
      OR x.status = 'completed' AND p_has_model AND x.reflected_seq < p_seq OR x.status = 'failed' AND NOT p_has_model
      OR x.status NOT IN ('completed', 'failed'));
  RETURN NULL;
END
$function$
