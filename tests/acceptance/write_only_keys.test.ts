import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { guardedOperations } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { skillZip, uploadSkill } from '../harness/skills.ts'
import { issueToken } from '../harness/tokens.ts'

/** In everything that was stored before, and in nothing that the key sends. */
const SECRET = 'stored-and-not-to-be-read'

const service = useSharedService()
let reader: ApiClient
let reader_token: string
let writer: HttpClient

beforeAll(async () => {
  const project = await service.newProject()
  reader_token = project.token
  reader = await service.newClient({ token: project.token })
  const issued = await issueToken(service.adminClient(), project.id, { name: 'writer', scopes: ['write'] })
  writer = service.rawClient(issued.token)
})

/** A session, a message, a learning space and a webhook that another key has filled. */
async function fill() {
  const session = expectOk(
    await reader.createSession({ user: SECRET, configs: { [SECRET]: SECRET }, disable_task_tracking: true }),
    201,
  )
  const path = `/api/v1/session/${session.id}`
  const message = expectOk<{ id: string }>(
    await reader.request('POST', `${path}/messages`, {
      body: { format: 'openai', blob: { role: 'user', content: SECRET }, meta: { [SECRET]: SECRET } },
    }),
    201,
  )
  const space = expectOk<{ id: string }>(
    await reader.request('POST', '/api/v1/learning_spaces', {
      body: { user: SECRET, meta: { [SECRET]: 1 } },
    }),
    201,
  )
  const statement = expectOk<{ id: string }>(
    await reader.request('POST', `/api/v1/learning_spaces/${space.id}/statements`, {
      body: { text: SECRET, skill: SECRET },
    }),
    201,
  )
  const { items } = expectOk(
    await reader.request<{ items: Array<{ id: string }> }>('GET', '/api/v1/webhooks'),
  )
  for (const { id } of items) expectOk(await reader.request('DELETE', `/api/v1/webhooks/${id}`))
  const hook = { url: `https://example.com/${SECRET}`, events: ['event'] }
  const webhook = expectOk<{ id: string }>(
    await reader.request('POST', '/api/v1/webhooks', { body: hook }),
    201,
  )
  const uploaded = await uploadSkill(service.node.url, reader_token, skillZip('shared'), { user: SECRET })
  const { data: skill } = (await uploaded.json()) as { data: { id: string } }
  const input = randomUUID()
  const asked = (id: string) =>
    reader.request<{ id: string }>('POST', `${path}/requests`, {
      body: { id, kind: 'question', text: SECRET, options: [SECRET] },
    })
  const request = expectOk(await asked(randomUUID()), 201)
  const body = { id: input, mode: 'queue', kind: 'event', type: SECRET, data: { [SECRET]: 1 } }
  expectOk(await reader.request('POST', `${path}/inbox`, { body }), 201)
  return { session, path, message, space, statement, webhook, skill, input, request }
}

type Filled = Awaited<ReturnType<typeof fill>>
type Sent = [method: string, path: string, body?: unknown]

/** The form that uploads a skill which is there already. */
async function skillForm() {
  const form = new FormData()
  form.set('user', SECRET)
  form.set('file', new Blob([skillZip('shared') as Uint8Array<ArrayBuffer>]), 'a.zip')
  const response = new Response(form)
  const rawBody = Buffer.from(await response.arrayBuffer())
  return { rawBody, headers: { 'Content-Type': response.headers.get('content-type')! } }
}

const EVENT = { type: 'note', data: { n: 1 } }
const MESSAGE = { format: 'openai', blob: { role: 'user', content: 'hello' } }

