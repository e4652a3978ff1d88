import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { costlyJson, costlyTexts, fittingJson, shareOf } from '../../fuzz/costly_shapes.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { sha256Of } from '../harness/blobs.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import type { RequestOptions } from '../harness/http_client.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { skillMd, skillZip, zipOf } from '../harness/skills.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const BODY_BYTES = 1_000_000
/** Of a request of the Model Context Protocol, and of the front matter of a skill. */
const MCP_BYTES = 65_000
const FRONT_BYTES = 8_000
const MCP = { accept: 'application/json, text/event-stream' }
const FORM = 'multipart/form-data; boundary='
type Part = [name: string, content: string | Buffer, filename?: string]

const watch = watchEventLoop()
const service = useService(watch.env)
let api: ApiClient
let session_id: string

beforeAll(async () => {
  api = await service.newClient()
  ;({ id: session_id } = await newSessionLog(api))
})

const check = (name: string, method: string, path: string, options: RequestOptions) =>
  watch.check(name, () => api.request(method, path, options))

const texts = costlyTexts(BODY_BYTES).map(([name, text]): [string, string] => [
  name,
  fittingJson(text, BODY_BYTES),
])
const fitting = (bytes: number): [string, string][] => [
  ...costlyTexts(bytes).map(([name, text]): [string, string] => [name, fittingJson(text, bytes)]),
  ...costlyJson(bytes),
]

