import { beforeAll, describe, expect, it, vi } from 'vitest'
import { guardedOperations, tokenFor, tryOperation } from '../harness/access_requests.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { bytesOf, putBlob, sha256Of } from '../harness/blobs.ts'
import { signInToConsole } from '../harness/console_session.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { connectMcp } from '../harness/mcp_client.ts'
import { newPerson } from '../harness/people.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { skillZip, uploadSkill } from '../harness/skills.ts'

const service = useSharedService()
const EMAIL = 'zora.q+x@example.com'
const PHONE = '+49 30 5550199'
const CARD = '5555555555554444'
const IBAN = 'DE89370400440532013000'
const PLANTED = [EMAIL, PHONE, CARD, IBAN, 'zora.q']
const ALL = `zora writes from ${EMAIL}, ${PHONE}, ${CARD}, ${IBAN}`
/** Where it stands, a title, a question or a result is cut through it. */
const CUT = (before: number) => `${'n '.repeat(before / 2)}${EMAIL}`
const BASE64 = Buffer.from(`${ALL}. And some more text, so that it is long.`).toString('base64')

let open: ApiClient
let masked: ApiClient
let ids: Record<string, string>

async function keyOf(project_id: string, body: object) {
  const path = `/admin/v1/projects/${project_id}/tokens`
  const made = await service.adminClient().request<{ token: string }>('POST', path, { body })
  return { token: expectOk(made, 201).token }
}