/** A request of each operation that needs the scope write, by method and path of openapi.json. */
const WRITES: Record<string, (filled: Filled) => Sent> = {
  'put /api/v1/blobs/{sha256}': () => ['PUT', `/api/v1/blobs/${sha256Of(Buffer.from('{}'))}`, {}],
  'post /api/v1/session': ({ session }) => ['POST', '/api/v1/session', { use_uuid: session.id }],
  'patch /api/v1/session/{session_id}': ({ path }) => ['PATCH', path, { expires_in_s: 60 }],
  'delete /api/v1/session/{session_id}': ({ path }) => ['DELETE', path],
  'post /api/v1/session/{session_id}/compactions': ({ path }) => [
    'POST',
    `${path}/compactions`,
    { to_seq: 1, summary: MESSAGE },
  ],
  'post /api/v1/session/{session_id}/copy': ({ path }) => ['POST', `${path}/copy`],
  'post /api/v1/session/{session_id}/flush': ({ path }) => ['POST', `${path}/flush`],
  'put /api/v1/session/{session_id}/configs': ({ path }) => ['PUT', `${path}/configs`, { configs: {} }],
  'patch /api/v1/session/{session_id}/configs': ({ path }) => ['PATCH', `${path}/configs`, { configs: {} }],
  'post /api/v1/session/{session_id}/events': ({ path }) => ['POST', `${path}/events`, EVENT],
  'post /api/v1/session/{session_id}/messages': ({ path }) => ['POST', `${path}/messages`, MESSAGE],
  'patch /api/v1/session/{session_id}/messages/{message_id}/meta': ({ path, message }) => [
    'PATCH',
    `${path}/messages/${message.id}/meta`,
    { meta: {} },
  ],
  'post /api/v1/session/{session_id}/retractions': ({ path }) => ['POST', `${path}/retractions`, { last: 1 }],
  'post /api/v1/tokens': ({ session }) => [
    'POST',
    '/api/v1/tokens',
    { for: { session_id: session.id }, scopes: ['append'], ttl_s: 60 },
  ],
  'post /api/v1/webhooks': () => [
    'POST',
    '/api/v1/webhooks',
    { url: 'https://example.com', events: ['event'] },
  ],
  'delete /api/v1/webhooks/{webhook_id}': ({ webhook }) => ['DELETE', `/api/v1/webhooks/${webhook.id}`],
  'post /api/v1/entries': ({ session }) => [
    'POST',
    '/api/v1/entries',
    { appends: [{ session_id: session.id, entries: [{ kind: 'event', ...EVENT }], configs_patch: {} }] },
  ],
  'post /api/v1/session/{session_id}/entries': ({ path }) => [
    'POST',
    `${path}/entries`,
    { entries: [{ kind: 'event', ...EVENT }] },
  ],
  'post /api/v1/learning_spaces': () => ['POST', '/api/v1/learning_spaces', {}],
  'patch /api/v1/learning_spaces/{learning_space_id}': ({ space }) => [
    'PATCH',
    `/api/v1/learning_spaces/${space.id}`,
    { meta: {} },
  ],
  'delete /api/v1/learning_spaces/{learning_space_id}': ({ space }) => [
    'DELETE',
    `/api/v1/learning_spaces/${space.id}`,
  ],
  'post /api/v1/learning_spaces/{learning_space_id}/learn': ({ space, session }) => [
    'POST',
    `/api/v1/learning_spaces/${space.id}/learn`,
    { session_id: session.id },
  ],
  'put /api/v1/learning_spaces/{learning_space_id}/policy': ({ space }) => [
    'PUT',
    `/api/v1/learning_spaces/${space.id}/policy`,
    { mode: 'auto' },
  ],
  'post /api/v1/learning_spaces/{learning_space_id}/statements': ({ space }) => [
    'POST',
    `/api/v1/learning_spaces/${space.id}/statements`,
    { text: 'Mine.' },
  ],
  'patch /api/v1/statements/{statement_id}': ({ statement }) => [
    'PATCH',
    `/api/v1/statements/${statement.id}`,
    { kind: 'pitfall' },
  ],
  'post /api/v1/learning_spaces/{learning_space_id}/feedback': ({ space, session, statement }) => [
    'POST',
    `/api/v1/learning_spaces/${space.id}/feedback`,
    { statement_ids: [statement.id], session_id: session.id, helped: true },
  ],
  'post /api/v1/agent_skills': () => ['POST', '/api/v1/agent_skills'],
  'delete /api/v1/agent_skills/{skill_id}': ({ skill }) => ['DELETE', `/api/v1/agent_skills/${skill.id}`],
  'post /api/v1/learning_spaces/{learning_space_id}/skills': ({ space, skill }) => [
    'POST',
    `/api/v1/learning_spaces/${space.id}/skills`,
    { skill_id: skill.id },
  ],
  'delete /api/v1/learning_spaces/{learning_space_id}/skills/{skill_id}': ({ space, skill }) => [
    'DELETE',
    `/api/v1/learning_spaces/${space.id}/skills/${skill.id}`,
  ],
  'post /api/v1/session/{session_id}/lease': ({ path }) => [
    'POST',
    `${path}/lease`,
    { owner: 'w', ttl_ms: 1_000 },
  ],
  'delete /api/v1/session/{session_id}/lease': ({ path }) => ['DELETE', `${path}/lease?fence=1`],
  'post /api/v1/session/{session_id}/inbox': ({ path }) => [
    'POST',
    `${path}/inbox`,
    { mode: 'queue', kind: 'event', ...EVENT },
  ],
  'delete /api/v1/session/{session_id}/inbox/{input_id}': ({ path, input }) => [
    'DELETE',
    `${path}/inbox/${input}`,
  ],
  'post /api/v1/session/{session_id}/requests': ({ path }) => [
    'POST',
    `${path}/requests`,
    { kind: 'approval' },
  ],
  'post /api/v1/requests/{request_id}/resolve': ({ request }) => [
    'POST',
    `/api/v1/requests/${request.id}/resolve`,
    { decision: 'answer', answer: 1 },
  ],
  'post /api/v1/requests/resolve': ({ request }) => [
    'POST',
    '/api/v1/requests/resolve',
    { resolutions: [{ request_id: request.id, decision: 'answer', answer: 1 }] },
  ],
  'delete /api/v1/user/{identifier}': () => ['DELETE', `/api/v1/user/${SECRET}`],
}

