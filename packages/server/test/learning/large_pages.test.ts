import { expect, it } from 'vitest'
import { writtenInSql } from '../../../kits/src/lists/listed.ts'
import { readList } from '../../../kits/src/lists/read_list.ts'
import type { Queryable } from '../../../kits/src/postgres/database.ts'
import { findVersions } from '../../src/learning/statements/statements.ts'

const MEGABYTE = 1024 * 1024

it('versions of skills are read a few at a time, and only as many as there is memory for', async () => {
  const asked: number[] = []
  const query: Queryable['query'] = async ({ name }, parameters) => {
    if (name !== 'list_skill_versions') return [{ json: '{}' }]
    const rows = Number(parameters[4])
    asked.push(rows)
    const json = ' '.repeat(MEGABYTE)
    return Array.from({ length: rows }, (_, n) => ({ json, created_at: 'now', id: `${asked.length}.${n}` }))
  }
  const memory = {
    hold: async (bytes: number) => {
      if (bytes > 64 * MEGABYTE) throw new Error('no memory')
    },
  }
  const tenant = { database: { query }, project_id: 'p', memory }
  const page = { limit: 200, after: undefined }
  await expect(findVersions(tenant, 's', page)).rejects.toThrow('no memory')
  expect(asked.reduce((sum, rows) => sum + rows)).toBeLessThan(50)
  expect(await findVersions(tenant, 's', { ...page, limit: 10 })).toHaveLength(11)
})

it('rows of a list that are large because of what is escaped in them are read one by one', async () => {
  const query: Queryable['query'] = async (_statement, parameters) => {
    const rows = Number(parameters[3])
    if (rows > 5) return [{ id: '', created_at: '', json: null }]
    const column = (value: string) => Array(rows).fill(value).join('\x01')
    return [
      {
        id: column('i'),
        created_at: JSON.stringify(Array(rows).fill('2026-11-21T09:30:00.123456')),
        json: column('{}'),
      },
    ]
  }
  const statement = { name: 'list', text: '', prepared: true }
  const page = { statement, parameters: ['p', 'now', 'i', 12], listing: writtenInSql('') }
  expect(await readList({ database: { query }, project_id: 'p' }, page)).toHaveLength(12)
})
