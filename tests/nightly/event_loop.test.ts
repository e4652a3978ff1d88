import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { costlyJson, costlyTexts, fittingJson, shareOf } from '../../fuzz/costly_shapes.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { describedOperations, type Operation } from '../harness/described_operations.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import { expectOk } from '../harness/expectations.ts'
import type { HttpClient, RequestOptions } from '../harness/http_client.ts'
import { ASSET_SHA256, oneOfEach } from '../harness/one_of_each.ts'
import { useService } from '../harness/service.ts'
import { placesOf } from '../harness/string_places.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { issueToken } from '../harness/tokens.ts'

const BODY_BYTES = 1024 * 1024 - 2_000
const TARGET_BYTES = 14_000
const MARK = '@@mark@@'
/** How many of the costly values each place gets. */
const VALUES = IS_THOROUGH ? 2 : 1

const watch = watchEventLoop()
const service = useService(watch.env)
let api: ApiClient
let admin: HttpClient
let ids: Record<string, string>

beforeAll(async () => {
  const { token } = await service.newProject()
  api = await service.newClient({ token })
  admin = service.adminClient()
  ;({ ids } = await oneOfEach(service.node.url, api, token))
  // Another one, whose settings change.
  const changed = await service.newProject()
  const { id: token_id } = await issueToken(admin, changed.id, { name: 'one' })
  Object.assign(ids, { project_id: changed.id, token_id, sha256: ASSET_SHA256 })
})

/** What the console and MCP clients ask for, beside what is described. */
const HIDDEN = Object.entries({
  '/console/data/figures': ['ids'],
  '/console/data/tree': ['id'],
  '/console/data/start': ['user', 'filter_by_configs', 'time_desc', 'at'],
  '/console/data/identifiers': ['ids'],
  '/console/data/users': ['ids', 'by'],
  '/console/data/over_time': ['user', 'filter_by_configs', 'from', 'to', 'by'],
}).map(([path, names]) => {
  const parameters = names.map((name) => ({ name, in: 'query' as const }))
  return { path, method: 'get', operation: { parameters } as Operation }
})
const OPERATIONS = [...describedOperations, ...HIDDEN]

