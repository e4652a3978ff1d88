import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { readConfig } from '../../packages/kits/src/configuration/config.ts'
import { describeApi } from '../../packages/openapi/src/describe_api.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { type Service, startService } from '../../packages/server/src/service/service.ts'
import { NOTES_MODULE } from '../fixtures/notes/module.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/*
 * A resource is a folder (tests/fixtures/notes), a migration (its notes.sql) and a line in the list of modules.
 * tests/database/module_registry.test.ts shows its erasure, export, import and verification.
 */
const MODULES_WITH_NOTES = [...MODULES, NOTES_MODULE]
const API_KEY = 'a-key-for-the-service-of-this-file-alone'

describe.skipIf(inject('testServer').mode === 'shared')('a resource of its own', () => {
  let own: TestDatabase
  let service: Service
  beforeAll(async () => {
    own = await createTestDatabase()
    await execute(own.url, readFileSync(new URL('../fixtures/notes/notes.sql', import.meta.url), 'utf8'))
    const config = readConfig({
      PORT: '0',
      DATABASE_URL: own.url,
      ANNALS_API_KEY: API_KEY,
      LOG_LEVEL: 'fatal',
    })
    service = await startService(config, () => {}, undefined, MODULES_WITH_NOTES)
  })
  afterAll(async () => {
    await service?.stop()
    await own?.drop()
  })

  async function send(method: string, path: string, body?: object) {
    const answer = await fetch(`${service.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${API_KEY}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return {
      status: answer.status,
      ...((await answer.json()) as {
        data: { id: string; deleted: object }
        error: string
      }),
    }
  }

  it('is created and listed, refuses what its schema does not allow, and goes with its session', async () => {
    const { data: session } = await send('POST', '/session', { user: 'ada' })
    const notes = `/session/${session.id}/notes`
    expect(await send('POST', notes, { n: 1, text: 'one' })).toMatchObject({
      status: 201,
      data: { n: 1, text: 'one' },
    })
    expect(await send('POST', notes, { n: 0, text: 'zero' })).toMatchObject({
      status: 400,
      error: 'invalid_request',
    })
    expect(await send('POST', notes, { n: 2, text: 'two', by: 'ada' })).toMatchObject({ status: 400 })
    expect((await send('GET', notes)).data).toEqual({ items: [{ n: 1, text: 'one', extra: null }] })
    const { data: erased } = await send('DELETE', '/user/ada')
    expect(erased.deleted).toMatchObject({ sessions: 1, notes: 1 })
    expect(await send('POST', notes, { n: 3, text: 'three' })).toMatchObject({
      status: 404,
      error: 'session_not_found',
    })
  })

  it('hears of changed sessions', async () => {
    const { data: session } = await send('POST', '/session', {})
    const notes = `/session/${session.id}/notes`
    await send('POST', notes, { n: 1, text: 'one' })
    for (const n of [1, 2, 3])
      expect(
        await send('POST', `/session/${session.id}/events`, { type: 'step', data: { n } }),
      ).toMatchObject({ data: { seq: n } })
    await vi.waitFor(
      async () =>
        expect((await send('GET', notes)).data).toEqual({
          items: [{ n: 1, text: 'one', extra: { seq: 3 } }],
        }),
      { timeout: 30_000 },
    )
  })

  it('is described', async () => {
    const { paths, components } = (await describeApi(MODULES_WITH_NOTES as never)) as {
      paths: Record<string, object>
      components: { schemas: Record<string, object> }
    }
    expect(Object.keys(paths['/api/v1/session/{session_id}/notes']!)).toEqual(['post', 'get'])
    expect(components.schemas.Note).toMatchObject({ properties: { text: { type: 'string' } } })
  })
})
