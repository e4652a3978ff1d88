-- Applies one change to the statements of a space: adds one, or citations to one. `p_statement`: null to add it. The
-- same words again are the same statement. Answer: the statement as JSON with what decides over its state, null if the
-- space is full or it is gone.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_space uuid, p_statement uuid, p_polarity text, p_new jsonb, p_cites jsonb
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  known uuid := p_statement;
  skill uuid;
  digest text := encode(sha256(convert_to(concat_ws(E'\n', 'model', p_new ->> 'kind', p_new ->> 'text'), 'UTF8')), 'hex');
  is_origin boolean := false;
BEGIN
  IF known IS NULL THEN
    SELECT s.id INTO known FROM statements s
    WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = digest AND s.state <> 'revoked';
  END IF;
  IF known IS NULL THEN
    IF (SELECT count(*) FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = p_space) >= {statements_max} THEN
      RETURN NULL;
    END IF;
    {find_or_create_skill}
    INSERT INTO statements AS s (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, marker, origins, supports, contradicts, created_at, updated_at)
    VALUES (p_project, p_space, (p_new ->> 'id')::uuid, skill, digest, p_new ->> 'kind', 'proposed', 'model', false, p_new ->> 'text', p_new ->> 'marker', p_new -> 'origins', 0, 0, now(), now())
    ON CONFLICT (project_id, learning_space_id, rule_key) DO UPDATE
    SET state = 'proposed', skill_id = excluded.skill_id, text = excluded.text, marker = excluded.marker, author = excluded.author, origins = excluded.origins
    RETURNING s.id INTO known;
    is_origin := true;
  END IF;
  PERFORM FROM statements s WHERE s.project_id = p_project AND s.id = known AND s.state <> 'revoked' FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO statement_cites AS c (project_id, learning_space_id, statement_id, session_id, seq, polarity, quote, is_origin)
  SELECT p_project, p_space, known, r.session_id, r.seq, p_polarity, r.quote, is_origin
  FROM jsonb_to_recordset(p_cites) AS r (session_id uuid, seq bigint, quote text)
  ON CONFLICT (project_id, statement_id, session_id, seq) DO NOTHING;
  {recount}
  RETURN (SELECT json_build_object('id', s.id, 'kind', s.statement_kind, 'state', s.state, 'author', s.author, 'marker', s.marker,
    'contradicts', s.contradicts, 'supporters', {independent_supporters}, 'contradictors', {independent_contradictors})
  FROM statements s WHERE s.project_id = p_project AND s.id = known);
END
$function$
