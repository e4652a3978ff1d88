import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { HttpClient, RequestOptions } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let api: ApiClient
let admin: HttpClient
let session_id: string

beforeAll(async () => {
  api = await service.newClient()
  admin = service.adminClient()
  session_id = expectOk(await api.createSession({}), 201).id
})

/** Insignificant space that makes any body a large one, which is worked on beside the event loop. */
const PADDING = ' '.repeat(200_000)
const padded = (body: string) => (body.startsWith('{') ? `{${PADDING}${body.slice(1)}` : `${body}${PADDING}`)

/** What an answer says, apart from what each request has of its own. */
const saidBy = (text: string) =>
  text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}/g, 'an id')
    .replaceAll(/call_[0-9a-f]{32}/g, 'call_an id')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')
    .replaceAll(/"seq":\d+/g, '"seq":n')
    .replaceAll(/sk-[\w-]+/g, 'a token')
    .replaceAll(/position \d+(?: \(line \d+ column \d+\))?/g, 'a position')

const NESTED = `${'['.repeat(1_200)}${']'.repeat(1_200)}`
const LONG = 'a'.repeat(2_000)

const APPENDS: Array<[string, string]> = [
  ['events', '{"type":"x","data":{"a":12345678901234567890,"b":1e5,"b":"é😀"}}'],
  ['events', '{"type":"x","data":[]}'],
  ['events', '{"type":"x"}'],
  ['events', `{"type":"${LONG}","data":{}}`],
  ['events', '{"type":"x","data":{},"more":1}'],
  ['events', '{"type":"x","data":{"a":"\\u0000"}}'],
  ['events', '{"type":"x","data":{"a":["\\ud800"]}}'],
  ['events', '{"type":"x","data":{"a":1e999999}}'],
  ['events', `{"type":"x","data":{"a":${NESTED}}}`],
  ['events', '{"type":"x","data":{}'],
  ['events', '[]'],
  ['events', 'null'],
  ['messages', '{"blob":{"role":"user","content":"Where is my flight?"},"meta":{"a":1.50}}'],
  ['messages', '{"blob":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{}}]}}'],
  ['messages', '{"format":"anthropic","blob":{"role":"user","content":[{"type":"text","text":"a"}]}}'],
  ['messages', '{"format":"gemini","blob":{"role":"model","parts":[{"functionCall":{"name":"f"}}]}}'],
  ['messages', '{"format":"acontext","blob":{"role":"user","parts":[{"type":"none"}]}}'],
  ['messages', '{"format":"responses","blob":{"type":"custom_tool_call","call_id":"c","input":""}}'],
  ['messages', `{"blob":{"role":"user","content":"a"},"meta":{"a":"${'é'.repeat(40_000)}"}}`],
  ['messages', '{"format":"later","blob":{}}'],
  [
    'entries',
    '{"entries":[{"kind":"event","type":"x","data":{}},{"kind":"message","blob":{"role":"user","content":"a"}}]}',
  ],
  [
    'entries',
    '{"entries":[{"kind":"event","type":"x","data":{}},{"kind":"message","blob":{"role":"nobody"}}]}',
  ],
  ['entries', '{"entries":[{"kind":"event","type":"x","data":{}},{"kind":"event","type":1,"data":{}}]}'],
  ['entries', '{"entries":[{"kind":"other"}]}'],
  ['entries', '{"entries":[]}'],
]

