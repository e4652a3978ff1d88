import type { Tenant } from '@annals/kits/postgres/database.js'
import { type CheckedPiece, readFindings } from '../verify/findings.js'
import { NEXT_SESSIONS, VERIFY_SESSIONS } from './verify_session_queries.js'

/** Bounds of a piece. A session with more entries is a piece of its own. */
const ENTRIES_AT_ONCE = 10_000
const SESSIONS_AT_ONCE = 1_000

/** Reads all sessions of a project with their logs. */
export async function* verifySessions({ database, project_id }: Tenant): AsyncGenerator<CheckedPiece> {
  let after: string | null = null
  do {
    const bounds = [project_id, after, ENTRIES_AT_ONCE, SESSIONS_AT_ONCE]
    const [next] = await database.query(NEXT_SESSIONS, bounds)
    const last: string | null = next!.last_id!
    const { counted, findings } = readFindings(
      await database.query(VERIFY_SESSIONS, [project_id, after, last]),
    )
    const [sessions, entries, messages, tokens, bytes] = (
      ['sessions', 'entries', 'messages', 'tokens', 'bytes'] as const
    ).map((name) => Number(counted[name])) as [number, number, number, number, number]
    const counts = { sessions, entries, messages, events: entries - messages, tokens, bytes }
    yield { rows: Number(counted.rows), counts, findings }
    after = last
  } while (after !== null)
}
