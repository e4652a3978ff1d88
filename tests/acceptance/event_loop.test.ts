import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { costlyJson, costlyTexts } from '../../fuzz/costly_shapes.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { describedOperations } from '../harness/described_operations.ts'
import { STRETCH_MS_MAX, watchEventLoop } from '../harness/event_loop_watch.ts'
import { expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { HttpClient, RequestOptions } from '../harness/http_client.ts'
import { useService } from '../harness/service.ts'
import { placesOf } from '../harness/string_places.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

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
  api = await service.newClient()
  admin = service.adminClient()
  const { id: session_id } = expectOk(await api.createSession({ user: 'omar' }), 201)
  // The first message of a process has the tables of the token counter read, which is done once.
  const blob = { role: 'user', content: 'Hello' }
  expectOk(await api.request('POST', `/api/v1/session/${session_id}/messages`, { body: { blob } }), 201)
  ids = {
    session_id,
    learning_space_id: NOBODYS_ID,
    message_id: NOBODYS_ID,
    identifier: 'nobody',
    project_id: NOBODYS_ID,
    token_id: NOBODYS_ID,
  }
})

/** Those of many that a place gets, another part for each, so that all places together get all of them. */
const shareOf = <T>(many: readonly T[], place: number, count: number): T[] =>
  Array.from({ length: count }, (_, index) => many[(place * count + index) % many.length]!)

/** As much of a text, as JSON, as a body may have; some characters are six as JSON. */
function fittingJson(text: string): string {
  const json = JSON.stringify(text)
  return Buffer.byteLength(json) > BODY_BYTES ? fittingJson(text.slice(0, text.length / 2)) : json
}

describe('the event loop is held for 20 ms at most', () => {
  const long: string[] = []
  const check = async (
    name: string,
    client: HttpClient,
    method: string,
    path: string,
    options: RequestOptions,
  ) => {
    const stretch_ms = await watch.stretchOf(() => client.request(method, path, options))
    if (stretch_ms > STRETCH_MS_MAX) long.push(`${name}: ${stretch_ms.toFixed(0)} ms`)
  }
  const texts = costlyTexts(BODY_BYTES)
  const strings = texts.map(([name, text]): [string, string] => [name, fittingJson(text)])
  const values = [...strings, ...costlyJson(BODY_BYTES)]
  // As much as is worked on without leaving the event loop.
  const inline = [32_000, 8_000].flatMap((bytes) => [
    ...costlyTexts(bytes).map(([name, text]): [string, string] => [name, JSON.stringify(text)]),
    ...costlyJson(bytes),
  ])
  const short = costlyTexts(TARGET_BYTES / 3)

  it('by any text in a path, a query or a header', async () => {
    let place = 0
    for (const described of describedOperations) {
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
    expect(long.splice(0)).toEqual([])
  })

  it('by any value in a body', { timeout: 120_000 }, async () => {
    let place = 0
    for (const described of describedOperations) {
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
    expect(long.splice(0)).toEqual([])
  })

  it('by any name of a parameter, a header or a field that there is not', { timeout: 60_000 }, async () => {
    let place = 0
    for (const { path, method, operation } of describedOperations) {
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
      for (const [name, text] of [strings[0]!, ...shareOf(strings, place, 2 * VALUES - 1)])
        await check(`${title}: ${name}`, client, method.toUpperCase(), real, { rawBody: `{${text}:1}` })
    }
    expect(long.splice(0)).toEqual([])
  })

  let templates = 0
  it.each([
    ['events', '{"type":"x","data":{"a":@}}'],
    ['messages', '{"blob":{"role":"user","content":@}}'],
    ['messages', '{"format":"anthropic","blob":{"role":"user","content":[{"type":"later","a":@}]}}'],
    ['messages', '{"format":"responses","blob":{"type":"mcp_call","output":@}}'],
    ['entries', '{"entries":[{"kind":"event","type":"x","data":{"a":@}}]}'],
    ['entries', '{"entries":@}'],
  ])('by any value in what is appended: %s %s', { timeout: 60_000 }, async (resource, template) => {
    const all = resource === 'entries' ? values : [...values, ...inline]
    const count = IS_THOROUGH ? all.length : Math.ceil(all.length / 3)
    for (const [name, value] of shareOf(all, templates++, count)) {
      const rawBody = template.replace('@', () => value)
      await check(`${name}, ${value.length}`, api, 'POST', `/api/v1/session/${ids.session_id}/${resource}`, {
        rawBody,
      })
    }
    expect(long.splice(0)).toEqual([])
  })

  it('by messages with attachments of 18 MiB, and by reading them', { timeout: 60_000 }, async () => {
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
    expect(long.splice(0)).toEqual([])
  })

  it('by reading messages of a megabyte in any format', { timeout: 60_000 }, async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const call = (index: number) => ({
      id: `call_${index}`,
      type: 'function',
      function: { name: 'f', arguments: '{"a":[{},{},1e10]}' },
    })
    const calls = {
      role: 'assistant',
      content: null,
      tool_calls: Array.from({ length: 9_000 }, (_, n) => call(n)),
    }
    const texts = {
      role: 'user',
      content: Array.from({ length: 25_000 }, () => ({ type: 'text', text: 'a' })),
    }
    const results = Array.from({ length: 900 }, (_, n) => ({
      role: 'tool',
      tool_call_id: `call_${n}`,
      content: 'b',
    }))
    for (const blob of [calls, texts])
      expectOk(await api.request('POST', `/api/v1/session/${id}/messages`, { body: { blob } }), 201)
    const items = results.map((_, n) => ({
      kind: 'message',
      format: 'responses',
      blob: { type: 'function_call', call_id: `item_${n}`, name: 'f', arguments: '{"a":[{},{},1e10]}' },
    }))
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries: items } }), 201)
    const entries = results.map((blob) => ({ kind: 'message', blob }))
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
    for (const format of ['openai', 'anthropic', 'gemini', 'acontext', 'responses'])
      for (const query of ['', '&limit=1', '&limit=50&time_desc=true'])
        await check(
          `${format}${query}`,
          api,
          'GET',
          `/api/v1/session/${id}/messages?format=${format}${query}`,
          {},
        )
    for (const path of [
      'timeline',
      'timeline?limit=200&time_desc=true',
      'messages?limit=200&with_events=true',
    ])
      await check(path, api, 'GET', `/api/v1/session/${id}/${path}`, {})
    expect(long.splice(0)).toEqual([])
  })

  it('by a list of 200 sessions with large configs', { timeout: 60_000 }, async () => {
    const client = await service.newClient()
    const configs = { a: costlyTexts(60_000).find(([name]) => name === 'emoji')![1], b: 'large' }
    for (let count = 0; count < 200; count++)
      expectOk(await client.request('POST', '/api/v1/session', { body: { configs } }), 201)
    const filter = encodeURIComponent(JSON.stringify({ b: 'large' }))
    for (const query of ['limit=200', 'limit=200&time_desc=true', `limit=200&filter_by_configs=${filter}`])
      await check(query, client, 'GET', `/api/v1/session?${query}`, {})
    expect(long.splice(0)).toEqual([])
  })
})
