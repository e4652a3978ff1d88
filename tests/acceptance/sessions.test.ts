import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const CONFIGS_BYTES_MAX = 64 * 1024

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const FIELDS = ['id', 'project_id', 'user_id', 'configs', 'disable_task_tracking', 'created_at', 'updated_at']

describe('creating a session', () => {
  it('answers 201 and the session, with defaults for what was not sent', async () => {
    const session = expectOk(await api.createSession({}), 201)
    expect(Object.keys(session).sort()).toEqual([...FIELDS].sort())
    expect(session).toMatchObject({
      id: expect.stringMatching(UUID),
      project_id: project.id,
      user_id: null,
      configs: {},
      disable_task_tracking: false,
      created_at: expect.stringMatching(TIMESTAMP),
      updated_at: expect.stringMatching(TIMESTAMP),
    })
    expect(session.id[14]).toBe('7')
  })

  it('keeps what was sent', async () => {
    const sent = {
      user: 'ada',
      configs: { model: 'm-1', tools: ['a', { b: null }] },
      disable_task_tracking: true,
    }
    const session = expectOk(await api.createSession(sent), 201)
    expect(session.configs).toEqual(sent.configs)
    expect(session.disable_task_tracking).toBe(true)
    expect(session.user_id).toMatch(UUID)
    expect(expectOk(await api.getSession(session.id))).toEqual(session)
  })

  it('takes its time from the clock', async () => {
    const before = Date.now()
    const session = expectOk(await api.createSession({}), 201)
    expect(Date.parse(session.created_at)).toBeGreaterThanOrEqual(before - 60_000)
    expect(Date.parse(session.created_at)).toBeLessThanOrEqual(Date.now() + 60_000)
  })

  it.each<[string, unknown, string]>([
    ['an empty user', { user: '' }, 'user'],
    ['a user of 257 characters', { user: 'u'.repeat(257) }, 'user'],
    ['a user that is a number', { user: 5 }, 'user'],
    ['a user that is an object', { user: { id: 'a' } }, 'user'],
    ['configs that are an array', { configs: [] }, 'configs'],
    ['configs that are a string', { configs: '{}' }, 'configs'],
    ['disable_task_tracking that is a string', { disable_task_tracking: 'true' }, 'disable_task_tracking'],
    ['disable_task_tracking that is a number', { disable_task_tracking: 1 }, 'disable_task_tracking'],
    ['a use_uuid that is none', { use_uuid: 'no-uuid' }, 'use_uuid'],
    ['a use_uuid without dashes', { use_uuid: NOBODYS_ID.replaceAll('-', '') }, 'use_uuid'],
    ['a use_uuid in braces', { use_uuid: `{${NOBODYS_ID}}` }, 'use_uuid'],
  ])('refuses %s and names the field', async (_case, body, field) => {
    expectError(await api.createSession(body), 400, 'invalid_request', field)
  })

  it('takes null for a field as one that was not sent', async () => {
    const nothing = { user: null, configs: null, disable_task_tracking: null, use_uuid: null }
    const session = expectOk(await api.createSession(nothing), 201)
    expect(session).toMatchObject({ user_id: null, configs: {}, disable_task_tracking: false })
  })

  it('takes a user of 256 characters, whatever they are', async () => {
    for (const user of ['u'.repeat(256), '😀'.repeat(256), ' ', "'; DROP TABLE users; --", '%', '../..']) {
      const session = expectOk(await api.createSession({ user }), 201)
      const found = expectOk(await api.listSessions({ user }))
      expect(found.items.map((item) => item.id)).toEqual([session.id])
    }
  })

  it('takes configs of 64 KiB, and one byte more is 413', async () => {
    const empty = JSON.stringify({ text: '' }).length
    const configs = { text: 'x'.repeat(CONFIGS_BYTES_MAX - empty) }
    const session = expectOk(await api.createSession({ configs }), 201)
    expect(session.configs).toEqual(configs)
    const tooLarge = { text: `${configs.text}x` }
    expectError(await api.createSession({ configs: tooLarge }), 413, 'payload_too_large', 'configs')
  })
})

