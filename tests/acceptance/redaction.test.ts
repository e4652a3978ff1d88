import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { sendTraces } from '../harness/otlp.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const SECRET = `sk-ant-api03-${'aZ3xK9_qLm7Rt2Vw'.repeat(6)}`
const OTHER = `ghp_${'kJ4mQ8sT2vX6zB1nC5'.repeat(2)}`
const EMAIL = 'omar.davis@example.com'
const CARD = '4111 1111 1111 1111'
let project: { id: string; token: string }

/** A new project's rules, as its administrator sets them, and a key that is made afterwards: it meets them at once. */
async function projectWith(rules?: object[], masked = false) {
  project = await service.newProject()
  const key = async (body: object) => {
    const path = `/admin/v1/projects/${project.id}/tokens`
    const made = await service.adminClient().request<{ token: string }>('POST', path, { body })
    return apiClient(service.node.url, expectOk(made, 201).token)
  }
  const admin = await key({ name: 'admin', scopes: ['admin'] })
  const set = await admin.request('PUT', '/api/v1/redaction', { body: rules ? { rules } : {} })
  expectOk(set)
  return { admin, api: await key({ name: 'all', masked }), key }
}

const HASH = [{ what: { detector: 'secrets' }, do: 'hash', when: 'write' }]

describe('rules for writing, when redaction is switched on', { timeout: 60_000 }, () => {
  let api: ApiClient
  beforeAll(async () => {
    api = (await projectWith()).api
  })

  it('clear every way in of secrets, before anything is stored, and leave the rest as it was sent', async () => {
    const log = await newSessionLog(api, { configs: { key: SECRET, n: 1.5 } })
    const data = { text: `use ${SECRET}`, mail: EMAIL, n: 12345678901234567890n.toString() }
    const event = expectOk(await log.addEvent('note', data))
    expect(event.data).toEqual({ ...data, text: 'use <ANTHROPIC_KEY_1>' })
    const blob = { role: 'user', content: `${OTHER} or ${SECRET}` }
    const message = expectOk(await log.add(blob, { meta: { mine: SECRET } }), 201)
    const redacted = { github_token: 1, anthropic_key: 2 }
    expect(message.meta).toEqual({ mine: '<ANTHROPIC_KEY_1>', redacted })
    const long = { kind: 'event', type: 'long', data: { pad: 'x '.repeat(30_000), key: OTHER } }
    expectOk(await log.batch([long, { kind: 'message', blob }]), 201)
    const appends = [{ session_id: log.id, entries: [{ kind: 'event', type: 'many', data: { key: OTHER } }] }]
    expectOk(await api.request('POST', '/api/v1/entries', { body: { appends } }), 201)
    expectOk(await log.patchMeta(message.id, { later: OTHER }))
    const path = `/api/v1/session/${log.id}`
    const input = { mode: 'queue', kind: 'event', type: 'in', data: { key: SECRET } }
    expectOk(await api.request('POST', `${path}/inbox`, { body: input }), 201)
    const asked = {
      kind: 'approval',
      text: `Run with ${SECRET}?`,
      call: { name: 'run', arguments: { key: OTHER } },
    }
    expectOk(await api.request('POST', `${path}/requests`, { body: asked }), 201)
    const gone = { ids: [event.id], entries: [{ kind: 'event', type: 'new', data: { key: OTHER } }] }
    expectOk(await api.request('POST', `${path}/retractions`, { body: gone }))
    const answers = await Promise.all(
      ['', '/timeline', '/messages', '/events', '/inbox', '/context?max_tokens=100000'].map((at) =>
        api.request('GET', `${path}${at}`),
      ),
    )
    for (const { status, text } of answers) {
      expect(status, text).toBe(200)
      for (const secret of [SECRET, OTHER]) expect(text).not.toContain(secret)
    }
    const { items } = expectOk(await log.timeline())
    expect(items[0]!.data).toEqual(event.data)
    expect(items[2]!.data).toEqual({ pad: 'x '.repeat(30_000), key: '<GITHUB_TOKEN_1>' })
    expect(items.at(-1)!.data).toEqual({ key: '<GITHUB_TOKEN_1>' })
  })

  it('a retry is compared by what was sent: the same is a replay, another secret is another request', async () => {
    const log = await newSessionLog(api)
    const send = (key: string, data: object) =>
      api.appendEvent(log.id, { type: 'note', data }, { headers: { 'Idempotency-Key': key } })
    const first = expectOk(await send('one', { key: SECRET }))
    const again = await send('one', { key: SECRET })
    expect([again.headers['idempotent-replayed'], expectOk(again)]).toEqual(['true', first])
    expectError(await send('one', { key: OTHER }), 422, 'idempotency_key_reused')
    expectError(await send('one', { key: '<ANTHROPIC_KEY_1>' }), 422, 'idempotency_key_reused')
    const entry = { kind: 'message', id: randomUUID(), blob: { role: 'user', content: SECRET } }
    const stored = expectOk(await log.batch([entry]), 201)
    expect(expectOk(await log.batch([entry]), 201)).toEqual(stored)
  })

  it('clear what OpenTelemetry sends, and message forms', async () => {
    const said = (role: string, content: string) => ({ role, parts: [{ type: 'text', content }] })
    const attributes = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.conversation.id': `c-${randomUUID()} of ${OTHER}`,
      'user.id': `u ${OTHER}`,
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.input.messages': JSON.stringify([said('user', `here: ${SECRET}`)]),
      'gen_ai.output.messages': JSON.stringify([said('assistant', 'thanks')]),
      note: OTHER,
    }
    const span = { trace: randomUUID().replaceAll('-', ''), id: '1', name: 'chat', attributes }
    expect((await sendTraces(api, [span])).status).toBe(200)
    const { items } = expectOk(await api.listSessions({ time_desc: true, limit: 1 }))
    const log = sessionLog(api, items[0]!.id)
    const { text } = await log.timeline()
    const session = await api.request('GET', `/api/v1/session/${log.id}`)
    expect(session.text).toContain('of <GITHUB_TOKEN>')
    expect(session.text + (await api.request('GET', '/api/v1/user/ls')).text).not.toContain(OTHER)
    expect(text).toContain('here: <ANTHROPIC_KEY_1>')
    for (const secret of [SECRET, OTHER]) expect(text).not.toContain(secret)
    const form = new FormData()
    form.append('payload', JSON.stringify({ format: 'openai', blob: { role: 'user', content: SECRET } }))
    const sent = new Response(form)
    const headers = { 'Content-Type': sent.headers.get('content-type')! }
    const rawBody = Buffer.from(await sent.arrayBuffer())
    const path = `/api/v1/session/${log.id}/messages`
    expectOk(await api.request('POST', path, { rawBody, headers }), 201)
    expect((await log.timeline()).text).not.toContain(SECRET)
  })

  it('two writers give the same value one mask, and different values different ones', async () => {
    const log = await newSessionLog(api)
    const keys = Array.from(
      { length: 12 },
      (_, index) => `ghp_${String.fromCharCode(97 + index)}${OTHER.slice(5)}`,
    )
    await Promise.all([...keys, ...keys].map((key) => log.addEvent('note', { key })))
    const { items } = expectOk(await log.timeline())
    const masks = items.map(({ data }) => (data as { key: string }).key)
    expect(new Set(masks).size).toBe(12)
    expect([...new Set(masks)].sort()).toEqual(keys.map((_, index) => `<GITHUB_TOKEN_${index + 1}>`).sort())
    for (const mask of masks) expect(masks.filter((other) => other === mask)).toHaveLength(2)
  })
})

