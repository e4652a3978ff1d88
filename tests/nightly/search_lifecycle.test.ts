import { readdir, readFile } from 'node:fs/promises'
import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { newSearchingProjects, placesOf, untilIndexed } from '../harness/search.ts'
import { type Project, useService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { verifyDatabase } from '../harness/verification.ts'

/* What becomes of the index in an export, an import and a verification. */

const service = useService()
const transfers = useTransfers(service)
let project: Project
let api: ApiClient
let session: string

const searching: Project[] = []

beforeAll(async () => {
  searching.push(...(await newSearchingProjects(service, 9)))
})

/** A project that searches, with a session of three indexed entries. */
beforeEach(async () => {
  project = searching.pop()!
  api = await service.newClient({ token: project.token })
  session = expectOk(await api.createSession(), 201).id
  for (const text of ['one refund', 'two', 'three'])
    expectOk(await api.appendEvent(session, { type: 'n', data: { text } }))
  await untilIndexed(api)
})

const found = async () =>
  (await verifyDatabase(service.databaseUrl, '--project', project.name)).findings.map(({ check }) => check)

describe('the index of words', () => {
  it('is not exported, and an import is indexed where the project searches', async () => {
    const { path, body } = await transfers.export(project.name)
    expect(body.some((line) => line.includes('search'))).toBe(false)
    const copy = searching.pop()!
    await transfers.import(path, copy.name)
    const other = await service.newClient({ token: copy.token })
    await untilIndexed(other)
    expect(await placesOf(other, 'refund')).toEqual([`${session} 1`])
  })

  it('is made anew, without anybody asking, by a migration that changes what it is made of', async (context) => {
    context.skip(inject('testServer').mode === 'shared', 'it empties the index of all projects')
    const migrations = new URL('../../packages/server/migrations/', import.meta.url)
    const file = (await readdir(migrations)).find((name) => name.endsWith('search_index_of_runs.sql'))!
    const sql = await readFile(new URL(file, migrations), 'utf8')
    await execute(service.databaseUrl, 'TRUNCATE search_entries')
    await execute(service.databaseUrl, sql.slice(sql.indexOf('DELETE FROM search_segments')))
    await untilIndexed(api)
    expect(await placesOf(api, 'refund -two')).toEqual([`${session} 1`])
    expect(await found()).toEqual([])
  })

  it('is divided right after what a segment has, however far it lags behind the log', async () => {
    const segments = (statement: string) => queryRows(service.databaseUrl, statement, [project.id])
    await segments('UPDATE search_segments SET entries = 16384 WHERE project_id = $1')
    const { created_at } = expectOk(await api.appendEvent(session, { type: 'n', data: { text: 'four' } }))
    await untilIndexed(api)
    expect(
      await segments(
        `SELECT s.segment, s.begins_at = $2::timestamptz + interval '1 microsecond' AS is_right_behind
         FROM search_segments s WHERE s.project_id = $1 AND s.segment > 0`.replace('$2', `'${created_at}'`),
      ),
    ).toEqual([{ segment: 1, is_right_behind: true }])
    expectOk(await api.appendEvent(session, { type: 'n', data: { text: 'five' } }))
    await untilIndexed(api)
    expect(await placesOf(api, 'n')).toHaveLength(5)
    expect(await found()).toEqual([])
  })

  it('finds the same in sessions that are too long to be searched at once', async () => {
    const chosen = expectOk(await api.createSession({ configs: { a: 1 } }), 201).id
    for (const id of [chosen, chosen, session])
      expectOk(await api.appendEvent(id, { type: 'n', data: { text: 'another refund' } }))
    await untilIndexed(api)
    const narrowed = () =>
      Promise.all(
        [{ session_id: session }, { filter_by_configs: '{"a":1}' }, { session_id: chosen, limit: 1 }].map(
          (query) => placesOf(api, 'refund', query),
        ),
      )
    const places = await narrowed()
    expect(places).toEqual([
      [`${session} 4`, `${session} 1`],
      [`${chosen} 2`, `${chosen} 1`],
      [`${chosen} 2`],
    ])
    const lengthen = 'UPDATE session_heads SET last_seq = last_seq + 1000000 WHERE project_id = $1'
    await execute(service.databaseUrl, lengthen, [project.id])
    expect(await narrowed()).toEqual(places)
  })

  it.each([
    ['session_unsearched', 'DELETE FROM search_entries WHERE project_id = $1 AND last_seq = 3'],
    ['search_entry_stray', 'UPDATE search_entries SET last_seq = 9 WHERE project_id = $1 AND last_seq = 3'],
    [
      'search_entry_misplaced',
      'UPDATE search_entries SET segment = 7 WHERE project_id = $1 AND last_seq = 3',
    ],
    [
      'search_vector_stray',
      `INSERT INTO search_vectors (project_id, session_id, seq, happened_at, model, label, sketch, vector)
       SELECT project_id, session_id, 99, now(), 'a-model', '@user', B'1', ARRAY[1.0]
       FROM search_entries WHERE project_id = $1 AND last_seq = 3`,
    ],
  ])('is verified: %s', async (check, damage) => {
    expect(await found()).toEqual([])
    await execute(service.databaseUrl, damage, [project.id])
    expect(await found()).toEqual([check])
  })
})
