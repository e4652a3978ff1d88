import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const CONFIGS: Record<string, Record<string, unknown>> = {
  empty: {},
  flat: { model: 'm-1', reward: 1 },
  otherCase: { Model: 'm-1', model: 'M-1' },
  types: { reward: '1', flag: true, nothing: null },
  nested: { agent: { name: 'a', tools: { search: { on: true, limit: 5 } } } },
  list: { tags: ['x', 'y', { z: [1, 2] }] },
  unicode: { 'schlüssel 🔑': 'wert 😀', '\u202e': 'right to left', quote: '"\\' },
  odd: { '': 'empty key', 'a.b': 1, __proto__x: 2, $ne: 3 },
}

const service = useSharedService()
let api: ApiClient
const nameOf = new Map<string, string>()

beforeAll(async () => {
  api = await service.newClient()
  for (const [name, configs] of Object.entries(CONFIGS)) {
    nameOf.set(expectOk(await api.createSession({ user: name, configs }), 201).id, name)
  }
})

async function found(filter: unknown): Promise<string[]> {
  const text = typeof filter === 'string' ? filter : JSON.stringify(filter)
  const { items } = expectOk(await api.listSessions({ filter_by_configs: text }))
  return items.map((session) => nameOf.get(session.id)!)
}

describe('filter_by_configs', () => {
  it('finds a value at the top level, one of its type and case only', async () => {
    expect(await found({ model: 'm-1' })).toEqual(['flat'])
    expect(await found({ model: 'M-1' })).toEqual(['otherCase'])
    expect(await found({ reward: 1 })).toEqual(['flat'])
    expect(await found('{"reward":1.0}')).toEqual(['flat'])
    expect(await found({ reward: '1' })).toEqual(['types'])
    expect(await found({ flag: true })).toEqual(['types'])
    expect(await found({ flag: 'true' })).toEqual([])
    expect(await found({ nothing: null })).toEqual(['types'])
    expect(await found({ absent: null })).toEqual([])
  })

  it('wants all of what it names', async () => {
    expect(await found({ model: 'm-1', reward: 1 })).toEqual(['flat'])
    expect(await found({ model: 'm-1', reward: 2 })).toEqual([])
  })

  it('reaches into nested objects', async () => {
    expect(await found({ agent: {} })).toEqual(['nested'])
    expect(await found({ agent: { name: 'a' } })).toEqual(['nested'])
    expect(await found({ agent: { tools: { search: { on: true } } } })).toEqual(['nested'])
    expect(await found({ agent: { tools: { search: { on: false } } } })).toEqual([])
    expect(await found({ tools: { search: { on: true } } })).toEqual([])
  })

  it('reaches into lists as PostgreSQL does: each wanted element is contained in some element', async () => {
    expect(await found({ tags: [] })).toEqual(['list'])
    expect(await found({ tags: ['y'] })).toEqual(['list'])
    expect(await found({ tags: ['y', 'x', 'x'] })).toEqual(['list'])
    expect(await found({ tags: [{ z: [2] }] })).toEqual(['list'])
    expect(await found({ tags: ['x', 'w'] })).toEqual([])
    expect(await found({ tags: 'x' })).toEqual([])
    expect(await found({ tags: {} })).toEqual([])
  })

  it('finds any key and any text', async () => {
    expect(await found({ 'schlüssel 🔑': 'wert 😀' })).toEqual(['unicode'])
    expect(await found('{"schl\\u00fcssel \\ud83d\\udd11":"wert \\ud83d\\ude00"}')).toEqual(['unicode'])
    expect(await found({ '\u202e': 'right to left' })).toEqual(['unicode'])
    expect(await found({ quote: '"\\' })).toEqual(['unicode'])
    expect(await found({ '': 'empty key' })).toEqual(['odd'])
    expect(await found({ 'a.b': 1 })).toEqual(['odd'])
    expect(await found({ $ne: 3 })).toEqual(['odd'])
    expect(await found('{"__proto__":{}}')).toEqual([])
    expect(await found('{"reward":2,"reward":1}')).toEqual(['flat'])
  })

  it('keeps every digit of a number', async () => {
    const send = (digits: string) =>
      api.request('POST', '/api/v1/session', { rawBody: `{"configs":{"exact":${digits}}}` })
    expectOk(await send('9007199254740993'), 201)
    const filtered = async (digits: string) =>
      expectOk(await api.listSessions({ filter_by_configs: `{"exact":${digits}}` })).items.length
    expect(await filtered('9007199254740993')).toBe(1)
    expect(await filtered('9007199254740992')).toBe(0)
  })

  it.each(['{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"a":1e200000}', '{"a\\u0000":1}'])(
    'that no jsonb can hold is 400: %s',
    async (filter) => {
      const answer = await api.listSessions({ filter_by_configs: filter })
      expectError(answer, 400, 'invalid_request', 'filter_by_configs')
    },
  )
})
