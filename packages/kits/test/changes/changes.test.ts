import { pino } from 'pino'
import { expect, it, vi } from 'vitest'
import { Changes } from '../../src/changes/changes.ts'
import type { Consumer } from '../../src/changes/consumer.ts'
import type { Database, Parameter } from '../../src/postgres/database.ts'
import type { Statement } from '../../src/postgres/statement.ts'

const consumer: Consumer = {
  name: 'test',
  sessions_max: 1,
  readsEntries: false,
  consume: async () => undefined,
  erase: [],
}

it('a consumer that cannot be taken apart in one project keeps no other from being taken apart', async () => {
  const begun = new Set<Parameter>()
  const scans = ['failing', 'sound'].map((project_id) => ({ project_id, consumer: 'test', retires: 't' }))
  const query = async ({ name }: Statement, [project_id]: readonly Parameter[]) => {
    if (name === 'has_consumers') return [{ id: 'sound' }]
    if (name === 'find_scans') return scans
    if (name !== 'retire_consumer') return []
    if (project_id === 'failing') throw new Error('it cannot be taken apart')
    begun.add(project_id!)
    return []
  }
  const changes = new Changes({
    database: { query } as unknown as Database,
    abort: new AbortController(),
    consumers: [consumer],
    logger: pino({ enabled: false }),
    settle_s: 1,
    poll_ms: 10,
  })
  await vi.waitFor(() => expect([...begun]).toEqual(['sound']))
  await changes.stop()
})

it('projects whose consumers were asked for once are forgotten, however many there were', async () => {
  const query = async ({ name }: Statement) =>
    name === 'has_consumers' || name === 'find_scans' || name === 'find_marks'
      ? []
      : [{ is_ready: 't', ready: 't', sessions_scanned: '0' }]
  const database = { query } as unknown as Database
  const changes = new Changes({
    database,
    abort: new AbortController(),
    consumers: [consumer],
    logger: pino({ enabled: false }),
    settle_s: 1,
    poll_ms: 10,
    ready_ms: 50,
  })
  for (let project = 0; project < 100; project += 1)
    await changes.prepare({ database, project_id: `project ${project}` }, 'test')
  await vi.waitFor(() => expect(changes.readyConsumers).toBe(0))
  await changes.stop()
})