describe('a large body', () => {
  const answersTo = async (client: HttpClient, method: string, path: string, body: string) => {
    const answers = [body, padded(body)].map((rawBody) => client.request(method, path, { rawBody }))
    return (await Promise.all(answers)).map(({ status, text }) => ({ status, said: saidBy(text) }))
  }

  it.each(APPENDS)('is answered as a small one: %s %.60s', async (resource, body) => {
    const [small, large] = await answersTo(api, 'POST', `/api/v1/session/${session_id}/${resource}`, body)
    // Which of the two is first, and so has the other before it, is open.
    const apart = (said: string) => said.replace(/"parent_id":(?:null|"an id")/g, '"parent_id":any')
    expect(large!.status).toBe(small!.status)
    expect(apart(large!.said)).toBe(apart(small!.said))
  })

  it.each([
    ['POST', '/api/v1/session', '{"user":"omar","configs":{"a":[1e5]}}'],
    ['POST', '/api/v1/session', '{"user":""}'],
    ['POST', '/api/v1/session', `{"configs":{"a":"${'a'.repeat(70_000)}"}}`],
    ['POST', '/api/v1/learning_spaces', '{"user":"omar","meta":{"a":1}}'],
    ['POST', '/api/v1/learning_spaces', '{"meta":[]}'],
    ['POST', '/admin/v1/projects', '{"name":""}'],
    ['POST', '/admin/v1/projects', '{"name":"a","more":true}'],
  ])('is answered as a small one: %s %s %.60s', async (method, path, body) => {
    const client = path.startsWith('/admin/') ? admin : api
    const [small, large] = await answersTo(client, method, path, body)
    expect(large).toEqual(small)
  })

  it('keeps configs as they were sent', async () => {
    const path = `/api/v1/session/${session_id}/configs`
    expect((await api.request('PUT', path, { rawBody: padded('{"configs":{"a":1.50}}') })).status).toBe(200)
    const merged = await api.request('PATCH', path, {
      rawBody: padded('{"configs":{"b":12345678901234567890}}'),
    })
    expect(merged.text).toContain('{"configs":{"a": 1.50, "b": 12345678901234567890}}')
  })

  it('is stored once under its idempotency key, and answered again with its parts', async () => {
    const blob = { role: 'user', content: [{ type: 'text', text: 'a'.repeat(100_000) }] }
    const send = () =>
      api.request('POST', `/api/v1/session/${session_id}/messages`, {
        body: { blob },
        headers: { 'Idempotency-Key': 'large-1' },
      })
    const first = await send()
    const again = await send()
    expect(first.status).toBe(201)
    expect(again.text).toBe(first.text)
    expect(again.headers['idempotent-replayed']).toBe('true')
  })

  it('is converted to another format as small ones are, calls with their results', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const functionCall = { name: 'search', args: { q: 'a'.repeat(60_000) } }
    const functionResponse = { name: 'search', response: { result: 'b'.repeat(60_000) } }
    for (const blob of [
      { role: 'user', parts: [{ text: 'Find it' }] },
      { role: 'model', parts: [{ functionCall }] },
      { role: 'user', parts: [{ functionResponse }] },
    ])
      expectOk(
        await api.request('POST', `/api/v1/session/${id}/messages`, { body: { format: 'gemini', blob } }),
        201,
      )
    const path = `/api/v1/session/${id}/messages?format=openai`
    const { items } = expectOk(await api.request<{ items: Array<Record<string, never>> }>('GET', path))
    const [asked, called, answered] = items as unknown as [
      { content: string },
      { tool_calls: Array<{ id: string; function: { arguments: string } }> },
      { tool_call_id: string; content: string },
    ]
    expect(asked.content).toBe('Find it')
    expect(JSON.parse(called.tool_calls[0]!.function.arguments)).toEqual(functionCall.args)
    expect(answered.tool_call_id).toBe(called.tool_calls[0]!.id)
    expect(answered.content).toContain('b'.repeat(60_000))
  })
})

describe('a body', () => {
  it('has the limit that the operator set', async () => {
    const node = await service.startNode({ ANNALS_BODY_BYTES_MAX: '2048' })
    const { token } = await service.newProject()
    const options = (bytes: number): RequestOptions => ({
      body: { user: 'u', configs: { x: 'x'.repeat(bytes) } },
    })
    const client = service.rawClient(token, node)
    expect((await client.request('POST', '/api/v1/session', options(1_900))).status).toBe(201)
    expectError(await client.request('POST', '/api/v1/session', options(2_048)), 413, 'payload_too_large')
  })
})
