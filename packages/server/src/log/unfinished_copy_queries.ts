import { sqlFile, storedFunction } from '@annals/kits/postgres/stored_function.js'

/**
 * Takes copies from their writers, with their keys: what was written of them becomes remains of sessions (see
 * ERASE_REMAINS), and a repetition of the request begins anew. Answer (of each): the ids, separated by commas, or null.
 */
export const END_COPIES = {
  /** `p_copies`: ids of copies. */
  own: endCopies('end_copies', 'p_copies', 'x.session_id = ANY (p_copies)'),
  /** The same if the writer has not been heard of for long. */
  abandoned: endCopies(
    'end_abandoned_copies',
    'p_copies',
    'x.session_id = ANY (p_copies) AND x.leased_until < now()',
  ),
  /** `p_sources`: sessions that are copied. */
  of_sources: endCopies('end_copies_of_sessions', 'p_sources', 'x.source_id = ANY (p_sources)'),
} as const

function endCopies(name: string, ids: string, which: string) {
  return storedFunction(name, sqlFile('log/end_copies.sql'), { ids, which })
}