describe('the users of sessions', () => {
  it('have one id each, the same in every session of theirs', async () => {
    const create = async (user: string) => expectOk(await api.createSession({ user }), 201).user_id
    const first = await create('grace')
    expect(await create('grace')).toBe(first)
    expect(await create('Grace')).not.toBe(first)
    expect(await create('grace ')).not.toBe(first)
  })

  it('are not shared between projects', async () => {
    const other = await service.newClient()
    const mine = expectOk(await api.createSession({ user: 'linus' }), 201)
    const theirs = expectOk(await other.createSession({ user: 'linus' }), 201)
    expect(theirs.user_id).not.toBe(mine.user_id)
  })

  it('are made once, however many requests use a new one at the same time', async () => {
    const node = service.secondNode
    const second = await service.newClient({ token: project.token, node })
    for (const user of ['new-1', 'new-2', 'new-3']) {
      const answers = Array.from({ length: 24 }, (_, index) =>
        (index % 2 ? api : second).createSession({ user }),
      )
      const ids = (await Promise.all(answers)).map((answer) => expectOk(answer, 201).user_id)
      expect(new Set(ids).size).toBe(1)
    }
  })
})

describe('a session id', () => {
  it('in upper case is the same session, and comes back in lower case', async () => {
    const session = expectOk(await api.createSession({}), 201)
    expect(expectOk(await api.getSession(session.id.toUpperCase()))).toEqual(session)
    const event = expectOk(await api.appendEvent(session.id.toUpperCase(), { type: 'note', data: {} }))
    expect(event.session_id).toBe(session.id)
    expect(expectOk(await api.listEvents(session.id.toUpperCase())).items).toEqual([event])
  })

  it.each([
    NOBODYS_ID.replaceAll('-', ''),
    `{${NOBODYS_ID}}`,
    `${NOBODYS_ID}0`,
    NOBODYS_ID.slice(0, -1),
    NOBODYS_ID.replace('0', 'g'),
    'x',
    '1',
    '%20',
    "'",
    '%00',
  ])('that is not a UUID is 400 and named: %s', async (id) => {
    expectError(await api.getSession(id), 400, 'invalid_request', 'session_id')
    expectError(await api.deleteSession(id), 400, 'invalid_request', 'session_id')
    expectError(await api.listEvents(id), 400, 'invalid_request', 'session_id')
    const body = { type: 'note', data: {} }
    expectError(await api.appendEvent(id, body), 400, 'invalid_request', 'session_id')
  })

  it('that nobody has is 404', async () => {
    for (const id of [NOBODYS_ID, randomUUID(), '00000000-0000-0000-0000-000000000000']) {
      expectError(await api.getSession(id), 404, 'session_not_found')
      expectError(await api.deleteSession(id), 404, 'session_not_found')
      expectError(await api.listEvents(id), 404, 'session_not_found')
      expectError(await api.appendEvent(id, { type: 'note', data: {} }), 404, 'session_not_found')
    }
  })
})

describe('deleting a session', () => {
  it('takes it and its log away, for good', async () => {
    const session = expectOk(await api.createSession({ user: 'temporary' }), 201)
    expectOk(await api.appendEvent(session.id, { type: 'note', data: {} }))
    expect(expectOk(await api.deleteSession(session.id))).toEqual({})
    expectError(await api.getSession(session.id), 404, 'session_not_found')
    expectError(await api.listEvents(session.id), 404, 'session_not_found')
    expectError(await api.appendEvent(session.id, { type: 'note', data: {} }), 404, 'session_not_found')
    expectError(await api.deleteSession(session.id), 404, 'session_not_found')
    expect(expectOk(await api.listSessions({ user: 'temporary' })).items).toEqual([])
  })

  it('leaves nothing to a session made anew with the same id', async () => {
    const use_uuid = randomUUID()
    expectOk(await api.createSession({ use_uuid, configs: { a: 1 } }), 201)
    expectOk(await api.appendEvent(use_uuid, { type: 'old', data: {} }))
    expectOk(await api.deleteSession(use_uuid))
    expect(expectOk(await api.createSession({ use_uuid }), 201).configs).toEqual({})
    expect(expectOk(await api.listEvents(use_uuid)).items).toEqual([])
    expect(expectOk(await api.appendEvent(use_uuid, { type: 'new', data: {} })).seq).toBe(1)
  })
})