describe('the event loop is held for 20 ms at most', () => {
  const check = (name: string, client: HttpClient, method: string, path: string, options: RequestOptions) =>
    watch.check(name, () => client.request(method, path, options))
  const texts = costlyTexts(BODY_BYTES)
  const strings = texts.map(([name, text]): [string, string] => [name, fittingJson(text, BODY_BYTES)])
  const values = [...strings, ...costlyJson(BODY_BYTES)]
  // As much as is worked on without leaving the event loop.
  const inline = [32_000, 8_000].flatMap((bytes) => [
    ...costlyTexts(bytes).map(([name, text]): [string, string] => [name, JSON.stringify(text)]),
    ...costlyJson(bytes),
  ])
  const short = costlyTexts(TARGET_BYTES / 3)

  it('by any text in a path, a query or a header', async () => {
    let place = 0
    for (const described of OPERATIONS) {
      const client = described.path.startsWith('/admin/') ? admin : api
      const count = placesOf(described, ids, '').length
      for (const [name, text] of shareOf(short, place, VALUES))
        for (const placed of placesOf(described, ids, text).slice(0, count)) {
          if (placed.place.startsWith('body')) continue
          place += 1
          const { path, headers, body } = placed
          const title = `${described.method} ${described.path}, ${placed.place}: ${name}`
          await check(title, client, described.method.toUpperCase(), path, {
            headers,
            ...(body !== undefined && { body }),
          })
        }
    }
    expect(watch.noted().join('\n')).toBe('')
  })

  it('by any value in a body', async () => {
    let place = 0
    for (const described of OPERATIONS) {
      const client = described.path.startsWith('/admin/') ? admin : api
      for (const placed of placesOf(described, ids, MARK)) {
        if (!placed.place.startsWith('body')) continue
        place += 1
        const isName = placed.place.endsWith('(name)')
        for (const [name, value] of shareOf(isName ? strings : values, place, VALUES)) {
          const rawBody = JSON.stringify(placed.body).replaceAll(JSON.stringify(MARK), value)
          const title = `${described.method} ${described.path}, ${placed.place}: ${name}`
          await check(title, client, described.method.toUpperCase(), placed.path, { rawBody })
        }
      }
    }
    expect(watch.noted().join('\n')).toBe('')
  })

  it('by any name of a parameter, a header or a field that there is not', async () => {
    let place = 0
    const inner = ['spaces in the middle', JSON.stringify(`a${' '.repeat(BODY_BYTES - 10)}b`)] as const
    for (const { path, method, operation } of OPERATIONS) {
      const client = path.startsWith('/admin/') ? admin : api
      const real = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => ids[name]!)
      const title = `${method} ${path}`
      await check(
        `${title}: spaces`,
        client,
        method.toUpperCase(),
        `${real}?a${'+'.repeat(TARGET_BYTES)}b=1`,
        {},
      )
      if (!operation.requestBody) continue
      place += 1
      for (const [name, text] of [inner, ...shareOf(strings, place, 2 * VALUES - 1)])
        await check(`${title}: ${name}`, client, method.toUpperCase(), real, { rawBody: `{${text}:1}` })
    }
    expect(watch.noted().join('\n')).toBe('')
  })

  let templates = 0
  it.each([
    ['events', '{"type":"x","data":{"a":@}}'],
    ['messages', '{"blob":{"role":"user","content":@}}'],
    ['messages', '{"format":"anthropic","blob":{"role":"user","content":[{"type":"later","a":@}]}}'],
    ['messages', '{"format":"responses","blob":{"type":"mcp_call","output":@}}'],
    ['retractions', '{"last":1,"entries":[{"kind":"event","type":"x","data":{"a":@}}]}'],
    ['entries', '{"entries":[{"kind":"event","type":"x","data":{"a":@}}]}'],
    ['entries', '{"entries":[{"kind":"message","bl\\u006fb":{"role":"user","content":@}}]}'],
    ['entries', '{"entries":@}'],
  ])('by any value in what is appended: %s %s', async (resource, template) => {
    const all = [...values, ...inline]
    const count = IS_THOROUGH ? all.length : Math.ceil(all.length / 6)
    for (const [name, value] of shareOf(all, templates++, count)) {
      const rawBody = template.replace('@', () => value)
      await check(`${name}, ${value.length}`, api, 'POST', `/api/v1/session/${ids.session_id}/${resource}`, {
        rawBody,
      })
    }
    expect(watch.noted().join('\n')).toBe('')
  })

  it('by messages with attachments of 18 MiB, and by reading them', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const path = `/api/v1/session/${id}/messages`
    const url = `data:image/png;base64,${randomBytes(18 * 1024 * 1024).toString('base64')}`
    const rawBody = JSON.stringify({
      blob: { role: 'user', content: [{ type: 'image_url', image_url: { url } }] },
    })
    await check('sent', api, 'POST', path, { rawBody })
    await check('sent as text', api, 'POST', path, { rawBody: rawBody.replace('base64,', 'base64, ') })
    await check('read', api, 'GET', `${path}?limit=1`, {})
    await check('read in another format', api, 'GET', `${path}?limit=1&format=gemini`, {})
    expect(watch.noted().join('\n')).toBe('')
  })

  it('in every operation that takes a body, of which event_loop_bodies.test.ts has the others', () => {
    const kinds = describedOperations.flatMap(({ operation }) =>
      Object.keys(operation.requestBody?.content ?? {}),
    )
    const known = [
      'application/json',
      'multipart/form-data',
      'application/octet-stream',
      'application/x-protobuf',
    ]
    expect(new Set(kinds)).toEqual(new Set(known))
  })
})
