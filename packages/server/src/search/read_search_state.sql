SELECT p.is_on, c.is_ready, c.sessions_scanned, m.sessions AS sessions_left,
  {indexed_through} AS indexed_through,
  (SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2::text) AS user_id,
  EXISTS (SELECT FROM search_refills r WHERE r.project_id = $1) AS is_refilling
FROM (SELECT coalesce(p.search, false) AS is_on FROM projects p WHERE p.id = $1 OFFSET 0) p
CROSS JOIN LATERAL (
  SELECT coalesce(bool_or(c.scan_at > c.scanned_at + interval '{heard_s} s' AND c.retired_at IS NULL), false) AS is_ready, max(c.sessions_scanned) AS sessions_scanned
  FROM project_consumers c WHERE c.project_id = $1 AND c.consumer = 'search'
) c
CROSS JOIN LATERAL (
  SELECT count(*) AS sessions, min(m.marked_at) AS marked_at
  FROM change_marks m WHERE m.project_id = $1 AND m.consumer = 'search'
) m