/** Everything that a project can have, with personal data wherever a caller's text may be. */
beforeAll(async () => {
  const project = await service.newProject()
  const settings = { body: { search: true } }
  expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, settings))
  open = await service.newClient({ token: project.token })
  masked = apiClient(
    service.node.url,
    (await keyOf(project.id, { name: ALL, masked: true, scopes: ['read', 'write', 'admin'] })).token,
  )
  const created = async (path: string, body: unknown) =>
    expectOk(await open.request<{ id: string }>('POST', `/api/v1/${path}`, { body }), 201).id
  const log = await newSessionLog(open, { user: EMAIL, configs: { owner: ALL, [EMAIL]: 1, title: CUT(150) } })
  const entries = [
    { kind: 'message', blob: { role: 'user', content: ALL }, meta: { from: EMAIL }, key: EMAIL },
    {
      kind: 'message',
      blob: {
        role: 'user',
        content: [
          { type: 'text', text: ALL },
          { type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${BASE64}` } },
        ],
      },
    },
    {
      kind: 'message',
      blob: {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'c',
            type: 'function',
            function: { name: 'mail', arguments: JSON.stringify({ to: EMAIL, card: Number(CARD) }) },
          },
        ],
      },
    },
    { kind: 'message', blob: { role: 'tool', tool_call_id: 'c', content: `error: ${CUT(284)} ${ALL}` } },
    {
      kind: 'event',
      type: EMAIL,
      data: { [EMAIL]: ALL, card: Number(CARD), deep: JSON.stringify({ to: JSON.stringify([EMAIL]) }) },
    },
    {
      kind: 'event',
      type: 'big',
      data: { pad: 'x '.repeat(20_000), text: ALL, base64: BASE64, card: Number(CARD) },
    },
    { kind: 'event', type: 'other', data: {}, key: `${EMAIL}/2` },
    { kind: 'message', blob: { role: 'user', content: `${'y '.repeat(120)}${ALL}${' y'.repeat(120)}` } },
  ]
  const { items } = expectOk(await log.batch(entries), 201)
  const bytes = Buffer.from(ALL)
  await putBlob(service.node.url, project.token, bytes)
  expectOk(
    await log.addEvent('file', { annals_blob: sha256Of(bytes), media_type: 'text/plain', filename: EMAIL }),
  )
  const file_data = { annals_blob: sha256Of(bytes), media_type: 'text/plain' }
  const attached = [{ type: 'file', file: { filename: 'a.txt', file_data } }]
  expectOk(await log.add({ role: 'user', content: attached }), 201)
  const learning_space_id = await created('learning_spaces', { user: EMAIL, meta: { of: ALL } })
  const statement_id = await created(`learning_spaces/${learning_space_id}/statements`, { text: ALL })
  expectOk(
    await open.request('POST', `/api/v1/learning_spaces/${learning_space_id}/learn`, {
      body: { session_id: log.id },
    }),
    201,
  )
  const request_id = await created(`session/${log.id}/requests`, { kind: 'approval', text: ALL })
  const input_id = await created(`session/${log.id}/inbox`, {
    mode: 'queue',
    kind: 'event',
    type: 'in',
    data: { a: ALL },
  })
  const webhook_id = await created('webhooks', {
    url: `https://example.com/${EMAIL}`,
    events: ['event.never'],
  })
  const zip = skillZip('skill', { 'own.md': ALL })
  const uploaded = await uploadSkill(service.node.url, project.token, zip, { user: EMAIL })
  const { data: skill } = (await uploaded.json()) as { data: { id: string } }
  const tokens = expectOk(await masked.request<{ items: Array<{ id: string }> }>('GET', '/api/v1/keys')).items
  ids = {
    ...{ session_id: log.id, message_id: items[0]!.id, identifier: EMAIL, request_id, input_id },
    ...{ learning_space_id, statement_id, webhook_id, skill_id: skill.id, sha256: sha256Of(bytes) },
    ...{ token_id: tokens[0]!.id, name: 'mail' },
  }
})

/** What an answer must not have, in whatever form it could be read by a person who tries. */
function expectMasked({ status, text }: Answer, said: string) {
  const decoded = (text.match(/[\w-]{16,}/g) ?? []).map((word) => Buffer.from(word, 'base64url').toString())
  const readable =
    text +
    text.replace(/\\u([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))) +
    decoded.join(' ')
  for (const planted of PLANTED)
    expect(readable.includes(planted), `${said}: ${status} ${text.slice(0, 2_000)}`).toBe(false)
  expect(readable.includes(BASE64.slice(0, 60)), said).toBe(false)
}

const reading = guardedOperations.filter(({ method }) => method === 'get')
const QUERIES: Array<Record<string, string>> = [
  {},
  { q: 'zora', query: 'zora' },
  { q: 'zora', mode: 'recall' },
  { q: 'zora', group: 'session' },
  { limit: '1' },
  { limit: '1', key_prefix: 'zo' },
  { with_asset_public_url: 'true' },
  { format: 'anthropic', max_tokens: '100000' },
  { format: 'gemini' },
  { format: 'responses', with_events: 'true' },
  { format: 'acontext', with_asset_public_url: 'true' },
  { fit: 'true' },
  { key: EMAIL },
  { file_path: 'own.md', path: 'own.md' },
]

describe('a masked key', { timeout: 240_000 }, () => {
  it('reads nothing of what is personal in the answer of any operation that reads, however it is asked', async () => {
    await expect
      .poll(async () => (await open.request('GET', '/api/v1/search', { query: { q: 'zora' } })).text, {
        timeout: 30_000,
      })
      .toContain('snippet')
    expect(reading.length).toBeGreaterThan(40)
    let answered = 0
    for (const operation of reading)
      for (const query of QUERIES) {
        const given = { ids, query, bodies: {} }
        // Each is readable for others, so there is something to hide.
        const answer = await tryOperation(masked, operation, given)
        expect(answer.status, `${operation.name} ${answer.text}`).toBeLessThan(500)
        expectMasked(answer, `${operation.name} ${JSON.stringify(query)}`)
        expect(answer.text, operation.name).not.toContain('/assets/')
        if (answer.status === 200) answered += 1
      }
    expect(answered).toBeGreaterThan(reading.length)
    const seen = await open.request('GET', `/api/v1/session/${ids.session_id}/timeline`)
    expect(PLANTED.every((planted) => seen.text.includes(planted))).toBe(true)
  })

  it('tails masks as well, and gets the bytes of no attachment', async () => {
    const controller = new AbortController()
    const headers = { Authorization: `Bearer ${(await keyFor()).token}`, Accept: 'text/event-stream' }
    const url = `${service.node.url}/api/v1/session/${ids.session_id}/timeline`
    const response = await fetch(url, { headers, signal: controller.signal })
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      if (text.includes('annals_blob')) break
    }
    controller.abort()
    expectMasked({ status: 200, text } as Answer, 'the tail')
    expect(text).toContain('<EMAIL_1>')
    const { status } = await bytesOf(
      await fetch(`${service.node.url}/api/v1/blobs/${ids.sha256}`, { headers }),
    ).then(
      () => ({ status: 200 }),
      () => ({ status: 403 }),
    )
    const blob = await fetch(`${service.node.url}/api/v1/blobs/${ids.sha256}`, { headers })
    expect([status === 200 || status === 403, blob.status]).toEqual([true, 403])
    expectMasked({ status: 403, text: await blob.text() } as Answer, 'a blob')
  })
})

