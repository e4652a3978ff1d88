import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { type Asking, askOnce, BudgetExhausted } from '../../packages/server/src/learning/model/ledger.ts'
import { openDatabase } from '../../packages/server/src/postgres/database.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'

const log = useLog()
const AT_ONCE = 8
/** What is counted for a call until it ends is more than a thousand: there is room for one. */
const QUOTA = 1_500

it('of model calls that begin at once, only those begin for which the quota has room, and what they did not use is given back', async () => {
  const project_id = await log.newProject()
  const database = openDatabase({
    target: { connectionString: log.url },
    connections_max: AT_ONCE,
    wait_ms_max: 10_000,
    statement_ms_max: 0,
  })
  const newSpace = async () => {
    const id = randomUUID()
    await execute(
      log.url,
      "INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) VALUES ($1, $2, '{}', now(), now())",
      [project_id, id],
    )
    return id
  }
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
  const begin = async () => {
    const space_id = await newSpace()
    const limits = { space_max: 1_000_000, project_max: QUOTA }
    const address = { url: 'http://127.0.0.1:9', name: 'scripted' }
    const { signal } = new AbortController()
    const asking = { database, ask, address, project_id, space_id, session_ids: [], ...limits, signal }
    return askOnce(asking, 'reflect', { system: 'system', user: space_id })
  }
  try {
    const ended = await Promise.allSettled(
      Array.from({ length: AT_ONCE }, () =>
        begin().catch((error) => {
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
    await begin()
    expect(await used()).toBe('68')
  } finally {
    await database.close()
  }
})
