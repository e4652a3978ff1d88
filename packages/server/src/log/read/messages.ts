import { mergedTooLarge, notFound } from '../../errors.js'
import { MERGED_BYTES_MAX } from '../../limits.js'
import type { Tenant } from '../../postgres/database.js'
import { call } from '../../postgres/stored_function.js'
import { COUNT_TOKENS, MERGE_MESSAGE_META } from './message_queries.js'

/**
 * Merges the body's meta into a message's, at the top level; null deletes a key. Returns the merged meta as JSON.
 * @throws AnnalsError session_not_found, message_not_found, payload_too_large
 */
export async function mergeMessageMeta(
  { database, project_id }: Tenant,
  session_id: string,
  message_id: string,
  body: string,
): Promise<string> {
  const asked = [session_id, message_id, body, MERGED_BYTES_MAX]
  const answer = await call(database, MERGE_MESSAGE_META, project_id, ...asked)
  if (answer === null) throw notFound('session')
  if (answer === 'no message') throw notFound('message')
  if (answer === 'too large') throw mergedTooLarge('meta')
  return answer
}

/** Tokens of all messages of a session, and what was counted. @throws AnnalsError session_not_found */
export async function countSessionTokens(
  { database, project_id }: Tenant,
  session_id: string,
): Promise<{ total_tokens: number; counted: 'all' | 'text' }> {
  const [row] = await database.query(COUNT_TOKENS, [project_id, session_id])
  if (!row) throw notFound('session')
  const counted = row.is_counted_by_text === 't' ? 'text' : 'all'
  return { total_tokens: Number(row.total_tokens), counted }
}
