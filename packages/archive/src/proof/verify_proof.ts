import type { Tenant } from 'annals/dist/postgres/database.js'
import { NEXT_SESSIONS } from '../sessions/verify_session_queries.js'
import { type CheckedPiece, readFindings } from '../verify/findings.js'
import { VERIFY_CHAINS } from './proof_check_queries.js'

/** Bounds of a piece. A session of more entries is a piece by itself. */
const ENTRIES_AT_ONCE = 10_000
const SESSIONS_AT_ONCE = 1_000

/** Makes the links of a project's chains anew, a bounded piece at a time. */
export async function* verifyChains({ database, project_id }: Tenant): AsyncGenerator<CheckedPiece> {
  let after: string | null = null
  do {
    const bounds = [project_id, after, ENTRIES_AT_ONCE, SESSIONS_AT_ONCE]
    const [next] = await database.query(NEXT_SESSIONS, bounds)
    const last: string | null = next!.last_id!
    const { counted, findings } = readFindings(await database.query(VERIFY_CHAINS, [project_id, after, last]))
    yield { rows: Number(counted.rows), counts: { links: Number(counted.links) }, findings }
    after = last
  } while (after !== null)
}