function checkForm(name: string, path: string, parts: Part[], type = FORM) {
  const boundary = `----form${randomBytes(12).toString('hex')}`
  const pieces = parts.flatMap(([name, content, filename]) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`
    return [Buffer.from(head), Buffer.from(content as string), Buffer.from('\r\n')]
  })
  const rawBody = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)])
  return check(name, 'POST', `/api/v1/${path}`, { rawBody, headers: { 'Content-Type': type + boundary } })
}

describe('the event loop is held for 20 ms at most', { timeout: 300_000 }, () => {
  it('by any zip of a skill', async () => {
    const files = shareOf(costlyTexts(20_000), 0, 190).map(([, text], n) => [`${n}`, text])
    const folder = '/a'.repeat(200)
    const entries = Array.from({ length: 1_000 }, (_, n) => ({ path: `${n}${folder}/`, content: '' }))
    const large = { path: 'SKILL.md', content: skillMd('large') + 'é'.repeat(4_000_000) }
    const zips: [string, Buffer][] = [
      ['a large file', zipOf([large])],
      ['many files', skillZip('many', Object.fromEntries(files))],
      ['many folders', zipOf(entries)],
    ]
    const described = fitting(FRONT_BYTES)
    for (const [name, value] of IS_THOROUGH ? described : shareOf(described, 0, 6)) {
      const content = `---\nname: long\ndescription: ${value}\n---\n`
      zips.push([`front matter of ${name}`, zipOf([{ path: 'SKILL.md', content }])])
    }
    for (const [name, zip] of zips) await checkForm(name, 'agent_skills', [['file', zip, 'skill.zip']])
    expect(watch.noted().join('\n')).toBe('')
  })

  it('by any field, name or file of a form', async () => {
    const zip = skillZip('small')
    const messages = `session/${session_id}/messages`
    for (const [name, json] of IS_THOROUGH ? texts : shareOf(texts, 1, 3)) {
      const text = json.slice(1, -1)
      const meta = `{"a":"${text.slice(0, 200_000)}"}`
      const payload = `{"format":"acontext","blob":${json}}`
      await checkForm(`meta: ${name}`, 'agent_skills', [
        ['file', zip, 'skill.zip'],
        ['meta', meta],
      ])
      await checkForm(`name: ${name}`, 'agent_skills', [[text, zip, 'skill.zip']])
      await checkForm(`payload: ${name}`, messages, [['payload', payload]])
      await checkForm(`field: ${name}`, messages, [
        ['payload', '{}'],
        [text, 'a'],
      ])
      await checkForm(`file name: ${name}`, messages, [
        ['payload', '{}'],
        ['a', zip, text],
      ])
    }
    const many = Array.from({ length: 20_000 }, (_, n): Part => [`f${n}`, 'a'])
    await checkForm('many parts', messages, many)
    const long = '\u0001'.repeat(20_000_000)
    await checkForm('a name of 20 MB', messages, [
      ['payload', '{}'],
      [long, 'a'],
    ])
    expect(watch.noted().join('\n')).toBe('')
  })

  it('by a blob of 25 MB, sent and read', async () => {
    const rawBody = randomBytes(25 * 1024 * 1024)
    const path = `/api/v1/blobs/${sha256Of(rawBody)}`
    const headers = { 'Content-Type': 'application/octet-stream' }
    await check('sent', 'PUT', path, { rawBody, headers })
    await check('read', 'GET', path, {})
    await check('of another hash', 'PUT', `/api/v1/blobs/${'0'.repeat(64)}`, { rawBody, headers })
    expect(watch.noted().join('\n')).toBe('')
  })

  /** A field with a length, as protobuf writes it. */
  const field = (number: number, content: Buffer): Buffer => {
    const length: number[] = []
    for (let rest = content.length; ; rest >>>= 7) {
      length.push(rest > 127 ? (rest & 127) | 128 : rest)
      if (rest <= 127) break
    }
    return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), content])
  }
  it.each(['traces', 'logs'])('by OpenTelemetry of any shape: %s', async (signal) => {
    const path = `/api/v1/otel/v1/${signal}`
    const span = `"traceId":"${'ab'.repeat(16)}","spanId":"${'cd'.repeat(8)}","name":"chat"`
    const sent = (value: string) =>
      `{"resourceSpans":[{"scopeSpans":[{"spans":[{${span},"attributes":[{"key":"gen_ai.input.messages","value":{"stringValue":${value}}}]}]}]}]}`
    const values = fitting(BODY_BYTES)
    for (const [name, value] of IS_THOROUGH ? values : shareOf(values, signal.length, 4)) {
      const headers = { 'Content-Type': 'application/json' }
      await check(`value: ${name}`, 'POST', path, { rawBody: sent(value), headers })
      await check(`body: ${name}`, 'POST', path, { rawBody: value, headers })
    }
    let nested: Buffer = Buffer.from('a')
    while (nested.length < 100_000) nested = field(1, field(5, nested))
    const one = Buffer.concat([
      field(1, Buffer.alloc(16, 1)),
      field(2, Buffer.alloc(8, 2)),
      field(5, Buffer.from('s')),
    ])
    const scope = Buffer.concat(Array.from({ length: 20_000 }, () => field(2, one)))
    const bodies: [string, Buffer][] = [
      ['nothing but noise', randomBytes(BODY_BYTES)],
      ['nested deeply', field(1, field(2, field(2, Buffer.concat([one, field(9, nested)]))))],
      ['20,000 spans', field(1, field(2, scope))],
    ]
    for (const [name, rawBody] of bodies)
      await check(name, 'POST', path, { rawBody, headers: { 'Content-Type': 'application/x-protobuf' } })
    expect(watch.noted().join('\n')).toBe('')
  })

  const tool = (name: string, given: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${name},"arguments":${given}}}`
  it.each([
    '@',
    '{"jsonrpc":"2.0","id":@,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":@}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":@}',
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":@}}',
    tool('@', '{}'),
    tool('"list_sessions"', '{"configs":{"a":@}}'),
    tool('"search"', '{"q":@}'),
    tool('"append_event"', '{"session_id":"#","type":"x","data":{"a":@}}'),
  ])('by any value in a request of MCP: %s', async (template) => {
    const sent = template.replace('#', session_id)
    const values = fitting(MCP_BYTES - sent.length)
    for (const [name, value] of IS_THOROUGH ? values : shareOf(values, template.length, 5))
      await check(name, 'POST', '/mcp', { rawBody: sent.replace('@', () => value), headers: MCP })
    expect(watch.noted().join('\n')).toBe('')
  })
})
