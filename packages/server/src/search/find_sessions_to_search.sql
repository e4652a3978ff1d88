WITH wanted AS MATERIALIZED (
  (SELECT w.term FROM unnest(json_terms('sessions', $2::jsonb, true)) AS w (term) ORDER BY w.term & 7 LIMIT {terms_max})
  UNION ALL SELECT user_term('sessions', $3::uuid) WHERE $3::uuid IS NOT NULL
), signed AS MATERIALIZED (
  SELECT bit_or(term_bits(w.term)) AS mask FROM wanted w
), narrowest AS MATERIALIZED (
  SELECT f.walked, f.sessions FROM wanted w CROSS JOIN signed s CROSS JOIN LATERAL (
    SELECT count(*) AS walked, array_agg(t.item_id) FILTER (WHERE t.signature & s.mask = s.mask) AS sessions
    FROM (
      SELECT i.item_id, i.signature FROM ({arms}) AS a (term)
      CROSS JOIN LATERAL (
        SELECT t.item_id, t.signature FROM list_terms t WHERE t.project_id = $1 AND t.term = a.term LIMIT {walked_max}
      ) i
      LIMIT {walked_max}
    ) t
  ) f
  ORDER BY f.walked LIMIT 1
)
SELECT CASE WHEN n.walked <= {term_rows_max} AND coalesce(cardinality(n.sessions), 0) <= {narrowing_sessions}
  THEN coalesce(n.sessions, '{}') END AS sessions
FROM narrowest n