it('a masked key reads masks with the tools of an agent, too', async () => {
  const { token } = await keyFor()
  const { call, value } = await connectMcp(service.node.url, token)
  const { sessions } = await value<{ sessions: Array<{ id: string }> }>('list_sessions', {})
  expect(sessions.length).toBeGreaterThan(0)
  const texts = [JSON.stringify(sessions)]
  for (const { id } of sessions) texts.push((await call('read_session', { session_id: id, last: 50 })).text)
  expect(texts.join()).toContain('<EMAIL_1>')
  for (const planted of PLANTED) expect(texts.join()).not.toContain(planted)
})

async function keyFor() {
  const { project_id } = expectOk(await open.request<{ project_id: string }>('GET', '/api/v1/key'))
  return keyOf(project_id, { name: 'tail', masked: true })
}

describe('a masked viewer', () => {
  it('reads masks while the project says so, in the console and with tokens too, and a masked key does in the console', async () => {
    const own = await service.newProject()
    const api = await service.newClient({ token: own.token })
    const { id } = expectOk(await api.createSession({}), 201)
    const entries = [{ kind: 'event', type: 'mail', data: { text: ALL } }]
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
    const set = async (mask_viewers: boolean | null) =>
      expectOk(
        await service
          .adminClient()
          .request('PATCH', `/admin/v1/projects/${own.id}`, { body: { mask_viewers } }),
      )
    const [viewer, member] = [
      await newPerson(service.databaseUrl, own.id, 'viewer'),
      await newPerson(service.databaseUrl, own.id, 'member'),
    ]
    const path = `/api/v1/session/${id}/timeline`
    const textFor = async (token: string) => (await service.rawClient(token).request('GET', path)).text
    expect(await textFor(viewer.token)).toContain(EMAIL)
    await set(true)
    await vi.waitFor(async () => expect(await textFor(viewer.token)).not.toContain(EMAIL), 20_000)
    expect(await textFor(viewer.token)).toContain('<EMAIL_1>')
    expect(await textFor(member.token)).toContain(EMAIL)
    const made = await tokenFor(service.rawClient(viewer.token) as ApiClient, { session_id: id }, ['read'])
    expect(await textFor(made)).not.toContain(EMAIL)
    const key = await keyOf(own.id, { name: 'masked', masked: true, scopes: ['read'] })
    for (const { token } of [viewer, key]) {
      const { session } = await signInToConsole(service.rawClient(), { token })
      const { text } = await session.request('GET', `/console${path}`)
      expect(text).toContain('<EMAIL_1>')
      for (const planted of PLANTED) expect(text).not.toContain(planted)
    }
    await set(null)
    await vi.waitFor(async () => expect(await textFor(viewer.token)).toContain(EMAIL), 20_000)
  })
})
