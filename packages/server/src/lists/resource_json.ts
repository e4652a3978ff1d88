/**
 * How PostgreSQL writes each resource as JSON, so that callers' data passes through as text and keeps every digit.
 * Each function takes the aliases of tables in the statement and returns an SQL expression of type text. Field names
 * are those of the contract and the columns.
 */

/** RFC 3339 in UTC with microseconds. */
export function timestampText(expression: string): string {
  return `to_char(${expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

export function timestamps(alias: string): string {
  return `'created_at', ${timestampText(`${alias}.created_at`)}, 'updated_at', ${timestampText(`${alias}.updated_at`)}`
}

/**
 * A Session from a row of sessions and its row of session_heads. Fields that few sessions have are only there where
 * they are set, and cost the others nothing.
 */
export function sessionJson(session: string, head: string): string {
  const json = `json_build_object('id', ${session}.id, 'project_id', ${session}.project_id, 'user_id', ${session}.user_id,
    'configs', ${session}.configs, 'disable_task_tracking', ${session}.disable_task_tracking,
    'created_at', ${timestampText(`${session}.created_at`)}, 'updated_at', ${timestampText(`${head}.updated_at`)})::text`
  const fields = ['expires_in_s', 'parent_id', 'forked_from', 'forked_at_seq'] as const
  const columns = fields.map((field) => `${session}.${field}`)
  const added = fields.map((field, index) => `coalesce(',"${field}":' || to_json(${columns[index]}), '')`)
  return `CASE WHEN num_nonnulls(${columns.join(', ')}) = 0 THEN ${json}
    ELSE concat(rtrim(${json}, '}'), ${added.join(', ')}, '}') END`
}

export function userJson(user: string): string {
  return `json_build_object('id', ${user}.id, 'project_id', ${user}.project_id, 'identifier', ${user}.identifier,
    ${timestamps(user)})::text`
}
