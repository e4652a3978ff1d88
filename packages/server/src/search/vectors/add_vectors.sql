-- Writes vectors of entries, if the project's are of this model. Answer: whether they are.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_model text, p_sessions uuid[], p_seqs bigint[], p_times timestamptz[], p_labels text[], p_sketches text[],
  p_vectors text[]
) RETURNS text
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
  IF NOT EXISTS (SELECT FROM projects p WHERE p.id = p_project AND p.vectors = p_model) THEN
    RETURN false;
  END IF;
  INSERT INTO search_vectors AS n (project_id, session_id, seq, happened_at, user_id, model, label, sketch, vector)
  SELECT p_project, r.session_id, r.seq, r.happened_at, s.user_id, p_model, r.label, ('x' || r.sketch)::bit varying,
    r.vector::real[]
  FROM unnest(p_sessions, p_seqs, p_times, p_labels, p_sketches, p_vectors)
    AS r (session_id, seq, happened_at, label, sketch, vector)
  CROSS JOIN LATERAL (SELECT o.user_id FROM sessions o WHERE o.project_id = p_project AND o.id = r.session_id OFFSET 0) s;
  RETURN true;
END
$function$
