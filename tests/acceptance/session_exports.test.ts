import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Annals } from '@annals/client'
import { beforeAll, describe, expect, it } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const AT = '2026-11-20T10:00:01.000000Z'
const PICTURE = newBytes(40_000)
const CALL = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"q":"x"}' } }
const MESSAGES = [
  { format: 'openai', blob: { role: 'system', content: 'Be brief.' } },
  {
    format: 'openai',
    blob: {
      role: 'user',
      content: [
        { type: 'text', text: 'Find it' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE.toString('base64')}` } },
      ],
    },
  },
  { format: 'openai', blob: { role: 'assistant', content: null, tool_calls: [CALL] } },
  { format: 'openai', blob: { role: 'tool', tool_call_id: 'c1', content: 'there' } },
  { format: 'gemini', blob: { role: 'model', parts: [{ text: 'Found.' }] } },
]

let project: Project
let api: ApiClient
let log: SessionLog

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  log = await newSessionLog(api, { user: 'mia', configs: { agent: 'shop' } })
  const entries = [
    { kind: 'event', type: 'begun', data: { n: 1 } },
    ...MESSAGES.map((message) => ({ kind: 'message', ...message, occurred_at: AT })),
    { kind: 'message', blob: { role: 'user', content: 'Never mind' } },
  ]
  expectOk(await log.batch(entries), 201)
  const retract = { body: { last: 1 } }
  expectOk(await api.request('POST', `/api/v1/session/${log.id}/retractions`, retract))
})

const exported = (format: string, client: HttpClient = api, id = log.id) =>
  client.request('GET', `/api/v1/session/${id}/export`, { query: { format } })
const documentOf = async (format: string) => {
  const answer = await exported(format)
  expect(answer.status, answer.text).toBe(200)
  return JSON.parse(answer.text)
}
const OMITTED = { 'event begun': 1, 'event annals.retraction': 1, 'was retracted': 1 }

describe('GET /session/{id}/export', () => {
  it('returns conversations with their bytes in place, as messages are read, and counts what is left out', async () => {
    for (const format of ['openai', 'anthropic']) {
      const { messages, system, omitted, user, metadata, id } = await documentOf(format)
      const { items } = expectOk(await log.list({ format }))
      const all = system === undefined ? messages : [{ role: 'user', content: system }, ...messages]
      expect(all.slice(1)).toEqual(items.slice(1))
      expect(JSON.stringify(messages)).toContain(PICTURE.toString('base64'))
      expect({ omitted, user, id }).toEqual({ omitted: OMITTED, user: 'mia', id: log.id })
      expect(metadata).toEqual(expectOk(await api.getSession(log.id)).configs)
    }
  })

  it('returns the session and the items of its timeline as lines', async () => {
    const { text, headers } = await exported('jsonl')
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(headers['content-type']).toBe('application/x-ndjson')
    expect(lines[0]).toMatchObject({ kind: 'session', user: 'mia', id: log.id })
    expect(lines.slice(1)).toEqual(expectOk(await log.timeline({ limit: 100 })).items)
  })

  it('returns a trajectory from which an import restores every entry that was not taken back', async () => {
    const { text } = await exported('atif')
    expect(JSON.parse(text).final_metrics).toEqual({ total_steps: 4, extra: { omitted: OMITTED } })
    const file = join(commands.directory, 'run.json')
    await writeFile(file, text)
    const { token } = await service.newProject()
    await commands.annals(['import', file], { ANNALS_TOKEN: token })
    const { stdout } = await commands.annals(['sessions', 'list'], { ANNALS_TOKEN: token })
    const other = await service.newClient({ token })
    const { id } = JSON.parse(stdout)
    const { items } = expectOk<{ items: Record<string, unknown>[] }>(
      await other.request('GET', `/api/v1/session/${id}/timeline`),
    )
    const said = ({ kind, type, data, format, blob, occurred_at }: Record<string, unknown>) =>
      JSON.parse(JSON.stringify({ kind, type, data, format, blob, occurred_at }))
    const before = expectOk(await log.timeline({ limit: 100 })).items.slice(0, -2)
    expect(items.map(said)).toEqual(before.map(said))
  })

  it('puts the bytes of blobs that a message refers to into the file, and the characters that adapters escaped', async () => {
    const bytes = newBytes(1_000)
    await putBlob(service.node.url, project.token, bytes)
    const sha256 = sha256Of(bytes)
    const own = await newSessionLog(api)
    const reference = { annals_blob: sha256, media_type: 'image/png' }
    const content = [
      { type: 'text', text: 'zero \uFDD00' },
      { type: 'image_url', image_url: { url: reference } },
    ]
    expectOk(await own.add({ role: 'user', content }), 201)
    const [message] = JSON.parse((await exported('openai', api, own.id)).text).messages
    expect(message.content[0].text).toBe('zero \uFFFD')
    expect(message.content[1].image_url.url).toBe(`data:image/png;base64,${bytes.toString('base64')}`)
  })

  it('is refused without a format, without the scope to read, and for sessions that a token does not reach', async () => {
    expectError(await api.request('GET', `/api/v1/session/${log.id}/export`), 400, 'invalid_request')
    expectError(await exported('csv'), 400, 'invalid_request')
    expectError(await exported('jsonl', await service.newClient()), 404, 'session_not_found')
    const other = await newSessionLog(api)
    const own = service.rawClient(await tokenFor(api, { session_id: log.id }, ['read']))
    expectError(await exported('jsonl', own, other.id), 404, 'session_not_found')
    const { text } = await exported('openai', own)
    expect(JSON.parse(text)).not.toHaveProperty('user')
    const writing = service.rawClient(await tokenFor(api, { session_id: log.id }, ['append']))
    expectError(await exported('openai', writing), 403, 'insufficient_scope')
  })

  it('streams a log of nothing but events, as steps that hold no more than a few', async () => {
    const long = await newSessionLog(api)
    const event = { kind: 'event', type: 'note', data: { text: 'x'.repeat(2_000) } }
    const entries = Array.from({ length: 400 }, () => event)
    for (let n = 0; n < 2; n++) expectOk(await long.batch(entries), 201)
    const annals = new Annals({ url: service.node.url, token: project.token })
    const decoder = new TextDecoder()
    let text = ''
    for await (const piece of annals.sessions.export(long.id, { format: 'atif' }))
      text += decoder.decode(piece, { stream: true })
    const { steps, extra } = JSON.parse(text)
    const counts = [extra, ...steps.map((step: { extra: object }) => step.extra)].map(
      ({ annals }) => annals.entries.length,
    )
    expect(Math.max(...counts)).toBeLessThan(140)
    expect(counts.reduce((sum, n) => sum + n)).toBe(800)
  })
})
