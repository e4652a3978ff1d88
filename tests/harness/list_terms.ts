import { queryRows } from './sql.ts'

/**
 * The rows of the index of terms that a project has and should not have, or should have and has not; none when
 * it is in step with what is stored.
 */
export function termsOutOfStep(databaseUrl: string, projectId: string): Promise<unknown[]> {
  const listed = (list: string, document: string, parent: string) => `
    SELECT r.project_id, x.term, r.created_at, r.id AS item_id, i.signature
    FROM ${list} r
    CROSS JOIN LATERAL index_terms('${list}', r.${document}, r.user_id, ${parent}) AS i
    CROSS JOIN LATERAL unnest(i.terms) AS x (term)
    WHERE r.project_id = $1`
  return queryRows(
    databaseUrl,
    `WITH wanted AS (${listed('sessions', 'configs', 'r.parent_id')} UNION ALL ${listed('learning_spaces', 'meta', 'NULL')}),
     found AS (SELECT project_id, term, created_at, item_id, signature FROM list_terms WHERE project_id = $1)
     (SELECT 'missing' AS what, * FROM wanted EXCEPT ALL SELECT 'missing', * FROM found)
     UNION ALL
     (SELECT 'left over', * FROM found EXCEPT ALL SELECT 'left over', * FROM wanted)`,
    [projectId],
  )
}
