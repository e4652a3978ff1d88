-- Deletes up to so many citations of sessions that go, and what rests on them: a statement that a model worded when it
-- was shown one of them, cited or not, or that has no support left loses its words, a rule's what one of them had shown,
-- as do the versions of skills that it was in. A skill that has none but such statements loses its name, which may be
-- that of a tool that only those sessions called. Answer: citations, statements.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_sessions uuid[], p_rows_max bigint) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  cites bigint;
  touched uuid[];
  first_cited uuid[];
  revoked uuid[];
  spaces uuid[];
  empty uuid[];
  worded uuid[];
  reworded uuid[];
BEGIN
  worded := ARRAY(SELECT s.id FROM statements s
    WHERE s.project_id = p_project AND s.origins ?| p_sessions::text[] ORDER BY s.id LIMIT p_rows_max);
  SELECT array_agg(DISTINCT f.learning_space_id) INTO spaces FROM (
    SELECT c.learning_space_id FROM statement_cites c WHERE c.project_id = p_project AND c.session_id = ANY (p_sessions)
    UNION ALL
    SELECT s.learning_space_id FROM statements s WHERE s.project_id = p_project AND s.id = ANY (worded)) f;
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = ANY (spaces) ORDER BY l.id FOR NO KEY UPDATE;
  WITH gone AS (
    DELETE FROM statement_cites AS c WHERE c.project_id = p_project AND c.ctid = ANY (ARRAY(
      SELECT o.ctid FROM statement_cites o WHERE o.project_id = p_project AND o.session_id = ANY (p_sessions) LIMIT p_rows_max))
    RETURNING c.statement_id, c.is_origin
  )
  SELECT count(*), coalesce(array_agg(DISTINCT g.statement_id), '{}'), coalesce(array_agg(DISTINCT g.statement_id) FILTER (WHERE g.is_origin), '{}')
  INTO cites, touched, first_cited FROM gone g;
  IF cites = 0 AND cardinality(worded) = 0 THEN
    RETURN '0,0,0';
  END IF;
  touched := touched || worded;
  PERFORM FROM statements s WHERE s.project_id = p_project AND s.id = ANY (touched) ORDER BY s.id FOR UPDATE;
  {recount}
  SELECT coalesce(array_agg(s.id), '{}') INTO revoked FROM statements s
  WHERE s.project_id = p_project AND s.id = ANY (touched) AND s.author <> 'person' AND s.state <> 'revoked'
    AND (s.supports = 0 OR s.id = ANY (first_cited) AND NOT s.pinned OR s.id = ANY (worded) AND s.author = 'model' OR s.state = 'active' AND NOT s.pinned AND s.supports < 2);
  -- Of a rule's statement, the error stays: other sessions had the same.
  WITH mended AS (
    UPDATE statements AS s SET origins = NULL,
      text = CASE WHEN s.author = 'rule' THEN split_part(s.text, '”. ', 1) || CASE WHEN s.text LIKE '%”. %' THEN '”.' ELSE '' END ELSE s.text END
    WHERE s.project_id = p_project AND s.id = ANY (worded) RETURNING s.id, s.author
  )
  SELECT coalesce(array_agg(m.id), '{}') INTO reworded FROM mended m WHERE m.author = 'rule';
  UPDATE skill_versions AS v SET text = NULL, statements = '{}', reason = 'A session that it was learnt from was deleted.', author = 'erasure'
  WHERE v.project_id = p_project AND v.learning_space_id = ANY (spaces) AND v.statements ?| (revoked || reworded)::text[];
  IF cardinality(revoked) > 0 THEN
    UPDATE statements AS s SET state = 'revoked', text = '', marker = NULL, pinned = false
    WHERE s.project_id = p_project AND s.id = ANY (revoked);
    SELECT array_agg(k.id) INTO empty FROM skills k
    WHERE k.project_id = p_project AND k.source = 'learnt'
      AND k.id = ANY (ARRAY(SELECT s.skill_id FROM statements s WHERE s.project_id = p_project AND s.id = ANY (revoked)))
      AND NOT EXISTS (SELECT FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = k.learning_space_id
        AND s.skill_id = k.id AND s.state <> 'revoked');
    UPDATE skills AS k SET name = 'revoked-' || k.id::text, description = '', updated_at = greatest(now(), k.updated_at)
    WHERE k.project_id = p_project AND k.id = ANY (empty);
    UPDATE skill_versions AS v SET text = NULL
    WHERE v.project_id = p_project AND v.skill_id = ANY (empty) AND v.learning_space_id = ANY (spaces);
  END IF;
  RETURN concat(cites, ',', cardinality(revoked), ',', cardinality(worded));
END
$function$
