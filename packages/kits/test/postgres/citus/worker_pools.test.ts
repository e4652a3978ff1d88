import type { ClientBase } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { straightToWorkers } from '../../../src/postgres/citus/worker_pools.ts'
import { DatabaseAway, type DatabasePool, type Parameter, type Row } from '../../../src/postgres/database.ts'
import { NotFulfilled } from '../../../src/postgres/grouped_reads.ts'
import { ofProject, prepared, type Statement } from '../../../src/postgres/statement.ts'

const FLUSH = { ...prepared('flush', 'SELECT append($1)'), writes: true }
const PROJECT = '0190a1b2-0000-7000-8000-000000000001'
const OTHER = '0190a1b2-0000-7000-8000-000000000002'
const HERE = { host: 'worker-1', port: '5432', shard: '102008' }
const SHARDS = ['sessions', 'users'].map((table, at) => ({
  table_name: table,
  shard: `${table}_${102_008 + at}`,
}))

/** A cluster of one worker, which may be switched off, and what was sent to it and to the coordinator. */
function clusterOf(target: object = { distributed: true }) {
  const state = {
    isUp: true,
    signature: 'a',
    seen: 'a' as string | null,
    sent: [] as string[],
    /** Of what the worker was asked. */
    texts: [] as string[],
    detours: [] as unknown[],
    urls: [] as string[],
    fails: undefined as Error | undefined,
  }
  const poolOf = (answer: (statement: Statement) => Promise<Row[]>): DatabasePool => ({
    query: (statement: Statement, _parameters: readonly Parameter[]) => answer(statement),
    transaction: () => Promise.reject(new Error('not here')),
    snapshot: () => Promise.reject(new Error('not here')),
    close: async () => {},
    usage: () => ({ total: 1, idle: 1, waiting: 0 }),
    renew: () => {},
    stalls: false,
    distributed: true,
    objects: undefined,
  })
  const coordinator = poolOf(async ({ name }) => {
    if (name === 'find_worker') return [HERE]
    if (name === 'name_shards') return SHARDS
    if (name === 'signature_of_worker') return [{ signature: state.seen }]
    state.sent.push('coordinator')
    return []
  })
  const pool = straightToWorkers(
    coordinator,
    {
      connectionString: 'postgresql://annals:secret@coordinator/annals?host=other&sslmode=require',
      ...target,
    },
    ({ target, onConnect }) => {
      state.urls.push((target as { connectionString: string }).connectionString)
      const client = { query: async () => ({ rows: [{ signature: state.signature }] }) }
      const connect = async () => {
        if (!state.isUp) throw new Error('refused')
        await onConnect!(client as unknown as ClientBase)
      }
      return {
        ...poolOf(async () => []),
        query: async ({ name, text }, _parameters, onSending) => {
          await connect().catch((error) => {
            throw new DatabaseAway(false, error)
          })
          onSending?.()
          if (!name.startsWith('flush')) return []
          state.texts.push(text)
          if (state.fails) throw state.fails
          state.sent.push('worker')
          return []
        },
      }
    },
    (worker, error) => state.detours.push([worker, ((error as DatabaseAway).cause as Error).message]),
  )
  const flush = () => pool.query(FLUSH, [PROJECT])
  const flushUntilDirect = () =>
    vi.waitFor(async () => {
      await flush()
      expect(state.sent.at(-1)).toBe('worker')
    })
  return { state, coordinator, pool, flush, flushUntilDirect }
}

