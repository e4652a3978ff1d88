import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import {
  DatabaseAway,
  type DatabasePool,
  type Parameter,
} from '../../packages/server/src/postgres/database.ts'
import { planned, type Statement } from '../../packages/server/src/postgres/statement.ts'
import { straightToWorkers } from '../../packages/server/src/postgres/worker_pools.ts'

/** A cluster of one worker that has every project; which machine was asked what, and how the worker fails. */
function fakeCluster() {
  const asked: string[] = []
  const detours: string[] = []
  let fail: ((onSending?: () => void) => void) | undefined
  const machine = (name: string, query: DatabasePool['query']): DatabasePool => ({
    query,
    transaction: () => Promise.reject(new Error(`no transaction at the ${name}`)),
    close: async () => {},
    usage: () => ({ total: 0, idle: 0, waiting: 0 }),
  })
  const coordinator = machine('coordinator', async ({ name }) => {
    if (name === 'find_worker') return [{ host: 'worker-1', port: '5432' }]
    asked.push(`coordinator: ${name}`)
    return []
  })
  const worker = machine('worker', async ({ name }, _parameters, onSending) => {
    if (name === 'worker_reached') return []
    fail?.(onSending)
    asked.push(`worker: ${name}`)
    return []
  })
  const target = { connectionString: 'postgresql://coordinator/annals', distributed: true }
  const pool = straightToWorkers(
    coordinator,
    target,
    () => worker,
    (address) => detours.push(address),
  )
  const ask = async (statement: Statement, ...parameters: Parameter[]) => {
    asked.length = 0
    await pool.query(statement, parameters)
    return asked.join(', ')
  }
  return { ask, asked, detours, failBy: (how: typeof fail) => (fail = how) }
}

const project = randomUUID()
const read = planned('read', 'SELECT FROM sessions s WHERE s.project_id = $1')

/** The worker of the project is found and reached beside the first statements. */
async function reachedCluster() {
  const cluster = fakeCluster()
  expect(await cluster.ask(read, project)).toBe('coordinator: read')
  await vi.waitFor(async () => expect(await cluster.ask(read, project)).toBe('worker: read'))
  return cluster
}

describe('on a cluster', () => {
  it('reads and stored functions that name a project go to its worker, and all else to the coordinator', async () => {
    const { ask } = await reachedCluster()
    const append = { ...planned('append', 'SELECT append_events($1)'), writes: true }
    const erase = planned('erase', 'DELETE FROM sessions AS s WHERE s.project_id = $1')
    const erase_in_part = planned('erase_in_part', `WITH gone AS (${erase.text}) SELECT FROM gone`)
    expect(await ask(append, project, 'data')).toBe('worker: append')
    expect(await ask(erase, project)).toBe('coordinator: erase')
    expect(await ask(erase_in_part, project)).toBe('coordinator: erase_in_part')
    expect(await ask(read)).toBe('coordinator: read')
    expect(await ask(read, 'a name')).toBe('coordinator: read')
    expect(await ask(read, 7)).toBe('coordinator: read')
  })

  it('the coordinator is asked instead of a worker to which nothing could be sent', async () => {
    const { ask, detours, failBy } = await reachedCluster()
    failBy(() => {
      throw new DatabaseAway(false, new Error('connection refused'))
    })
    expect(await ask(read, project)).toBe('coordinator: read')
    expect(detours).toEqual(['worker-1:5432'])
  })

  it('what was sent to a worker that then breaks off is sent to nobody else', async () => {
    const { ask, asked, failBy } = await reachedCluster()
    failBy((onSending) => {
      onSending?.()
      throw new DatabaseAway(true, new Error('connection reset'))
    })
    await expect(ask(read, project)).rejects.toThrow(DatabaseAway)
    expect(asked).toEqual([])
  })

  it('a worker that no longer belongs to the cluster is told by its refusal, and the coordinator is asked', async () => {
    const { ask, failBy } = await reachedCluster()
    failBy((onSending) => {
      onSending?.()
      throw Object.assign(new Error('relation "sessions" does not exist'), { code: '42P01' })
    })
    expect(await ask(read, project)).toBe('coordinator: read')
  })
})
