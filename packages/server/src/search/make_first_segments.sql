INSERT INTO search_segments AS n (project_id, segment, begins_at, entries, last_at)
SELECT $1, g.segment, g.begins_at, 0, '-infinity'
FROM (
  SELECT p.segment, CASE WHEN p.segment = 0 THEN '-infinity' ELSE min(p.at) END AS begins_at
  FROM (
    SELECT s.created_at + (h.updated_at - s.created_at) * (x.part / x.parts) AS at,
      floor((sum(h.last_seq / x.parts) OVER (ORDER BY s.created_at + (h.updated_at - s.created_at) * (x.part / x.parts))
        - h.last_seq / x.parts) / {segment_entries})::int AS segment
    FROM session_heads h
    CROSS JOIN LATERAL (SELECT o.created_at FROM sessions o WHERE o.project_id = $1 AND o.id = h.session_id OFFSET 0) s
    CROSS JOIN LATERAL (
      SELECT i::float8 AS part, ceil((h.last_seq + 1) / 4096.0)::float8 AS parts
      FROM generate_series(0, h.last_seq / 4096) AS i
    ) x
    WHERE h.project_id = $1
  ) p
  GROUP BY p.segment
  UNION
  SELECT 0, '-infinity'
) g
ON CONFLICT (project_id, segment) DO NOTHING
