import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const META_BYTES_MAX = 64 * 1024

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

describe('creating a learning space', () => {
  it('takes no body at all, or an empty object', async () => {
    for (const body of [undefined, {}]) {
      const space = expectOk(await api.createLearningSpace(body), 201)
      expect(space).toEqual({
        id: expect.stringMatching(UUID),
        user_id: null,
        meta: {},
        created_at: expect.stringMatching(TIMESTAMP),
        updated_at: space.created_at,
      })
    }
  })

  it('keeps its user and its meta', async () => {
    const meta = { topic: 'flights', nested: { a: [1, null, '😀'] } }
    const created = await api.createLearningSpace({ user: 'ada', meta })
    const space = expectOk(created, 201)
    expect(created.text).toContain(`"data":{"id":"${space.id}","user_id":"${space.user_id}","meta":{`)
    expect(space.meta).toEqual(meta)
    const session = expectOk(await api.createSession({ user: 'ada' }), 201)
    expect(space.user_id).toBe(session.user_id)
    expect(expectOk(await api.getLearningSpace(space.id))).toEqual(space)
    expect(expectOk(await api.getLearningSpace(space.id.toUpperCase()))).toEqual(space)
  })

  it.each<[string, unknown, string]>([
    ['an unknown field', { name: 'x' }, 'name'],
    ['an empty user', { user: '' }, 'user'],
    ['a user that is a number', { user: 1 }, 'user'],
    ['a user of 257 characters', { user: 'u'.repeat(257) }, 'user'],
    ['meta that is an array', { meta: [] }, 'meta'],
    ['meta that is a string', { meta: 'x' }, 'meta'],
  ])('refuses %s and names the field', async (_case, body, field) => {
    expectError(await api.createLearningSpace(body), 400, 'invalid_request', field)
  })

  it('takes null for a field as one that was not sent', async () => {
    const space = expectOk(await api.createLearningSpace({ user: null, meta: null }), 201)
    expect(space).toMatchObject({ user_id: null, meta: {} })
  })

  it('takes meta of 64 KiB, and one byte more is 413', async () => {
    const meta = { text: 'x'.repeat(META_BYTES_MAX - JSON.stringify({ text: '' }).length) }
    expectOk(await api.createLearningSpace({ meta }), 201)
    const tooLarge = { text: `${meta.text}x` }
    expectError(await api.createLearningSpace({ meta: tooLarge }), 413, 'payload_too_large', 'meta')
  })

  it('with an Idempotency-Key happens once', async () => {
    const options = { headers: { 'Idempotency-Key': 'space-1' } }
    const first = await api.createLearningSpace({ user: 'bob' }, options)
    expectOk(first, 201)
    const calls = Array.from({ length: 10 }, () => api.createLearningSpace({ user: 'bob' }, options))
    for (const again of await Promise.all(calls)) {
      expect([again.status, again.text]).toEqual([201, first.text])
      expect(again.headers['idempotent-replayed']).toBe('true')
    }
    const other = await api.createLearningSpace({ user: 'bob', meta: { a: 1 } }, options)
    expectError(other, 422, 'idempotency_key_reused')
    const withoutBody = { headers: { 'Idempotency-Key': 'space-2' } }
    const empty = await api.createLearningSpace(undefined, withoutBody)
    expect((await api.createLearningSpace(undefined, withoutBody)).text).toBe(empty.text)
  })

  it('with an Idempotency-Key that is no key is 400', async () => {
    for (const key of ['', 'k'.repeat(256)]) {
      const answer = await api.createLearningSpace({}, { headers: { 'Idempotency-Key': key } })
      expectError(answer, 400, 'invalid_request', 'Idempotency-Key')
    }
  })
})

describe('a learning space', () => {
  it('of another project is as one that does not exist', async () => {
    const other = await service.newClient()
    const space = expectOk(await other.createLearningSpace({}), 201)
    const theirs = await api.getLearningSpace(space.id)
    expectError(theirs, 404, 'learning_space_not_found')
    const absent = await api.getLearningSpace(NOBODYS_ID)
    expectError(absent, 404, 'learning_space_not_found')
    expect(theirs.text.replaceAll(space.id, NOBODYS_ID)).toBe(absent.text)
  })

  it('with an id that is none is 400', async () => {
    for (const id of ['x', NOBODYS_ID.replaceAll('-', ''), '%00']) {
      expectError(await api.getLearningSpace(id), 400, 'invalid_request', 'learning_space_id')
    }
  })
})