it('a hash is the same in all of a project, and another one in each other project that sends the same', async () => {
  const apis = [(await projectWith(HASH)).api, (await projectWith(HASH)).api]
  const long = { pad: 'x '.repeat(30_000), key: OTHER }
  const hashes = await Promise.all(
    Array.from({ length: 6 }, async (_, at) => {
      const log = await newSessionLog(apis[at % 2]!)
      return expectOk(await log.addEvent('note', at < 4 ? long : { key: OTHER })).data as { key: string }
    }),
  )
  const of = (project: number) => new Set(hashes.filter((_, at) => at % 2 === project).map(({ key }) => key))
  expect([of(0).size, of(1).size, new Set([...of(0), ...of(1)]).size]).toEqual([1, 1, 2])
})

it('the first 5,000 values of a request have numbers, wherever they stand in it again', async () => {
  const { api } = await projectWith()
  const value = (n: number) => `a://b:x${10_000 + n}y@c`
  const text = [...Array.from({ length: 5_100 }, (_, n) => value(n)), value(0), value(5_099)].join(' ')
  const { data } = expectOk(await (await newSessionLog(api)).addEvent('note', { text }))
  const masks = (data as { text: string }).text.match(/<PASSWORD(?:_\d+)?>/g)!
  const numbered = Array.from({ length: 5_000 }, (_, n) => `<PASSWORD_${n + 1}>`)
  expect(masks).toEqual([...numbered, ...Array(100).fill('<PASSWORD>'), '<PASSWORD_1>', '<PASSWORD>'])
})

