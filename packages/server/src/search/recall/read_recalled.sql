SELECT i.session_id, i.seq, i.kind, i.type, i.role, i.format, i.data::text AS data, {created_at} AS created_at,
  {occurred_at} AS occurred_at
FROM (
SELECT e.*, sum(e.bytes) OVER (ORDER BY r.place) - e.bytes AS bytes_before
FROM unnest($2::uuid[], $3::bigint[]) WITH ORDINALITY AS r (session_id, seq, place)
CROSS JOIN LATERAL (
  SELECT o.* FROM entries o
  WHERE o.project_id = $1 AND o.session_id = r.session_id AND o.seq = r.seq AND o.retracted_by IS NULL
    AND ($4::text IS NULL OR o.kind = $4) AND ($5::text IS NULL OR o.type = $5) AND ($6::text IS NULL OR o.role = $6)
    AND ($9::timestamptz IS NULL OR least(o.occurred_at, o.created_at) >= $9)
    AND ($10::timestamptz IS NULL OR least(o.occurred_at, o.created_at) <= $10) OFFSET 0) e
CROSS JOIN LATERAL (
  SELECT h.updated_at FROM session_heads h WHERE h.project_id = $1 AND h.session_id = r.session_id OFFSET 0) h
CROSS JOIN LATERAL (
  SELECT FROM sessions o
  WHERE o.project_id = $1 AND o.id = r.session_id AND ($7::uuid IS NULL OR o.user_id = $7)
    AND ($8::jsonb IS NULL OR o.configs @> $8)
    AND (h.updated_at + make_interval(secs => o.expires_in_s) <= now()) IS NOT TRUE OFFSET 0) s
) i WHERE i.bytes_before < {bytes_max}
