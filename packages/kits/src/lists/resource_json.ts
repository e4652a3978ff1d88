/**
 * How PostgreSQL writes each resource as JSON, so that callers' data passes through as text and keeps every digit.
 * Each function takes the aliases of tables in the statement and returns an SQL expression of type text. Field names
 * are those of the contract and the columns.
 */

export function timestampText(expression: string): string {
  return `to_char(${expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

export function dayText(expression: string): string {
  return `to_char(${expression}, 'YYYY-MM-DD')`
}

export function timestamps(alias: string): string {
  return `'created_at', ${timestampText(`${alias}.created_at`)}, 'updated_at', ${timestampText(`${alias}.updated_at`)}`
}

/**
 * A Session from a row of sessions and its row of session_heads: pieces of text, for half of what json_build_object
 * costs. What is null is left out, as are the fields that few sessions have.
 */
export function sessionJson(session: string, head: string): string {
  const text = (field: string) => `',"${field}":"' || ${session}.${field} || '"'`
  const number = (field: string) => `',"${field}":' || ${session}.${field}`
  return `concat('{"id":"', ${session}.id, '","project_id":"', ${session}.project_id, '"',
    coalesce(${text('user_id')}, ',"user_id":null'), ',"configs":', ${session}.configs,
    ',"disable_task_tracking":', CASE WHEN ${session}.disable_task_tracking THEN 'true' ELSE 'false' END,
    ',"created_at":"', ${timestampText(`${session}.created_at`)}, '","updated_at":"', ${timestampText(`${head}.updated_at`)}, '"',
    ${number('expires_in_s')}, ${text('parent_id')}, ${text('forked_from')}, ${number('forked_at_seq')}, '}')`
}

/** Merges `change` into the top level of `base`; a null in `change` deletes the key. Nulls already in `base` stay. */
export function mergedJson(base: string, change: string): string {
  return `(${base} || ${change}) - ARRAY(SELECT c.key FROM jsonb_each(${change}) AS c WHERE c.value = 'null'::jsonb)`
}

/** Characters that are written together: one item after the other costs more than reading them. */
const TEXT_LENGTH = 64 * 1024

/** A list as JSON, in texts of about that length: what stands before its items, these, in pieces, and what stands after. */
export async function* jsonList(
  begin: string,
  pieces: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  end: string,
): AsyncGenerator<string> {
  let text = begin
  let separator = ''
  for await (const items of pieces)
    for (const item of items) {
      text += separator + item
      separator = ','
      if (text.length < TEXT_LENGTH) continue
      yield text
      text = ''
    }
  yield text + end
}