describe('what may go straight to a worker of a cluster', () => {
  const DELETE = 'DELETE FROM sessions AS s WHERE s.project_id = $1'
  it.each([
    ['a stored function of a project', FLUSH, [PROJECT, 'data'], 'worker'],
    [
      'a read of a project',
      prepared('flush', 'SELECT FROM sessions WHERE project_id = $1'),
      [PROJECT],
      'worker',
    ],
    ['a deletion', prepared('flush', DELETE), [PROJECT], 'coordinator'],
    [
      'a read with a part that deletes',
      prepared('flush', `WITH x AS (${DELETE}) SELECT`),
      [PROJECT],
      'coordinator',
    ],
    ['a read of all projects', prepared('flush', 'SELECT FROM projects'), [], 'coordinator'],
    ['a read by a name', prepared('flush', 'SELECT FROM projects WHERE name = $1'), ['a'], 'coordinator'],
  ])('%s is sent to the right machine', async (_what, statement, parameters, machine) => {
    const { state, pool, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.sent.length = 0
    await pool.query(statement, parameters)
    expect(state.sent).toEqual([machine])
  })
})

describe('a read of a project whose tables are in braces', () => {
  const read = (text: string) => ofProject('flush', `${text} WHERE project_id = $1`)
  const BOTH = read('SELECT FROM {sessions} s JOIN {users} u USING (project_id)')

  it.each([
    ['has shards in their places', BOTH, 'sessions_102008 s JOIN users_102009 u'],
    [
      'is asked as it is if it also names a table itself',
      read('SELECT FROM {sessions} s, users'),
      'sessions s, users',
    ],
    [
      'may have the name of a table in a string',
      read("SELECT 'users' FROM {sessions}"),
      "'users' FROM sessions_102008",
    ],
    [
      'is asked as it is if a shard of it is not known',
      read('SELECT FROM {session_tags}'),
      'FROM session_tags WHERE',
    ],
  ])('%s', async (_what, statement, expected) => {
    const { state, pool, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    await pool.query(statement, [PROJECT])
    expect(state.texts.at(-1)).toContain(expected)
    expect(state.sent.at(-1)).toBe('worker')
  })

  it('is asked of the coordinator if its shards have been moved away, and then where they are', async () => {
    const { state, pool, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.fails = new NotFulfilled()
    state.sent.length = 0
    await pool.query(BOTH, [PROJECT])
    await pool.query(BOTH, [PROJECT])
    expect(state.sent).toEqual(['coordinator', 'coordinator'])
    state.fails = undefined
    await flushUntilDirect()
  })
})

describe('the appends of a cluster', () => {
  it('go straight to the worker that has their project, and through the coordinator until it is found', async () => {
    const { state, flush, flushUntilDirect, pool } = clusterOf()
    await flush()
    expect(state.sent).toEqual(['coordinator'])
    await flushUntilDirect()
    expect(state.urls).toEqual(['postgresql://annals:secret@worker-1:5432/annals?sslmode=require'])
    expect(state.detours).toEqual([])
    expect(pool.usage()).toEqual({ total: 2, idle: 2, waiting: 0 })
    expect([PROJECT, OTHER].map((project) => pool.machineOf?.(project))).toEqual(['worker-1:5432', undefined])
  })

  it('go through the coordinator while their worker cannot be reached, which is said once', async () => {
    const { state, flush, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.isUp = false
    for (let times = 0; times < 3; times++) {
      await flush()
      expect(state.sent.at(-1)).toBe('coordinator')
    }
    expect(state.detours).toEqual([['worker-1:5432', 'refused']])
  })

  it.each([
    ['another server than the coordinator has at this address', 'b'],
    ['the coordinator cannot reach it, either', null],
  ])('never go to what answers at the address of a worker, if they must say: %s', async (reason, seen) => {
    const { state, flush } = clusterOf()
    state.seen = seen
    await vi.waitFor(async () => {
      await flush()
      expect(state.detours).toEqual([['worker-1:5432', reason]])
    })
    expect(state.sent).not.toContain('worker')
  })

  it('go through the coordinator where the machine that had their project has left the cluster', async () => {
    const { state, flush, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.sent.length = 0
    state.fails = Object.assign(new Error('relation "session_heads" does not exist'), { code: '42P01' })
    await flush()
    expect(state.sent).toEqual(['coordinator'])
    expect(state.detours).toEqual([])
  })

  it('are refused once if the statement is', async () => {
    const { state, flush, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.sent.length = 0
    state.fails = Object.assign(new Error('duplicate key'), { code: '23505' })
    await expect(flush()).rejects.toBe(state.fails)
    expect(state.sent).toEqual([])
  })

  it('go straight to a worker with the user and password of a coordinator that is reached by a socket', async () => {
    const connectionString = 'postgresql://annals:secret@/annals?host=/run/postgresql'
    const { state, flushUntilDirect } = clusterOf({ distributed: true, connectionString })
    await flushUntilDirect()
    expect(state.urls).toEqual(['postgresql://annals:secret@worker-1:5432/annals'])
  })

  it('go straight to a worker that has started again', async () => {
    const { state, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.signature = state.seen = 'b'
    await flushUntilDirect()
    expect(state.detours).toEqual([])
  })

  it('are not sent a second time if they were sent, and ask again where their project is', async () => {
    const { state, flush, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.sent.length = 0
    state.fails = new DatabaseAway(true, new Error('broken off'))
    await expect(flush()).rejects.toBe(state.fails)
    expect(state.sent).toEqual([])
    state.fails = undefined
    await flush()
    expect(state.sent).toEqual(['coordinator'])
    await flushUntilDirect()
    expect(state.detours).toEqual([])
  })

  it('are not sent at all if they may no longer be', async () => {
    const { state, pool, flushUntilDirect } = clusterOf()
    await flushUntilDirect()
    state.sent.length = 0
    const late = new Error('too late')
    const sending = () => {
      throw late
    }
    await expect(pool.query(FLUSH, [PROJECT], sending)).rejects.toBe(late)
    expect(state.sent).toEqual([])
  })

  it.each([{}, { distributed: true, pooled: true }])('have one pool on a server like %j', (target) => {
    const { pool, coordinator } = clusterOf(target)
    expect(pool).toBe(coordinator)
  })
})