describe('patterns', { timeout: 60_000 }, () => {
  it('are for all that people read: of requests, answers, statements and withdrawals,', async () => {
    const { api } = await projectWith([{ what: { pattern: 'K-[0-9]+' }, do: 'mask', when: 'write' }])
    const { id } = await newSessionLog(api)
    const path = `/api/v1/session/${id}`
    const post = async (to: string, body: object, status: number) => {
      const answer = await api.request<{ id: string }>('POST', to, { body })
      expect(answer.text).not.toContain('K-7')
      return expectOk(answer, status).id
    }
    const asked = { kind: 'question', text: 'Is it K-7?', options: ['K-7', 'no'] }
    const request_id = await post(`${path}/requests`, asked, 201)
    await post(
      `/api/v1/requests/${request_id}/resolve`,
      { decision: 'answer', answer: 'K-7', by: 'K-7' },
      200,
    )
    const space_id = await post('/api/v1/learning_spaces', { meta: { of: 'K-7' } }, 201)
    await post(`/api/v1/learning_spaces/${space_id}/statements`, { text: 'Never ship K-7.' }, 201)
    const input = { kind: 'event', mode: 'queue', type: 'note', data: { of: 'K-7' } }
    const input_id = await post(`${path}/inbox`, input, 201)
    expectOk(
      await api.request('DELETE', `${path}/inbox/${input_id}`, { query: { reason: `not K-7 ${SECRET}` } }),
    )
    const withdrawn = await api.request<{ items: Array<{ reason: string }> }>('GET', `${path}/inbox`, {
      query: { state: 'withdrawn' },
    })
    expect(expectOk(withdrawn).items[0]!.reason).toMatch(/^not <REDACTED_1> /)
  })
})

describe('the rules of a project', () => {
  it('are set by a key with the scope admin, and a rule that cannot be used is refused with its place', async () => {
    const { admin, api } = await projectWith([
      ...HASH,
      { what: { pattern: 'K-[0-9]+' }, do: 'refuse', when: 'write' },
    ])
    expectError(await api.request('PUT', '/api/v1/redaction', { body: {} }), 403, 'insufficient_scope')
    const bad = [...HASH, { what: { pattern: '(a' }, do: 'mask', when: 'write' }]
    const refused = await admin.request('PUT', '/api/v1/redaction', { body: { rules: bad } })
    expectError(refused, 400, 'invalid_request', '/rules/1/what/pattern')
    const session = await newSessionLog(api)
    expect(expectOk(await session.addEvent('note', { a: SECRET })).data.a).toMatch(
      /^<ANTHROPIC_KEY:[\w-]{12}>$/,
    )
    const not = await session.batch([{ kind: 'event', type: 'note', data: { 'a/b': ['K-12'] } }])
    expectError(not, 400, 'invalid_request', '/entries/0/data/a~1b/0')
    expect(expectOk(await session.timeline()).items).toHaveLength(1)
    expectOk(await admin.request('DELETE', '/api/v1/redaction'))
    expect(expectOk(await admin.request('GET', '/api/v1/redaction'))).toEqual({ rules: null })
  })
})

describe('a masked key', () => {
  it('reads the same masks everywhere in a session, makes only masked keys, and creates no webhooks', async () => {
    const { api, key } = await projectWith()
    const masked = await key({ name: 'masked', scopes: ['read', 'write', 'admin'], masked: true })
    const log = await newSessionLog(api)
    for (let n = 0; n < 3; n++)
      await log.add({ role: 'user', content: `mail ${EMAIL} or u${n}@example.com, ${CARD}` })
    const read = sessionLog(masked, log.id)
    const { items } = expectOk(await read.list({ limit: 2 }))
    expect(items.map(({ content }) => content)).toEqual([
      'mail <EMAIL_1> or <EMAIL_2>, <CARD_1>',
      'mail <EMAIL_1> or <EMAIL_3>, <CARD_1>',
    ])
    expect((await read.timeline({ after_seq: 2 })).text).toContain('mail <EMAIL_1> or <EMAIL_4>, <CARD_1>')
    expect(expectOk(await log.list()).items[0]!.content).toContain(EMAIL)
    const made = expectOk(
      await masked.request<{ masked: boolean; token: string }>('POST', '/api/v1/keys', {
        body: { name: 'more', masked: false },
      }),
      201,
    )
    expect(made.masked).toBe(true)
    const more = apiClient(service.node.url, made.token)
    const asked = { for: { session_id: log.id }, scopes: ['read'], ttl_s: 60 }
    const { token } = expectOk(
      await more.request<{ token: string }>('POST', '/api/v1/tokens', { body: asked }),
      201,
    )
    const narrow = sessionLog(apiClient(service.node.url, token), log.id)
    expect((await narrow.timeline()).text).toContain('mail <EMAIL_1>')
    expect(expectOk(await masked.request('GET', '/api/v1/key')).masked).toBe(true)
    const hook = { url: 'https://example.com/', events: ['message'] }
    expectError(await masked.request('POST', '/api/v1/webhooks', { body: hook }), 403, 'insufficient_scope')
  })
})
