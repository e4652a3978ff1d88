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
  const fields = ['forked_from', 'forked_at_seq'] as const
  const columns = fields.map((field) => `${session}.${field}`)
  const added = fields.map((field, index) => `coalesce(',"${field}":' || to_json(${columns[index]}), '')`)
  return `CASE WHEN num_nonnulls(${columns.join(', ')}) = 0 THEN ${json}
    ELSE concat(rtrim(${json}, '}'), ${added.join(', ')}, '}') END`
}

export function userJson(user: string): string {
  return `json_build_object('id', ${user}.id, 'project_id', ${user}.project_id, 'identifier', ${user}.identifier,
    ${timestamps(user)})::text`
}

/** A SessionEvent from a row of entries. */
export function eventJson(entry: string): string {
  return `json_build_object('id', ${entry}.id, 'project_id', ${entry}.project_id, 'session_id', ${entry}.session_id,
    'type', ${entry}.type, 'data', ${entry}.data, 'seq', ${entry}.seq, ${timestamps(entry)})::text`
}

/**
 * An entry as an item of the timeline: an event unchanged, a message with its stored blob and its format. `session`
 * is the row of sessions that tells whether tasks are tracked.
 */
export function entryItemJson(entry: string, session: string): string {
  return `CASE WHEN ${entry}.kind = 'event' THEN
    json_build_object('kind', ${entry}.kind, 'seq', ${entry}.seq, 'id', ${entry}.id, 'project_id', ${entry}.project_id,
      'session_id', ${entry}.session_id, 'type', ${entry}.type, 'data', ${entry}.data, ${timestamps(entry)})
  ELSE
    json_build_object('kind', ${entry}.kind, 'seq', ${entry}.seq, ${messageFields(entry, session, `coalesce(${entry}.patched_meta, ${entry}.meta)`)},
      'format', ${entry}.format, 'blob', ${entry}.data, ${timestamps(entry)})
  END::text`
}

function messageFields(entry: string, session: string, meta: string): string {
  return `'id', ${entry}.id, 'session_id', ${entry}.session_id, 'parent_id', ${entry}.parent_id, 'role', ${entry}.role,
    'meta', ${meta}, 'task_id', NULL,
    'session_task_process_status', CASE WHEN ${session}.disable_task_tracking THEN 'disable_tracking' ELSE 'pending' END`
}
