import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let api: ApiClient
let sessionId: string

beforeAll(async () => {
  api = await service.newClient()
  sessionId = expectOk(await api.createSession({}), 201).id
})

describe('the envelope', () => {
  it('is around every success: code 0, an empty error, msg ok, and data', async () => {
    expectOk(await api.getSession(sessionId))
    expectOk(await api.listSessions())
    expectOk(await api.appendEvent(sessionId, { type: 'note', data: {} }))
    expectOk(await api.listEvents(sessionId))
    expectOk(await api.createLearningSpace({}), 201)
  })

  it('holds an empty object where there is nothing to return', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    expect(expectOk(await api.deleteSession(id))).toEqual({})
  })

  it('says pong to a ping', async () => {
    const answer = await api.request('GET', '/api/v1/ping')
    expect(answer.status).toBe(200)
    expect(answer.json).toMatchObject({ code: 0, error: '', msg: 'pong' })
    expect(Object.keys(answer.json).sort()).toEqual(['code', 'data', 'error', 'msg'])
    expect(answer.json.data).toEqual({})
  })

  it('has no data in an error', async () => {
    expectError(await api.getSession(NOBODYS_ID), 404, 'session_not_found')
    expectError(await api.listSessions({ limit: 0 }), 400, 'invalid_request', 'limit')
    expectError(await service.rawClient().request('GET', '/api/v1/session'), 401, 'unauthorized')
  })
})

describe('a request body', () => {
  const create = (rawBody: string | Buffer) => api.request('POST', '/api/v1/session', { rawBody })
  const append = (rawBody: string | Buffer) =>
    api.request('POST', `/api/v1/session/${sessionId}/events`, { rawBody })

  it.each([
    '{',
    '{"user":}',
    "{'user':'a'}",
    '{"user":"a",}',
    'user=a',
    '{"user":"a"} x',
    '{"user":"\t"}',
    'NaN',
  ])('that is not JSON is invalid_json: %s', async (body) => {
    expectError(await create(body), 400, 'invalid_json')
    expectError(await append(body), 400, 'invalid_json')
  })

  it('that is not UTF-8 is invalid_json', async () => {
    const body = Buffer.concat([Buffer.from('{"type":"a","data":{"text":"'), Buffer.from([0xff, 0xfe, 0xc3])])
    expectError(await append(Buffer.concat([body, Buffer.from('"}}')])), 400, 'invalid_json')
    const surrogateBytes = Buffer.concat([body.subarray(0, -3), Buffer.from([0xed, 0xa0, 0x80])])
    expectError(await append(Buffer.concat([surrogateBytes, Buffer.from('"}}')])), 400, 'invalid_json')
  })

  it.each(['[]', '"text"', '5', 'true', 'null'])(
    'that is JSON but no object is invalid_request: %s',
    async (body) => {
      expectError(await create(body), 400, 'invalid_request')
      expectError(await append(body), 400, 'invalid_request')
      expectError(
        await api.request('POST', '/api/v1/learning_spaces', { rawBody: body }),
        400,
        'invalid_request',
      )
    },
  )

  it('of 0 bytes counts as none: an object without fields where that is allowed, else 400', async () => {
    expectOk(await create(''), 201)
    expectOk(await api.request('POST', '/api/v1/learning_spaces', { rawBody: '' }), 201)
    const answer = await append('')
    expect(answer.status).toBe(400)
    expect(['invalid_json', 'invalid_request']).toContain(answer.json.error)
  })

  it('may be left out where every field is optional', async () => {
    expectOk(await api.createSession(), 201)
    expectOk(await api.createLearningSpace(), 201)
  })

  it('with an unknown field is refused, and the field is named', async () => {
    const refused: Array<[string, string, string]> = [
      ['/api/v1/session', '{"usr":"a"}', 'usr'],
      ['/api/v1/session', `{"id":"${NOBODYS_ID}"}`, 'id'],
      ['/api/v1/session', '{"__proto__":{"user":"a"}}', '__proto__'],
      ['/api/v1/session', '{"constructor":1}', 'constructor'],
      [`/api/v1/session/${sessionId}/events`, '{"type":"a","data":{},"seq":1}', 'seq'],
      [`/api/v1/session/${sessionId}/events`, '{"type":"a","data":{},"__proto__":null}', '__proto__'],
      ['/api/v1/learning_spaces', '{"configs":{}}', 'configs'],
    ]
    for (const [path, rawBody, unknown] of refused) {
      expectError(await api.request('POST', path, { rawBody }), 400, 'invalid_request', unknown)
    }
  })

  it('in another media type is 415', async () => {
    const types = [
      'application/xml',
      'text/xml',
      'text/plain',
      'application/x-www-form-urlencoded',
      'nonsense',
    ]
    for (const type of types) {
      const options = { rawBody: '<session/>', headers: { 'Content-Type': type } }
      const answer = await api.request('POST', '/api/v1/session', options)
      expectError(answer, 415, 'unsupported_media_type')
    }
  })

  it('may name its charset in the content type', async () => {
    const headers = { 'Content-Type': 'application/json; charset=utf-8' }
    expectOk(await api.request('POST', '/api/v1/session', { rawBody: '{}', headers }), 201)
  })
})

describe('a resource that is not there', () => {
  const withoutRequestId = ({ status, headers, text }: Answer<unknown>) => {
    const { 'x-request-id': _id, date: _date, ...rest } = headers
    return { status, headers: rest, text }
  }

  it('and one of another project get the same answer to the byte, request id aside', async () => {
    const other = await service.newClient()
    const session = expectOk(await other.createSession({ user: 'somebody' }), 201)
    const askAll = async (id: string) => [
      await api.getSession(id),
      await api.deleteSession(id),
      await api.listEvents(id),
      await api.appendEvent(id, { type: 'note', data: {} }),
      await api.appendEvent(id, { type: 'note', data: {} }, { headers: { 'If-Match': '"0"' } }),
    ]
    const existing = await askAll(session.id)
    expectOk(await other.getSession(session.id))
    expectOk(await other.deleteSession(session.id))
    const absent = await askAll(session.id)
    for (const answer of existing) expectError(answer, 404, 'session_not_found')
    expect(existing.map(withoutRequestId)).toEqual(absent.map(withoutRequestId))
  })

  it('is learning_space_not_found for a learning space', async () => {
    expectError(await api.getLearningSpace(NOBODYS_ID), 404, 'learning_space_not_found')
  })
})
