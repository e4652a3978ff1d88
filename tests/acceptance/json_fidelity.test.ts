import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let api: ApiClient
let sessionId: string

beforeAll(async () => {
  api = await service.newClient()
  sessionId = expectOk(await api.createSession({}), 201).id
})

/** Stores the JSON text in every place that takes an object, and compares what each answer gives back. */
async function expectKept(text: string): Promise<void> {
  const sent = exactJson(text)
  const event = await api.request('POST', `/api/v1/session/${sessionId}/events`, {
    rawBody: `{"type":"exact","data":${text}}`,
  })
  expectOk(event)
  expect(exactAt(event.text, 'data', 'data')).toEqual(sent)
  const newest = await api.listEvents(sessionId, { limit: 1, time_desc: true })
  expect(exactAt(newest.text, 'data', 'items')).toEqual([expect.objectContaining({ $data: sent })])

  const session = await api.request('POST', '/api/v1/session', { rawBody: `{"configs":${text}}` })
  const { id } = expectOk(session, 201) as { id: string }
  expect(exactAt(session.text, 'data', 'configs')).toEqual(sent)
  expect(exactAt((await api.getSession(id)).text, 'data', 'configs')).toEqual(sent)
  const listed = await api.listSessions({ time_desc: true, limit: 1 })
  expect(exactAt(listed.text, 'data', 'items')).toEqual([expect.objectContaining({ $configs: sent })])

  const space = await api.request('POST', '/api/v1/learning_spaces', { rawBody: `{"meta":${text}}` })
  expect(exactAt(space.text, 'data', 'meta')).toEqual(sent)
  const again = await api.getLearningSpace((expectOk(space, 201) as { id: string }).id)
  expect(exactAt(again.text, 'data', 'meta')).toEqual(sent)
}

