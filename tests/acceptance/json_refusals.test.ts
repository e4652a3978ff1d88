import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const MIB = 1024 * 1024

const service = useSharedService()
let api: ApiClient
let sessionId: string

beforeAll(async () => {
  api = await service.newClient()
  sessionId = expectOk(await api.createSession({}), 201).id
})

const append = (rawBody: string | Buffer | string[]) =>
  api.request('POST', `/api/v1/session/${sessionId}/events`, { rawBody })
const appendData = (data: string) => append(`{"type":"a","data":${data}}`)

describe('what jsonb cannot hold is 400 with a JSON pointer to the place', () => {
  it.each<[string, string, string]>([
    ['U+0000', '{"text":"a\\u0000b"}', '/data/text'],
    ['U+0000 deep inside', '{"a":[0,{"b":["x","\\u0000"]}]}', '/data/a/1/b/1'],
    ['a lone high surrogate', '{"text":"\\ud800"}', '/data/text'],
    ['a lone low surrogate', '{"text":"x\\udc00y"}', '/data/text'],
    ['surrogates in the wrong order', '{"text":"\\ude00\\ud83d"}', '/data/text'],
    ['a high surrogate before a letter', '{"list":["ok","\\ud83dA"]}', '/data/list/1'],
    ['a number out of range', '{"n":1e200000}', '/data/n'],
    ['a negative number out of range', '{"a":{"n":-1e200000}}', '/data/a/n'],
    ['a number with an endless exponent', '{"n":1e99999999999999999999}', '/data/n'],
    ['a number too small', '{"n":1e-200000}', '/data/n'],
    ['a key with / and ~, escaped as pointers are', '{"a/b":{"c~d":"\\u0000"}}', '/data/a~1b/c~0d'],
    ['an empty key', '{"":"\\u0000"}', '/data/'],
    ['the second of two repeated keys', '{"a":"fine","a":"\\u0000"}', '/data/a'],
  ])('%s', async (_what, data, pointer) => {
    expectError(await appendData(data), 400, 'invalid_request', pointer)
  })

  it.each(['{"a\\u0000b":1}', '{"\\ud800":1}', '{"x":{"\\u0000":{}}}'])(
    'in a key as well: %s',
    async (data) => {
      expectError(await appendData(data), 400, 'invalid_request', '/data')
    },
  )

  it('10,000 levels of nesting', async () => {
    const lists = `{"deep":${'['.repeat(10_000)}${']'.repeat(10_000)}}`
    const objects = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
    for (const data of [lists, objects]) expectError(await appendData(data), 400, 'invalid_request', '/data')
    const configs = `{"configs":${objects.replaceAll('"a"', '""')}}`
    expectError(
      await api.request('POST', '/api/v1/session', { rawBody: configs }),
      400,
      'invalid_request',
      '/configs',
    )
  })

  it('a hundred thousand levels of nesting, with the process unharmed', async () => {
    const lists = `{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    expectError(await appendData(lists), 400, 'invalid_request')
    const open = await append('['.repeat(500_000))
    expect(open.status).toBe(400)
    expectOk(await appendData('{}'))
  })

  it('in configs and meta as well', async () => {
    for (const bad of ['"\\u0000"', '"\\ud800"', '1e200000']) {
      const session = await api.request('POST', '/api/v1/session', { rawBody: `{"configs":{"x":[${bad}]}}` })
      expectError(session, 400, 'invalid_request', '/configs/x/0')
      const space = await api.request('POST', '/api/v1/learning_spaces', { rawBody: `{"meta":{"x":${bad}}}` })
      expectError(space, 400, 'invalid_request', '/meta/x')
    }
  })

  it('in the text fields as well', async () => {
    for (const bad of ['\\u0000', 'a\\ud800']) {
      const session = await api.request('POST', '/api/v1/session', { rawBody: `{"user":"${bad}"}` })
      expectError(session, 400, 'invalid_request', 'user')
      expectError(await append(`{"type":"${bad}","data":{}}`), 400, 'invalid_request', 'type')
    }
    expectError(await api.request('GET', '/api/v1/session?user=%00'), 400, 'invalid_request', 'user')
    const events = api.request('GET', `/api/v1/session/${sessionId}/events?type=a%00`)
    expectError(await events, 400, 'invalid_request', 'type')
  })
})

describe('the size of a body', () => {
  const bodyOf = (bytes: number) => {
    const frame = '{"type":"large","data":{"text":""}}'
    return frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`)
  }

  it('may be 1 MiB', async () => {
    const body = bodyOf(MIB)
    expect(Buffer.byteLength(body)).toBe(MIB)
    expectOk(await append(body))
    const { items } = expectOk(await api.listEvents(sessionId, { type: 'large' }))
    expect(items.map((event) => event.data)).toEqual([JSON.parse(body).data])
  })

  it('counts bytes, not characters', async () => {
    const frame = '{"type":"emoji","data":{"text":""}}'
    const tooLarge = frame.replace('""', `"${'😀'.repeat(MIB / 4)}"`)
    expectError(await append(tooLarge), 413, 'payload_too_large')
  })

  it('of 1 MiB and one byte is 413', async () => {
    const before = expectOk(await api.listEvents(sessionId, { time_desc: true, limit: 1 })).items
    expectError(await append(bodyOf(MIB + 1)), 413, 'payload_too_large')
    expectError(
      await api.request('POST', '/api/v1/session', { rawBody: bodyOf(MIB + 1) }),
      413,
      'payload_too_large',
    )
    expect(expectOk(await api.listEvents(sessionId, { time_desc: true, limit: 1 })).items).toEqual(before)
  })

  it('over the limit is 413 also when it comes in chunks without a length', async () => {
    const chunk = ' '.repeat(64 * 1024)
    expectError(
      await append(['{"type":"a","data":{}', ...Array(17).fill(chunk), '}']),
      413,
      'payload_too_large',
    )
  })

  it('under the limit may come in chunks', async () => {
    const event = expectOk(await append(['{"type":"chu', 'nked","da', 'ta":{"a":', '1}}']))
    expect(event).toMatchObject({ type: 'chunked', data: { a: 1 } })
  })
})
