import { randomUUID } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { type Database, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { type Asking, askOnce, BudgetExhausted } from '../../packages/server/src/learning/model/ledger.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'
import { useLog } from './log_fixture.ts'

const log = useLog()
const AT_ONCE = 8
/** What is counted for a call until it ends is more than a thousand: there is room for one. */
const QUOTA = 1_500

const open = (settings: Record<string, string> = {}) =>
  openDatabase({
    target: { connectionString: log.url },
    connections_max: AT_ONCE,
    wait_ms_max: 10_000,
    statement_ms_max: 0,
    settings,
  })

async function newSpace(project_id: string): Promise<string> {
  const space_id = randomUUID()
  await execute(
    log.url,
    "INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) VALUES ($1, $2, '{}', now(), now())",
    [project_id, space_id],
  )
  return space_id
}

/** Asks the model about an input that it was not asked about before. */
function begin(database: Database, project_id: string, space_id: string, ask: Asking['ask']) {
  const limits = { space_max: 1_000_000, project_max: QUOTA }
  const address = { url: 'http://127.0.0.1:9', name: 'scripted' }
  const { signal } = new AbortController()
  const asking = { database, ask, address, project_id, space_id, session_ids: [], ...limits, signal }
  return askOnce(asking, 'reflect', { system: 'system', user: space_id })
}

it('of model calls that begin at once, only those begin for which the quota has room, and what they did not use is given back', async () => {
  const project_id = await log.newProject()
  const database = open()
  const used = async () =>
    (
      await queryRows<{ tokens: string }>(
        log.url,
        'SELECT sum(model_tokens) AS tokens FROM usage_days WHERE project_id = $1',
        [project_id],
      )
    )[0]!.tokens
  let refused = 0
  let asked = 0
  let resolve = () => {}
  const allRefused = new Promise<void>((done) => {
    resolve = done
  })
  const ask: Asking['ask'] = async () => {
    asked += 1
    await allRefused
    return { text: '{"statements":[]}', tokens_in: 30, tokens_out: 4 }
  }
  try {
    const ended = await Promise.allSettled(
      Array.from({ length: AT_ONCE }, () =>
        newSpace(project_id)
          .then((space_id) => begin(database, project_id, space_id, ask))
          .catch((error) => {
            refused += 1
            if (refused === AT_ONCE - 1) resolve()
            throw error
          }),
      ),
    )
    expect(asked).toBe(1)
    const reasons = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
    expect(reasons).toEqual(Array(AT_ONCE - 1).fill(expect.any(BudgetExhausted)))
    expect(await used()).toBe('34')
    await begin(database, project_id, await newSpace(project_id), ask)
    expect(await used()).toBe('68')
  } finally {
    await database.close()
  }
})

// Of a cluster, it is a worker whose disk would have it.
it.skipIf(reasonForNoOwnDatabase())(
  'a model call has been written to disk when the model is asked, so that it counts whatever the database meets',
  async () => {
    // As the connections of what works in the background.
    const database = open({ synchronous_commit: 'off' })
    const project_id = await log.newProject()
    const space_id = await newSpace(project_id)
    const [{ written_before }] = (await queryRows<{ written_before: string }>(
      log.url,
      'SELECT pg_current_wal_insert_lsn() AS written_before',
    )) as [{ written_before: string }]
    const ask = vi.fn(async () => {
      const isDurable = 'SELECT pg_current_wal_flush_lsn() > $1::pg_lsn AS is_durable'
      expect(await queryRows(log.url, isDurable, [written_before])).toEqual([{ is_durable: true }])
      return { text: '{"statements":[]}', tokens_in: 1, tokens_out: 1 }
    })
    try {
      await begin(database, project_id, space_id, ask)
      expect(ask).toHaveBeenCalledOnce()
    } finally {
      await database.close()
    }
  },
)