describe('JSON comes back as it was sent', () => {
  it.each<[string, string]>([
    ['numbers beyond any float', '{"n": 12345678901234567890.123456789, "e": 1e400}'],
    ['integers beyond 2^53', '{"a":9007199254740993,"b":-9223372036854775809,"c":18446744073709551616}'],
    [
      'decimals that no float holds',
      '{"a":0.1000000000000000055511151231257827,"b":3.14159265358979323846264}',
    ],
    ['very small numbers', '{"a":1e-400,"b":-0.00000000000000000000000000000000000000000001,"c":5e-324}'],
    ['numbers in exponent spelling', '{"a":1E5,"b":1e+5,"c":1.5e-3,"d":-2.50e2,"e":100e-2}'],
    ['zeros', '{"a":0,"b":0.0,"c":0e10,"d":0.000}'],
    ['a number of 1,000 digits', `{"a":${'123456789'.repeat(111)}.${'987654321'.repeat(111)}}`],
    [
      'emoji and combined characters',
      '{"😀":"👩‍👩‍👧‍👦 e\u0301 é ﷽ 𝒳","\\ud83d\\ude00\\u00e9":"\\u2028\\u2029"}',
    ],
    [
      'control characters and escapes',
      '{"a":"\\u0001\\b\\f\\n\\r\\t\\u001f\\u007f\\"\\\\\\/","b":"\\\\u0000"}',
    ],
    [
      'keys that JavaScript treats specially',
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}}}',
    ],
    ['keys like those of the envelope', '{"toString":1,"hasOwnProperty":2,"data":3,"id":4,"code":5,"seq":6}'],
    ['keys that are empty or look like numbers', '{"":0,"2":"b","1":"a","-1":"c","01":"d"," ":1}'],
    ['every kind of value, nested', '{"a":[null,true,false,0,"",[],{},[[[{"b":[{}]}]]]],"c":null}'],
    ['insignificant space', ' {\n\t"a" :\r [ 1 , 2 ] } '],
    ['a byte order mark inside a string', '{"a":"\ufeffx","b":"\uffff"}'],
  ])('%s', async (_what, text) => {
    await expectKept(text)
  })

  it('with keys that JavaScript treats specially, in whatever is changed, merged, copied or converted', async () => {
    const special = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}},"toString":null}'
    const kept = exactJson('{"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}}}')
    const { id } = expectOk(await api.createSession({}), 201)
    const path = `/api/v1/session/${id}`
    const send = async (method: string, path: string, rawBody: string) => {
      const answer = await api.request<{ id: string; items: Array<{ id: string }> }>(method, path, {
        rawBody,
      })
      expect(answer.status, answer.text).toBeLessThan(300)
      return answer
    }
    const merged = await send('PATCH', `${path}/configs`, `{"configs":${special}}`)
    expect(exactAt(merged.text, 'data', 'configs')).toEqual(kept)
    await send('PUT', `${path}/configs`, `{"configs":${special}}`)
    expect(exactAt((await api.getSession(id)).text, 'data', 'configs')).toEqual(exactJson(special))
    const copied = await api.request<{ new_session_id: string }>('POST', `${path}/copy`)
    const { new_session_id } = expectOk(copied)
    expect(exactAt((await api.getSession(new_session_id)).text, 'data', 'configs')).toEqual(
      exactJson(special),
    )

    const space = expectOk(await api.createLearningSpace({}), 201)
    const changed = await send('PATCH', `/api/v1/learning_spaces/${space.id}`, `{"meta":${special}}`)
    expect(exactAt(changed.text, 'data', 'meta')).toEqual(kept)

    const blob = `{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}],"__proto__":{"a":1},"constructor":{"b":2}}`
    const entries = `{"entries":[{"kind":"message","format":"openai","blob":${blob},"meta":${special}},{"kind":"event","type":"t","data":${special}}]}`
    const [message] = (await send('POST', `${path}/entries`, entries)).json.data.items
    const meta = await send('PATCH', `${path}/messages/${message!.id}/meta`, `{"meta":${special}}`)
    expect(exactAt(meta.text, 'data', 'meta')).toEqual(kept)
    const timeline = await api.request('GET', `${path}/timeline`)
    expect(exactAt(timeline.text, 'data', 'items')).toEqual([
      expect.objectContaining({ $meta: kept, $blob: exactJson(blob) }),
      expect.objectContaining({ $data: exactJson(special) }),
    ])
  })

  it('of a repeated key the last counts', async () => {
    await expectKept('{"a":1,"b":{"c":1,"c":[2]},"a":"last","d":0,"d":null}')
  })

  it('100 levels of nesting', async () => {
    await expectKept(`${'{"a":['.repeat(50)}1${']}'.repeat(50)}`)
  })

  it('any object, made at random', async () => {
    const character = fc
      .string({ unit: 'binary', maxLength: 12 })
      .filter((text) => !text.includes('\u0000') && text.isWellFormed())
    const numeral = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
      fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }).map(String),
      fc
        .tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.bigInt({ min: 0n, max: 10n ** 30n }))
        .map(([integer, fraction]) => `${integer}.${fraction}`),
      fc.tuple(fc.integer(), fc.integer({ min: -300, max: 300 })).map(([n, power]) => `${n}e${power}`),
    )
    const { object } = fc.letrec<{ object: string; value: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        numeral,
        character.map((text) => JSON.stringify(text)),
        fc.constantFrom('null', 'true', 'false'),
        fc.array(tie('value'), { maxLength: 4 }).map((values) => `[${values.join(',')}]`),
        tie('object'),
      ),
      object: fc
        .array(fc.tuple(character, tie('value')), { maxLength: 5 })
        .map((pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`),
    }))
    await fc.assert(fc.asyncProperty(object, expectKept), { numRuns: 60 })
  }, 120_000)

  it('pollutes nothing in the process', async () => {
    const { data } = (await api.request<{ polluted?: unknown }>('GET', '/api/v1/ping')).json
    expect(data.polluted).toBeUndefined()
    expect(expectOk(await api.createSession({}), 201).configs).toEqual({})
  })
})

describe('text of the other fields', () => {
  it('comes back as it was sent, too', async () => {
    const type = '\u0001 "\\/\u2028😀\u007f'
    const event = expectOk(await api.appendEvent(sessionId, { type, data: {} }))
    expect(event.type).toBe(type)
    expect(expectOk(await api.listEvents(sessionId, { type })).items).toEqual([event])
  })
})
