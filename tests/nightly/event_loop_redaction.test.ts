import { beforeAll, describe, expect, it, vi } from 'vitest'
import { type HostileText, hostileKeys, hostileTexts } from '../../lab/hostile_texts.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { issueToken } from '../harness/tokens.ts'

const BYTES = 1_000_000
/** Of each of eight attributes. */
const OTEL_BYTES = 100_000
/** As long as what is looked through on the event loop itself. */
const INLINE_BYTES = 900
const RULES = ['secrets', 'personal'].map((detector) => ({ what: { detector }, do: 'mask', when: 'write' }))
/** Found thousands of times, of which the numbers of masks are made. */
const MANY = /differ|^a list|omar|4111 1111 1111 1111|JSON in JSON/

const watch = watchEventLoop()
const service = useService(watch.env)
let api: ApiClient
let log: SessionLog
let masked: ApiClient
let open: { api: ApiClient; log: SessionLog }

const some = (kinds: HostileText[], nth = 16) =>
  IS_THOROUGH ? kinds : kinds.filter(([name], at) => MANY.test(name) || at % nth === 0)
/** What is refused, or meets no rule, would show nothing. */
const check = (name: string, request: () => Promise<Answer>) =>
  watch.check(name, async () => {
    const answer = await request()
    expect([200, 201], answer.text).toContain(answer.status)
    return answer
  })
const bodyOf = (json: string) => `{"type":"said","data":{"text":${json}}}`
const headers = { 'content-type': 'application/json' }

beforeAll(async () => {
  const redacted = await service.newProject()
  api = await service.newClient({ token: redacted.token })
  const admin = await issueToken(service.adminClient(), redacted.id, { name: 'rules', scopes: ['admin'] })
  expectOk(
    await service.rawClient(admin.token).request('PUT', '/api/v1/redaction', { body: { rules: RULES } }),
  )
  log = await newSessionLog(api)
  const project = await service.newProject()
  open = { api: await service.newClient({ token: project.token }), log: undefined as never }
  open.log = await newSessionLog(open.api)
  const made = await service
    .adminClient()
    .request<{ token: string }>('POST', `/admin/v1/projects/${project.id}/tokens`, {
      body: { name: 'masked', scopes: ['read'], masked: true },
    })
  masked = await service.newClient({ token: expectOk(made, 201).token })
  // Rules are heard of within five seconds.
  await vi.waitFor(async () => {
    const { data } = expectOk(await log.addEvent('said', { text: 'omar@example.com' }))
    expect(data).toEqual({ text: '<EMAIL_1>' })
  }, 20_000)
})

describe('the event loop is held for 20 ms at most', { timeout: 300_000 }, () => {
  it('by a megabyte of hostile text that rules look through, in an event or a message', async () => {
    for (const [name, json] of some([...hostileTexts(BYTES), ...(IS_THOROUGH ? hostileKeys(BYTES) : [])]))
      await check(name, () =>
        api.request('POST', `/api/v1/session/${log.id}/events`, { rawBody: bodyOf(json), headers }),
      )
    for (const [name, json] of some(hostileTexts(BYTES), Number.POSITIVE_INFINITY))
      if (json.startsWith('"'))
        await check(`message: ${name}`, () =>
          api.request('POST', `/api/v1/session/${log.id}/messages`, {
            rawBody: `{"blob":{"role":"user","content":${json}}}`,
            headers,
          }),
        )
    expect(watch.noted()).toEqual([])
  })

  it('by the longest text that it looks through itself', async () => {
    for (const [name, json] of [...hostileTexts(INLINE_BYTES), ...some(hostileKeys(INLINE_BYTES))])
      await check(name, () =>
        api.request('POST', `/api/v1/session/${log.id}/events`, { rawBody: bodyOf(json), headers }),
      )
    expect(watch.noted()).toEqual([])
  })

  it('by reading it with a masked key', async () => {
    for (const [name, json] of some(hostileTexts(BYTES))) {
      const path = `/api/v1/session/${open.log.id}/timeline`
      expectOk(
        await open.api.request('POST', `/api/v1/session/${open.log.id}/events`, {
          rawBody: bodyOf(json),
          headers,
        }),
      )
      await check(name, () => masked.request('GET', path, { query: { limit: 1, time_desc: true } }))
    }
    expect(watch.noted()).toEqual([])
  })

  it('by what OpenTelemetry says of a session', async () => {
    for (const [name, json] of some(hostileTexts(OTEL_BYTES)).filter(([, json]) => json.startsWith('"'))) {
      const ids = `"traceId":"${'ab'.repeat(16)}","spanId":"${'cd'.repeat(8)}","name":"chat"`
      const value = `{"stringValue":${json}}`
      const attribute = (key: string) => `{"key":"${key}","value":${value}}`
      const named = ['user.id', 'service.name', 'gen_ai.agent.name', 'gen_ai.request.model'].map(attribute)
      const rawBody = `{"resourceSpans":[{"resource":{"attributes":[${named}]},"scopeSpans":[{"spans":[{${ids},"attributes":[${named}]}]}]}]}`
      await check(name, () => api.request('POST', '/api/v1/otel/v1/traces', { rawBody, headers }))
    }
    expect(watch.noted()).toEqual([])
  })
})
