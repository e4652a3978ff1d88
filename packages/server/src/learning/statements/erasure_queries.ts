import { storedFunction } from '../../postgres/stored_function.js'
import { recountText } from './statement_queries.js'

/**
 * Deletes up to so many citations of sessions that go, and what rests on them: a statement that was worded from one of
 * them or has no support left loses its words, as do the versions of skills that it was in. A skill that has none but such
 * statements loses its name, which may be that of a tool that only those sessions called. Answer: citations, statements.
 */
export const ERASE_CITES = storedFunction(
  'erase_statement_cites',
  'p_project uuid, p_sessions uuid[], p_rows_max bigint',
  `DECLARE
  cites bigint;
  touched uuid[];
  origins uuid[];
  revoked uuid[];
  spaces uuid[];
  empty uuid[];
BEGIN
  SELECT array_agg(DISTINCT c.learning_space_id) INTO spaces FROM statement_cites c
  WHERE c.project_id = p_project AND c.session_id = ANY (p_sessions);
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = ANY (spaces) ORDER BY l.id FOR NO KEY UPDATE;
  WITH gone AS (
    DELETE FROM statement_cites AS c WHERE c.project_id = p_project AND c.ctid = ANY (ARRAY(
      SELECT o.ctid FROM statement_cites o WHERE o.project_id = p_project AND o.session_id = ANY (p_sessions) LIMIT p_rows_max))
    RETURNING c.statement_id, c.is_origin
  )
  SELECT count(*), coalesce(array_agg(DISTINCT g.statement_id), '{}'), coalesce(array_agg(DISTINCT g.statement_id) FILTER (WHERE g.is_origin), '{}')
  INTO cites, touched, origins FROM gone g;
  IF cites = 0 THEN
    RETURN '0,0';
  END IF;
  PERFORM FROM statements s WHERE s.project_id = p_project AND s.id = ANY (touched) ORDER BY s.id FOR UPDATE;${recountText('s.id = ANY (touched)')}
  SELECT coalesce(array_agg(s.id), '{}') INTO revoked FROM statements s
  WHERE s.project_id = p_project AND s.id = ANY (touched) AND s.author <> 'person' AND s.state <> 'revoked'
    AND (s.supports = 0 OR s.id = ANY (origins) AND NOT s.pinned OR s.state = 'active' AND NOT s.pinned AND s.supports < 2);
  IF cardinality(revoked) > 0 THEN
    UPDATE skill_versions AS v SET text = NULL, statements = '{}', reason = 'A session that it was learnt from was deleted.', author = 'erasure'
    WHERE v.project_id = p_project AND v.learning_space_id = ANY (spaces) AND v.statements ?| revoked::text[];
    UPDATE statements AS s SET state = 'revoked', text = '', marker = NULL, pinned = false
    WHERE s.project_id = p_project AND s.id = ANY (revoked);
    SELECT array_agg(k.id) INTO empty FROM skills k
    WHERE k.project_id = p_project AND k.source = 'learnt'
      AND k.id = ANY (ARRAY(SELECT s.skill_id FROM statements s WHERE s.project_id = p_project AND s.id = ANY (revoked)))
      AND NOT EXISTS (SELECT FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = k.learning_space_id
        AND s.skill_id = k.id AND s.state <> 'revoked');
    UPDATE skills AS k SET name = 'revoked-' || k.id::text, description = '', updated_at = now()
    WHERE k.project_id = p_project AND k.id = ANY (empty);
    UPDATE skill_versions AS v SET text = NULL
    WHERE v.project_id = p_project AND v.skill_id = ANY (empty) AND v.learning_space_id = ANY (spaces);
  END IF;
  RETURN concat(cites, ',', cardinality(revoked));
END`,
)
