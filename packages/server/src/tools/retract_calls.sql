UPDATE tool_calls AS t SET
  is_retracted = t.is_retracted OR t.seq = ANY ($3::bigint[]),
  is_counted = t.is_counted AND NOT t.seq = ANY ($3::bigint[]),
  failed = CASE WHEN t.result_seq = ANY ($3::bigint[]) THEN NULL ELSE t.failed END,
  answered = CASE WHEN t.seq = ANY ($3::bigint[]) THEN 3 WHEN t.result_seq = ANY ($3::bigint[]) THEN 0 ELSE t.answered END,
  message = CASE WHEN t.seq = ANY ($3::bigint[]) OR t.result_seq = ANY ($3::bigint[]) THEN NULL ELSE t.message END,
  result = CASE WHEN t.seq = ANY ($3::bigint[]) OR t.result_seq = ANY ($3::bigint[]) THEN NULL ELSE t.result END,
  duration_ms = CASE WHEN t.result_seq = ANY ($3::bigint[]) THEN NULL ELSE t.duration_ms END,
  result_seq = CASE WHEN t.result_seq = ANY ($3::bigint[]) THEN NULL ELSE t.result_seq END,
  said_seq = NULL, said = NULL
WHERE t.project_id = $1 AND t.session_id = $2
  AND (t.seq = ANY ($3::bigint[]) OR t.result_seq = ANY ($3::bigint[]) OR t.said_seq = ANY ($3::bigint[]))