/** A lease that is renewed is the key's own, claiming work needs the scope read, and personal tokens are for people. */
const APART = [
  'put /api/v1/session/{session_id}/lease',
  'post /api/v1/work/claim',
  'post /api/v1/personal_tokens',
  'delete /api/v1/personal_tokens/{token_id}',
]

const operations = guardedOperations
  .filter(({ method, scope }) => method !== 'get' && scope !== 'admin' && scope !== 'ingest')
  .filter(({ path, method }) => !APART.includes(`${method} ${path}`))
  .map(({ path, method }) => `${method} ${path}`)

describe('a key that may only write', () => {
  it('is tested with every operation that writes', () => {
    expect(Object.keys(WRITES).sort()).toEqual([...operations].sort())
  })

  it.each(operations)('is answered nothing that others stored: %s', async (operation) => {
    const filled = await fill()
    const [method, path, body] = WRITES[operation]!(filled)
    const form = path.endsWith('/agent_skills') ? await skillForm() : undefined
    const answer = await writer.request(method, path, form ?? { body })
    expect(answer.status, answer.text).toBeLessThan(300)
    expect(answer.text).not.toContain(SECRET)
    if (filled.session.user_id && !path.includes('/user/'))
      expect(answer.text).not.toContain(filled.session.user_id)
  })

  it('cannot claim work, which would return input', async () => {
    const body = { owner: 'w', ttl_ms: 1_000 }
    expectError(
      await writer.request('POST', '/api/v1/work/claim', { body }),
      403,
      'insufficient_scope',
      'read',
    )
  })

  it('is answered with the part of configs and meta that it sent, digit for digit', async () => {
    const { path, message, space } = await fill()
    const sent = '{"n":1.50,"gone":null}'
    const patch = async (target: string, field: string) =>
      (await writer.request('PATCH', target, { rawBody: `{ "${field}" : ${sent} }` })).text
    expect(await patch(`${path}/configs`, 'configs')).toContain(`"data":{"configs":${sent}}`)
    expect(await patch(`${path}/messages/${message.id}/meta`, 'meta')).toContain(`"data":{"meta":${sent}}`)
    const merged = await patch(`/api/v1/learning_spaces/${space.id}`, 'meta')
    expect(merged).toContain(`"user_id":null,"meta":${sent}`)
    const { configs } = expectOk<{ configs: object }>(await reader.request('GET', path))
    expect(configs).toEqual({ [SECRET]: SECRET, n: 1.5 })
  })

  it('is answered, for a session that is there, as if it had created it', async () => {
    const { session } = await fill()
    const create = (body: object) =>
      writer.request('POST', '/api/v1/session', { body: { use_uuid: session.id, ...body } })
    const bare = { ...session, configs: {}, user_id: null, disable_task_tracking: false }
    expect(expectOk(await create({}))).toEqual({ ...bare, updated_at: session.created_at })
    const { configs, disable_task_tracking, user_id } = session
    const whole = expectOk(await create({ user: SECRET, configs, disable_task_tracking }))
    expect(whole).toEqual({
      ...bare,
      configs,
      disable_task_tracking,
      user_id,
      updated_at: session.created_at,
    })
    expectError(await create({ configs: {} }), 409, 'session_exists')
  })

  it('gets of a retry what the first request was answered, made with another key', async () => {
    const headers = { 'Idempotency-Key': 'shared' }
    const body = { configs: { mine: 1 } }
    const first = expectOk(await reader.createSession(body, { headers }), 201)
    await reader.request('PATCH', `/api/v1/session/${first.id}/configs`, {
      body: { configs: { [SECRET]: 1 } },
    })
    const again = await writer.request('POST', '/api/v1/session', { body, headers })
    expect(expectOk(again, 201)).toEqual(first)
  })
})

describe('a key that may read', () => {
  it('is answered with the whole, as before', async () => {
    const { session, path } = await fill()
    const merged = await reader.request('PATCH', `${path}/configs`, { body: { configs: {} } })
    expect(expectOk(merged)).toEqual({ configs: { [SECRET]: SECRET } })
    const again = await reader.request('POST', '/api/v1/session', { body: { use_uuid: session.id } })
    expect(expectOk(again)).toMatchObject({ configs: { [SECRET]: SECRET }, user_id: session.user_id })
  })
})
