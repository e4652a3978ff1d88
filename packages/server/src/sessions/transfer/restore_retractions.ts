import { RETRACTION_TYPE } from '../../log/append/append_request.js'
import type { Queryable } from '../../postgres/database.js'
import { RESTORE_RETRACTIONS } from './restore_queries.js'
import type { EntryRecord } from './session_lines.js'

/** Marks what restored entries retract. */
export async function restoreRetractions(
  connection: Queryable,
  project_id: string,
  entries: ReadonlyArray<{ entry: EntryRecord }>,
): Promise<void> {
  const retracted = entries.flatMap(({ entry }) =>
    retractedSeqs(entry).map((seq) => ({ session_id: entry.session_id, seq, by: entry.seq })),
  )
  if (retracted.length === 0) return
  await connection.query(RESTORE_RETRACTIONS, [
    project_id,
    retracted.map(({ session_id }) => session_id),
    retracted.map(({ seq }) => String(seq)),
    retracted.map(({ by }) => String(by)),
  ])
}

/** The entries that an entry retracts. An event of that type may also be a caller's from before there were retractions. */
function retractedSeqs({ type, seq, data }: EntryRecord): number[] {
  const { seqs } = data as { seqs?: unknown }
  if (type !== RETRACTION_TYPE || !Array.isArray(seqs)) return []
  return seqs.filter((one) => Number.isInteger(one) && one > 0 && one < seq)
}
