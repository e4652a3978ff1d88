import { describe, expect, it } from 'vitest'
import { type CompactedLog, planCompaction } from '../../../src/log/read/plan_compaction.ts'
import { READ_HEAD } from '../../../src/log/read/read_queries.ts'

/** What aggregates are over no rows. */
const nothing = new Proxy<Record<string, string>>(
  { lines: '', entries: '0', messages: '0' },
  { get: (row, column) => row[String(column)] ?? null },
)

/** A log without messages from 1 to 2, whose head is found as often as said. */
function emptyLog(heads: number): CompactedLog {
  const query = async (statement: unknown) => {
    if (statement === READ_HEAD) return heads-- > 0 ? [{ last_seq: '2' }] : []
    return [nothing]
  }
  return {
    database: { query },
    project_id: 'p',
    session_id: 's',
    know: async () => [],
  } as unknown as CompactedLog
}

describe('a compaction of messages that are gone', () => {
  it('says that the session does not exist if it was deleted meanwhile', async () => {
    expect(await planCompaction(emptyLog(1), { to_seq: 2 }, undefined)).toMatchObject({
      error: 'session_not_found',
    })
  })

  it('says that there is nothing to compact in a session that exists', async () => {
    expect(await planCompaction(emptyLog(2), { to_seq: 2 }, undefined)).toMatchObject({
      error: 'invalid_request',
    })
  })
})
