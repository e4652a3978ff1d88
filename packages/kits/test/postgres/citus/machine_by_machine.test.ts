import { expect, it, vi } from 'vitest'
import { machineByMachine } from '../../../src/postgres/citus/machine_by_machine.ts'
import { DatabaseAway, type DatabasePool, type Parameter, type Row } from '../../../src/postgres/database.ts'
import { askingEveryProject, prepared } from '../../../src/postgres/statement.ts'

const [FIRST, SECOND] = ['0190a1b2-0000-7000-8000-000000000001', '0190a1b2-0000-7000-8000-000000000002']
const MACHINES = [
  { address: 'worker-1:5432', project_id: FIRST },
  { address: 'worker-2:5432', project_id: SECOND },
]
const TEXT =
  'SELECT w.id FROM {webhooks} w JOIN {sessions} s ON s.id = w.id WHERE w.id <> $1::text LIMIT $2::bigint'
const FIND = askingEveryProject(prepared, 'find_some', TEXT)
const shards = (...ids: string[][]) => JSON.stringify(ids.map((rows) => rows.map((id) => ({ id }))))

/** A cluster of two machines, each of which answers as told; all other statements are answered at once. */
function clusterOf(answers: Record<string, () => Promise<string>>, machines: Row[] = MACHINES) {
  const asked: Parameter[][] = []
  const away: string[] = []
  const pool = {
    query: async ({ name }: { name: string }, parameters: Parameter[]) => {
      if (name === 'list_machines') return machines
      if (name !== 'ask_machine') return [{ id: name }]
      asked.push(parameters)
      return [{ answer: await answers[parameters[0] as string]!() }]
    },
    distributed: true,
  } as unknown as DatabasePool
  const database = machineByMachine(pool, (machine) => away.push(machine), 20)
  return { asked, away, database, find: async () => idsOf(await database.query(FIND, ["o'clock", 2])) }
}

const idsOf = (rows: Row[]) => rows.map(({ id }) => id)

it('asks each machine for its shards, and takes their rows by turns', async () => {
  const { asked, away, database, find } = clusterOf({
    [FIRST]: async () => shards(['a', 'b', 'c'], ['d']),
    [SECOND]: async () => shards(['e', 'f']),
  })
  expect(await find()).toEqual(['a', 'd', 'e', 'b', 'f', 'c'])
  const values = ['{webhooks,sessions}', TEXT, `{"o'clock",2}`]
  expect(asked).toEqual([FIRST, SECOND].map((project) => [project, ...values]))
  expect(FIND.text).toBe(TEXT.replaceAll(/[{}]/g, ''))
  expect(away).toEqual([])
  expect(idsOf(await database.query(prepared('other', 'SELECT 1'), []))).toEqual(['other'])
  expect(database.distributed).toBe(true)
})

it('goes on with the others while a machine is away, and says so once', async () => {
  let isAway = true
  const { away, find } = clusterOf({
    [FIRST]: async () => {
      if (isAway) throw new DatabaseAway(false, new Error('refused'))
      return shards(['a'])
    },
    [SECOND]: async () => shards(['b']),
  })
  expect([await find(), await find()]).toEqual([['b'], ['b']])
  expect(away).toEqual(['worker-1:5432'])
  isAway = false
  expect(await find()).toEqual(['a', 'b'])
  isAway = true
  await find()
  expect(away).toEqual(['worker-1:5432', 'worker-1:5432'])
})

it('does not wait for a machine that hangs, nor ask it again meanwhile, and takes its answer when it has come', async () => {
  let resolve = (_: string) => {}
  const promise = new Promise<string>((done) => {
    resolve = done
  })
  const first = vi.fn(() => promise)
  const { away, find } = clusterOf({ [FIRST]: first, [SECOND]: async () => shards(['b']) })
  expect([await find(), await find()]).toEqual([['b'], ['b']])
  expect(first).toHaveBeenCalledOnce()
  expect(away).toEqual(['worker-1:5432'])
  resolve(shards(['a']))
  await vi.waitFor(async () => expect(await find()).toEqual(['a', 'b']))
  expect(first).toHaveBeenCalledOnce()
})

it('fails if no machine answers, and asks in one statement where the tables are not distributed', async () => {
  const refused = new DatabaseAway(false, new Error('refused'))
  const refuse = () => Promise.reject(refused)
  await expect(clusterOf({ [FIRST]: refuse, [SECOND]: refuse }).find()).rejects.toBe(refused)
  expect(await clusterOf({}, []).find()).toEqual(['find_some'])
})
