import type { FastifyRequest } from 'fastify'
import { expect, it } from 'vitest'
import type { SharedDatabase } from '../../../kits/src/postgres/database.ts'
import { NotedReads } from '../../src/audit/noted_reads.ts'

it('a project that lists more sessions than can wait loses its own reads, and no other project its', async () => {
  const written: string[] = []
  const query = async ({ name }: { name: string }, [project]: unknown[]) => {
    if (name.startsWith('add')) written.push(project as string)
    return [{ seq: '0' }]
  }
  let lost = 0
  const database = { of: () => ({ query }) } as unknown as SharedDatabase
  const reads = new NotedReads(database, (count) => {
    lost += count
  })
  const from = (project_id: string) =>
    ({ project_id, grant: { key_id: 'key', scopes: new Set(['read']) } }) as unknown as FastifyRequest
  for (let n = 0; n < 120_000; n += 1) reads.note(from('flood'), `session ${n}`, 'listed')
  for (let n = 0; n < 1_000; n += 1) reads.note(from('other'), `session ${n}`, 'content')
  await reads.write()
  expect(written).toContain('other')
  expect(lost).toBe(70_000)
})
