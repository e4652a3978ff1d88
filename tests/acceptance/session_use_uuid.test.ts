import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

describe('creating a session with use_uuid', () => {
  it('stores that id in lower case', async () => {
    const use_uuid = randomUUID()
    expect(expectOk(await api.createSession({ use_uuid: use_uuid.toUpperCase() }), 201).id).toBe(use_uuid)
  })

  it('a second time answers 200 and the session that is there', async () => {
    const sent = {
      use_uuid: randomUUID(),
      user: 'ada',
      configs: { a: 1.0, b: [true] },
      disable_task_tracking: true,
    }
    const first = expectOk(await api.createSession(sent), 201)
    expect(expectOk(await api.createSession(sent), 200)).toEqual(first)
    expect(expectOk(await api.listSessions({ user: 'ada' })).items).toEqual([first])
  })

  it('a second time agrees when a part of what it has is sent', async () => {
    const use_uuid = randomUUID()
    const first = expectOk(await api.createSession({ use_uuid, user: 'bob', configs: { a: 1 } }), 201)
    expect(expectOk(await api.createSession({ use_uuid }), 200)).toEqual(first)
    expect(expectOk(await api.createSession({ use_uuid, user: 'bob' }), 200)).toEqual(first)
    expect(expectOk(await api.createSession({ use_uuid, configs: { a: 1 } }), 200)).toEqual(first)
  })

  it.each<[string, object]>([
    ['other configs', { configs: { a: 2 } }],
    ['configs with less', { configs: {} }],
    ['another user', { user: 'someone else' }],
    ['another disable_task_tracking', { disable_task_tracking: true }],
  ])('a second time with %s is 409 and changes nothing', async (_case, difference) => {
    const sent = { use_uuid: randomUUID(), user: 'carol', configs: { a: 1 } }
    const first = expectOk(await api.createSession(sent), 201)
    expectError(await api.createSession({ ...sent, ...difference }), 409, 'session_exists')
    expect(expectOk(await api.getSession(first.id))).toEqual(first)
  })

  it('that conflicts makes no user', async () => {
    const use_uuid = randomUUID()
    expectOk(await api.createSession({ use_uuid, user: 'dora' }), 201)
    expectError(await api.createSession({ use_uuid, user: 'never seen' }), 409, 'session_exists')
    expectOk(await api.getSession(use_uuid))
    expect(expectOk(await api.listSessions({ user: 'never seen' })).items).toEqual([])
  })

  it('of a session of another project makes one here and touches the other not', async () => {
    const other = await service.newClient()
    const use_uuid = randomUUID()
    const theirs = expectOk(await other.createSession({ use_uuid, configs: { whose: 'theirs' } }), 201)
    const mine = expectOk(await api.createSession({ use_uuid, configs: { whose: 'mine' } }), 201)
    expect(mine.project_id).toBe(project.id)
    expectOk(await api.appendEvent(use_uuid, { type: 'note', data: {} }))
    expectOk(await api.deleteSession(use_uuid))
    expect(expectOk(await other.getSession(use_uuid))).toEqual(theirs)
    expect(expectOk(await other.listEvents(use_uuid)).items).toEqual([])
  })

  it('from many callers at once makes one session', async () => {
    const node = service.secondNode
    const second = await service.newClient({ token: project.token, node })
    const sent = { use_uuid: randomUUID(), user: 'erin', configs: { a: 1 } }
    const calls = Array.from({ length: 24 }, (_, index) => (index % 2 ? api : second).createSession(sent))
    const answers = await Promise.all(calls)
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(23).fill(200), 201])
    expect(new Set(answers.map((answer) => JSON.stringify(answer.json.data))).size).toBe(1)
  })
})

describe('creating a session with an Idempotency-Key', () => {
  it('a second time answers the first session again', async () => {
    const options = { headers: { 'Idempotency-Key': 'create-1' } }
    const first = await api.createSession({ user: 'frank', configs: { a: 1 } }, options)
    const again = await api.createSession({ user: 'frank', configs: { a: 1 } }, options)
    expectOk(first, 201)
    expect(first.headers['idempotent-replayed']).toBeUndefined()
    expect([again.status, again.text]).toEqual([201, first.text])
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(expectOk(await api.listSessions({ user: 'frank' })).items).toHaveLength(1)
  })

  it('and another body is 422', async () => {
    const options = { headers: { 'Idempotency-Key': 'create-2' } }
    expectOk(await api.createSession({ configs: { a: 1 } }, options), 201)
    expectError(await api.createSession({ configs: { a: 2 } }, options), 422, 'idempotency_key_reused')
    const elsewhere = api.createLearningSpace({}, options)
    expectError(await elsewhere, 422, 'idempotency_key_reused')
  })

  it('from many callers at once makes one session', async () => {
    const options = { headers: { 'Idempotency-Key': 'create-3' } }
    const calls = Array.from({ length: 20 }, () => api.createSession({ user: 'gina' }, options))
    const texts = (await Promise.all(calls)).map((answer) => answer.text)
    expect(new Set(texts).size).toBe(1)
    expect(expectOk(await api.listSessions({ user: 'gina' })).items).toHaveLength(1)
  })
})
