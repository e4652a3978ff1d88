-- The entries whose vectors are nearest to a question's, among the newest ones of those that are asked for. Sketches, which
-- are a thirtieth as long, choose the ones whose vectors are read. Planned for its parameters: a few sessions, a user and a
-- whole project are found by indexes of their own.
-- Answer: JSON with near, [session_id, seq] each, and is_filled: whether there are vectors of all that was there at first.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_model text, p_vector real[], p_sketch text, p_user uuid, p_sessions uuid[], p_configs jsonb, p_labels text[],
  p_from timestamptz, p_to timestamptz, p_most int
) RETURNS text
LANGUAGE plpgsql STABLE AS $function$
DECLARE
  answer text;
BEGIN
  EXECUTE $query$
    SELECT json_build_object('near', coalesce(json_agg(json_build_array(r.session_id, r.seq) ORDER BY r.distance), '[]'),
      'is_filled', EXISTS (SELECT FROM project_consumers c
        WHERE c.project_id = $1 AND c.consumer = 'vectors' AND c.scanned_at IS NOT NULL AND c.retired_at IS NULL))::text
    FROM (
      SELECT n.session_id, n.seq, n.vector::vector <=> $3::vector AS distance
      FROM (
        SELECT v.session_id, v.seq, v.vector
        FROM (
          SELECT o.session_id, o.seq, o.sketch, o.vector FROM search_vectors o
          WHERE o.project_id = $1 AND o.model = $2 AND ($5 IS NULL OR o.user_id = $5) AND ($6 IS NULL OR o.session_id = ANY ($6))
            AND o.happened_at >= $9 AND o.happened_at <= $10
            AND ($8 IS NULL OR (o.label || ' ') ^@ ALL ($8))
          ORDER BY o.happened_at DESC LIMIT {vectors_max}
        ) v
        ORDER BY bit_count(v.sketch # ('x' || $4)::bit varying) LIMIT {compared}
      ) n
      WHERE $7 IS NULL OR EXISTS (
        SELECT FROM sessions s WHERE s.project_id = $1 AND s.id = n.session_id AND s.configs @> $7 OFFSET 0)
      ORDER BY 3 LIMIT $11
    ) r
  $query$ INTO answer
  USING p_project, p_model, p_vector, p_sketch, p_user, p_sessions, p_configs, p_labels, p_from, p_to, p_most;
  RETURN answer;
END
$function$
