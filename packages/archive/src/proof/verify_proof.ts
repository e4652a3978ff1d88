import type { Tenant } from '@annals/kits/postgres/database.js'
import type { Anchor } from 'annals/dist/proof/anchor.js'
import { NEXT_SESSIONS } from '../sessions/verify_session_queries.js'
import { type CheckedPiece, readFindings } from '../verify/findings.js'
import { CHANGED, FIND_LOST_HEADS, VERIFY_CHAINS } from './proof_check_queries.js'

/** Bounds of a piece. A session with more entries is a piece of its own. */
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

const LEAVES_AT_ONCE = 1_000

/** Checks of an anchor file. */
export const ANCHOR_CHECKS = {
  proof_anchor: {
    means: 'a log does not have a head that was anchored',
    todo: CHANGED,
  },
  proof_anchor_file: {
    means: 'an anchor is not what was signed',
    todo: 'The anchor file was changed, or lines of it are missing: compare it with another copy',
  },
} as const

/** Looks up what was anchored of a project's sessions, those aside that are gone. */
export async function* verifyAnchors(
  { database, project_id }: Tenant,
  anchors: readonly Anchor[],
): AsyncGenerator<CheckedPiece> {
  const leaves = anchors.flatMap(({ nth, project, made_at, leaves }) =>
    project === project_id
      ? leaves.filter(({ state }) => state === 'live').map((leaf) => ({ ...leaf, nth, made_at }))
      : [],
  )
  for (let from = 0; from < leaves.length; from += LEAVES_AT_ONCE) {
    const some = leaves.slice(from, from + LEAVES_AT_ONCE)
    const rows = await database.query(FIND_LOST_HEADS, [
      project_id,
      some.map(({ session_id }) => session_id),
      some.map(({ seq }) => seq),
      some.map(({ head }) => head),
      some.map(({ made_at }) => made_at),
    ])
    const shown = rows.map(({ session_id, seq, ord }) => ({
      check: 'proof_anchor',
      session_id: session_id!,
      place: `seq ${seq}`,
      detail: `anchor ${some[Number(ord) - 1]!.nth} has another head for it`,
    }))
    const found = new Map(shown.length > 0 ? [['proof_anchor', shown.length]] : [])
    yield { rows: some.length, counts: { anchored: some.length }, findings: { shown, found } }
  }
}
