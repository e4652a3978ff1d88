SELECT s.id AS session_id, {created_at} AS created_at,
  CASE WHEN jsonb_typeof(s.configs -> 'title') = 'string' THEN left(s.configs ->> 'title', 480) END AS title, e.format, e.data::text AS data
FROM sessions s
LEFT JOIN LATERAL (
  SELECT o.format, o.data FROM entries o
  WHERE o.project_id = $1 AND o.session_id = s.id AND o.seq <= {seq_max} AND o.kind = 'message' AND o.role = 'user'
    AND o.bytes <= {bytes_max} AND o.retracted_by IS NULL
    -- System prompts are stored as said by a user, too.
    AND coalesce(o.data ->> 'role', 'user') NOT IN ('system', 'developer')
  ORDER BY o.seq LIMIT 1) e ON true
WHERE s.project_id = $1 AND s.id = ANY ($2)
