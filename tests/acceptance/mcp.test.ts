import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { expectError, expectOk } from '../harness/expectations.ts'
import { connectMcp, PROTOCOLS, TRANSPORTS } from '../harness/mcp_client.ts'
import { newSearchingProjects, untilIndexed } from '../harness/search.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { skillZip, uploadSkill } from '../harness/skills.ts'
import { issueToken } from '../harness/tokens.ts'

interface Walked {
  entries: { seq: number; left_out?: string; blocks?: Record<string, unknown>[] }[]
  has_more: boolean
  next_after_seq?: number
}

interface SentContext {
  messages: { id: string; message: { tool_calls?: { function: { name: string } }[] } }[]
}

interface FoundCall {
  result: { text: string; next_offset?: number }
}

const CALL_ID = 'call_1'
const LONG_RESULT = `${'0123456789'.repeat(7_000)}😀the end`
const DIGITS = '12345678901234567890.10'
const service = useSharedService()
let project: Project
let log: SessionLog
let skill_id: string

const call = { id: CALL_ID, type: 'function', function: { name: 'find_flight', arguments: '{"to":"OSL"}' } }
const message = (blob: object) => ({ kind: 'message', blob })

const itemsOf = async (one: SessionLog) => expectOk(await one.timeline()).items

beforeAll(async () => {
  project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  log = await newSessionLog(api, { configs: { agent: 'support' } })
  const failed = { role: 'tool', tool_call_id: CALL_ID, content: LONG_RESULT }
  expectOk(
    await log.batch([
      message({ role: 'user', content: 'Where is my flight?' }),
      message({ role: 'assistant', content: null, tool_calls: [call] }),
      message(failed),
    ]),
    201,
  )
  const rawBody = `{"type":"priced","data":{"price":${DIGITS}}}`
  expectOk(await api.request('POST', `/api/v1/session/${log.id}/events`, { rawBody }))
  const skill = await uploadSkill(service.node.url, project.token, skillZip('rebooking'))
  expect(skill.status).toBe(201)
  skill_id = ((await skill.json()) as { data: { id: string } }).data.id
})

describe.each(TRANSPORTS)('over %s', (transport) => {
  it.each(PROTOCOLS)(
    'the official client connects, lists and reads with $version',
    async ({ version, mode }) => {
      const { client, value } = await connectMcp(service.node.url, project.token, transport, mode)
      expect(client.getNegotiatedProtocolVersion()).toBe(version)
      const { sessions } = await value<{ sessions: unknown[] }>('list_sessions', {
        configs: { agent: 'support' },
      })
      expect(sessions).toMatchObject([{ id: log.id, configs: { agent: 'support' } }])
      const { entries } = await value<Walked>('read_session', { session_id: log.id, last: 4 })
      expect(entries).toMatchObject([
        { seq: 1, message_of: 'user', blocks: [{ text: 'Where is my flight?' }] },
        { seq: 2, message_of: 'assistant', blocks: [{ tool_call: { id: CALL_ID, name: 'find_flight' } }] },
        { seq: 3, message_of: 'tool', blocks: [{ tool_result: { call_seq: 2 } }] },
        { seq: 4, event: 'priced' },
      ])
      const { contents } = await client.readResource({ uri: `annals://session/${log.id}` })
      expect(contents).toMatchObject([
        { mimeType: 'application/json', text: expect.stringContaining('find_flight') },
      ])
      const skill = await client.readResource({ uri: `annals://skill/${skill_id}` })
      expect(skill.contents).toMatchObject([
        { mimeType: 'text/markdown', text: expect.stringContaining('name: rebooking') },
      ])
      const uris = (await client.listResources()).resources.map(({ uri }) => uri)
      expect(uris).toEqual(
        expect.arrayContaining([`annals://session/${log.id}`, `annals://skill/${skill_id}`]),
      )
    },
  )

  it('characters that make a name look like another are shown as escapes, and values stay what they are', async () => {
    const name = 'delete_all\u202e\u200b'
    const hidden = await newSessionLog(await service.newClient({ token: project.token }))
    const deceiving = { id: 'c', type: 'function', function: { name, arguments: '{}' } }
    expectOk(
      await hidden.batch([message({ role: 'assistant', content: null, tool_calls: [deceiving] })]),
      201,
    )
    const { client } = await connectMcp(service.node.url, project.token, transport)
    const read = await client.callTool({ name: 'read_session', arguments: { session_id: hidden.id } })
    const [{ text }] = read.content as unknown as [{ text: string }]
    expect(text).toContain('delete_all\\u202e\\u200b')
    expect(text).not.toContain('\u202e')
    expect(JSON.parse(text).entries[0].blocks[0].tool_call.name).toBe(name)
    await client.close()
  })

  it('a key that may only read gets no tool that writes, and calling one by its name stores nothing', async () => {
    const { token } = await issueToken(service.adminClient(), project.id, {
      name: 'reader',
      scopes: ['read'],
    })
    const all = await connectMcp(service.node.url, project.token, transport)
    const reading = await connectMcp(service.node.url, token, transport)
    const names = async ({ client }: typeof all) => (await client.listTools()).tools.map(({ name }) => name)
    expect((await names(all)).filter((name) => name.startsWith('append'))).toEqual(['append_event'])
    const { tools } = await reading.client.listTools()
    expect(tools.length).toBe((await names(all)).length - 4)
    expect(tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([])
    const before = await itemsOf(log)
    await expect(
      reading.call('append_event', { session_id: log.id, type: 'note', data: {} }),
    ).rejects.toThrow('append_event not found')
    expect(await itemsOf(log)).toEqual(before)
  })

  it("another project's session looks like one that does not exist, whatever is asked of it", async () => {
    const stranger = await connectMcp(service.node.url, (await service.newProject()).token, transport)
    const asked = (session_id: string) =>
      Promise.all([
        stranger.call('read_session', { session_id }),
        stranger.call('get_tool_call', { session_id, seq: 2 }),
        stranger.call('append_event', { session_id, type: 'note', data: {} }),
        stranger.client
          .readResource({ uri: `annals://session/${session_id}` })
          .catch(({ message, code }) => ({
            code,
            text: message,
          })),
      ])
    const unknown = randomUUID()
    const nobodys = await asked(unknown)
    expect(JSON.parse(JSON.stringify(nobodys).replaceAll(unknown, log.id))).toEqual(await asked(log.id))
    expect(nobodys).toMatchObject([{ refused: true }, { refused: true }, { refused: true }, { code: -32602 }])
    expect(await stranger.value('list_sessions', {})).toEqual({ sessions: [], next_cursor: null })
  })
})

it('a number keeps its digits', async () => {
  const { call } = await connectMcp(service.node.url, project.token)
  expect((await call('read_session', { session_id: log.id, after_seq: 3 })).text).toContain(DIGITS)
})

it('one tool call comes with its arguments, and a long result in pieces that make it up', async () => {
  const { value } = await connectMcp(service.node.url, project.token)
  let text = ''
  let pieces = 0
  for (let offset: number | undefined = 0; offset !== undefined; pieces += 1) {
    const asked: object = { session_id: log.id, seq: 2, call_id: CALL_ID, offset }
    const found: FoundCall = await value('get_tool_call', asked)
    expect(found).toMatchObject({ name: 'find_flight', arguments: '{"to":"OSL"}', result: { seq: 3 } })
    text += found.result.text
    offset = found.result.next_offset
  }
  expect(text).toBe(LONG_RESULT)
  expect(pieces).toBe(3)
  expect(await value('get_tool_call', { session_id: log.id, seq: 3 })).toMatchObject({ result: { seq: 3 } })
})

it('a context is fit to be sent, begins with its summary, and says what was left out and put in, in a bounded answer', async () => {
  const api = await service.newClient({ token: project.token })
  const killed = await newSessionLog(api)
  const pay = { id: 'call_2', type: 'function', function: { name: 'pay.now', arguments: '{}' } }
  const added = await killed.batch([
    message({ role: 'user', content: 'An old question' }),
    message({ role: 'tool', tool_call_id: 'of_nobody', content: 'An orphan' }),
    message({ role: 'assistant', content: 'half \ufdd0d800', tool_calls: [pay] }),
    message({ role: 'user', content: 'x'.repeat(30_000) }),
  ])
  const [, orphan, call_of] = expectOk(added, 201).items.map(({ id }) => id)
  const { value, call } = await connectMcp(service.node.url, project.token)
  const context = await value<SentContext>('read_context', { session_id: killed.id })
  const name = context.messages[1]?.message.tool_calls?.[0]?.function.name
  expect(name).toMatch(/^pay_now_\w+$/)
  expect(context).toMatchObject({
    messages: [
      { message: { role: 'user', content: 'An old question' } },
      { id: call_of, message: { content: 'half \ufffd' } },
      { id: call_of, message: { role: 'tool', content: 'No result was recorded.' } },
      { message: expect.stringMatching(/xx… \[\d+ characters in all\]$/) },
    ],
    compaction_seq: 0,
    omitted: [{ id: orphan }],
    added: [{ id: call_of }],
    names: { [String(name)]: 'pay.now' },
  })
  expect((await call('read_context', { session_id: killed.id })).text.length).toBeLessThan(100_000)
  const summary = { blob: { role: 'user', content: 'What was said' } }
  const body = { to_seq: 4, summary }
  expectOk(await api.request('POST', `/api/v1/session/${killed.id}/compactions`, { body }), 201)
  const compacted = await value('read_context', { session_id: killed.id })
  expect(compacted).toMatchObject({
    messages: [{ message: summary.blob }],
    compaction_seq: 5,
    omitted: [],
    added: [],
  })
})

it('a session is read in bounded answers that together have every entry once, however large they are', async () => {
  const api = await service.newClient({ token: project.token })
  const long = await newSessionLog(api)
  const large = (characters: number) => message({ role: 'user', content: 'x'.repeat(characters) })
  const small = Array.from({ length: 120 }, (_, at) => ({ kind: 'event', type: 'step', data: { at } }))
  expectOk(await long.batch([...small, large(200_000), large(200_000), large(400_000), ...small]), 201)
  const { call } = await connectMcp(service.node.url, project.token)
  const entries: Walked['entries'] = []
  for (let after_seq: number | undefined = 0; after_seq !== undefined; ) {
    const { text } = await call('read_session', { session_id: long.id, after_seq, limit: 100 })
    expect(text.length).toBeLessThan(100_000)
    const page = JSON.parse(text) as Walked
    entries.push(...page.entries)
    expect(page.has_more).toBe(page.next_after_seq !== undefined)
    after_seq = page.next_after_seq
  }
  expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 243 }, (_, at) => at + 1))
  expect(entries.filter(({ left_out }) => left_out !== undefined).map(({ seq }) => seq)).toEqual([123])
  expect(entries[120]!.blocks).toMatchObject([
    { text: expect.stringMatching(/^x+… \[200000 characters in all\]$/) },
  ])
})

it('a search that is off says so, and one that is on finds entries by their words, also after a page that is empty', async () => {
  const { id, token } = await service.newProject()
  const { call, value } = await connectMcp(service.node.url, token)
  for (const tool of ['search', 'ask'])
    expect(await call(tool, { q: 'umbrella' })).toMatchObject({
      refused: true,
      text: expect.stringMatching(/^search_off: .*annals project set <name> --search on/),
    })
  const body = { search: true }
  expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${id}`, { body }))
  const own = await newSessionLog(await service.newClient({ token }))
  expectOk(await own.addEvent('note', { text: 'a lost umbrella' }))
  const apart = Array.from({ length: 599 }, () => ({
    kind: 'event',
    type: 'note',
    data: { text: 'umbrella lost' },
  }))
  expectOk(await own.batch([...apart, { ...apart[0], data: { text: 'the end' } }]), 201)
  const find = (q: string, cursor?: string) =>
    value<{ found: unknown[]; next_cursor: string | null }>('search', { q, cursor })
  await vi.waitFor(async () => expect((await find('end')).found).toHaveLength(1), 20_000)
  let page = await find('"lost umbrella"')
  expect(page).toMatchObject({ found: [], next_cursor: expect.stringMatching(/./) })
  while (page.found.length === 0 && page.next_cursor) page = await find('"lost umbrella"', page.next_cursor)
  expect(page.found).toMatchObject([
    { session_id: own.id, seq: 1, text: expect.stringContaining('umbrella') },
  ])
})

it('a question in plain words is answered with the session that it is about, and what was said around', async () => {
  const [{ token }] = (await newSearchingProjects(service, 1)) as [Project]
  const api = await service.newClient({ token })
  const said = (...contents: string[]) => contents.map((content) => message({ role: 'user', content }))
  const [refund, weather] = [await newSessionLog(api), await newSessionLog(api)]
  expectOk(await refund.batch(said('Hello, this is Omar.', 'I complained about my refunds.', 'Bye.')), 201)
  expectOk(await weather.batch(said('Will it rain?', 'It will be sunny.')), 201)
  await untilIndexed(api)
  const { value } = await connectMcp(service.node.url, token)
  expect(await value('ask', { q: 'Did anybody complain about a refund?' })).toEqual({
    sessions: [
      {
        session_id: refund.id,
        title: 'Hello, this is Omar.',
        created_at: expect.any(String),
        score: expect.any(Number),
        entries: [
          {
            ...{ seq: 2, kind: 'message', role: 'user', created_at: expect.any(String) },
            score: expect.any(Number),
            ...{ text: 'I complained about my refunds.', before: 'Hello, this is Omar.', after: 'Bye.' },
          },
        ],
      },
    ],
    terms: ['anybody', 'complain', 'refund'],
    complete: true,
    indexed_through: expect.any(String),
  })
  expect(await value('ask', { q: 'complain', session_id: weather.id })).toMatchObject({ sessions: [] })
})

it('what was learnt is given for a task, and statement by statement', async () => {
  const api = await service.newClient({ token: project.token })
  const space = expectOk(await api.createLearningSpace({ meta: { topic: 'refunds' } }), 201)
  const text = 'Check the card before a refund.'
  const path = `/api/v1/learning_spaces/${space.id}/statements`
  expectOk(await api.request('POST', path, { body: { text } }), 201)
  const { value } = await connectMcp(service.node.url, project.token)
  const { learning_spaces } = await value<{ learning_spaces: unknown[] }>('list_learning_spaces', {})
  expect(learning_spaces).toContainEqual(
    expect.objectContaining({ id: space.id, meta: { topic: 'refunds' } }),
  )
  const asked = { learning_space_id: space.id }
  const context = await value<{ text: string; ids: string[] }>('get_context', { ...asked, q: 'a refund' })
  expect(context.text).toContain(text)
  const { statements } = await value<{ statements: unknown[] }>('find_statements', asked)
  expect(statements).toMatchObject([{ id: context.ids[0], text, state: 'active' }])
})

it('an event is appended once, however often it is called with one key, and on the seq that was seen', async () => {
  const api = await service.newClient({ token: project.token })
  const own = await newSessionLog(api)
  const { value, call } = await connectMcp(service.node.url, project.token)
  const event = { session_id: own.id, type: 'note', data: { text: 'looks good' }, idempotency_key: 'once' }
  const first = await value('append_event', event)
  expect(await value('append_event', event)).toEqual(first)
  expect(await call('append_event', { ...event, idempotency_key: 'late', if_match: 0 })).toMatchObject({
    refused: true,
    text: expect.stringMatching(/^seq_conflict: /),
  })
  expect((await itemsOf(own)).map(({ seq }) => seq)).toEqual([1])
})

it('work is claimed, finished in one commit, and a request is answered for the call that was shown', async () => {
  const api = await service.newClient({ token: project.token })
  const own = await newSessionLog(api, { configs: { of: 'mcp' } })
  const { value, call } = await connectMcp(service.node.url, project.token)
  const at = `/api/v1/session/${own.id}`
  const input = { mode: 'queue', kind: 'event', type: 'go', data: { n: 1 } }
  const { id } = expectOk(await api.request<{ id: string }>('POST', `${at}/inbox`, { body: input }), 201)
  const asked = { owner: 'a', configs: { of: 'mcp' } }
  const { claimed } = await value<{ claimed: { fence: number } }>('claim_work', asked)
  expect(claimed).toMatchObject({ session_id: own.id, inputs: [{ id, data: { n: 1 } }] })
  expect(await value('claim_work', { ...asked, owner: 'b' })).toEqual({ claimed: null })
  const event = { type: 'done', data: {} }
  const finish = { session_id: own.id, fence: claimed.fence, apply: [id], event }
  expect(await value('finish_work', finish)).toEqual({ seqs: [1, 2] })
  expect(await call('finish_work', finish)).toMatchObject({
    refused: true,
    text: expect.stringMatching(/^not_pending: /),
  })
  const approval = { kind: 'approval', call: { name: 'pay', arguments: { eur: 5 } } }
  expectOk(await api.request('POST', `${at}/requests`, { body: approval }), 201)
  const { requests } = await value<{ requests: Array<{ id: string; call_sha256: string }> }>(
    'list_requests',
    { session_id: own.id },
  )
  const [request] = requests
  const yes = { request_id: request!.id, decision: 'approve', by: 'ada' }
  expect(await call('resolve_request', yes)).toMatchObject({ refused: true })
  const approved = { ...yes, call_sha256: request!.call_sha256 }
  expect(await value('resolve_request', approved)).toMatchObject({ state: 'resolved', seq: 4 })
  expect(await call('resolve_request', approved)).toMatchObject({
    refused: true,
    text: expect.stringMatching(/^resolved: .*"ada"/),
  })
})

it('over stdin and stdout, finds out without a write whether its key may write', async () => {
  const asked: string[] = []
  const proxy = createServer(async ({ method, url, headers }, response) => {
    asked.push(`${method} ${url}`)
    const { authorization = '' } = headers
    const answer = await fetch(`${service.node.url}${url}`, { method: method!, headers: { authorization } })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const { client } = await connectMcp(url, project.token, 'stdio')
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toContain('append_event')
  expect([...new Set(asked)]).toEqual(['GET /api/v1/key'])
  await client.close()
  proxy.close()
})

it.each([[['read']], [['write']], [['read', 'write']]])(
  'a key with the scopes %j is told these, and only a valid key is told anything',
  async (scopes) => {
    const key = await issueToken(service.adminClient(), project.id, { name: 'asks', scopes })
    const answer = await service.rawClient(key.token).request('GET', '/api/v1/key')
    expect(expectOk(answer)).toEqual({ id: key.id, project_id: project.id, scopes })
    expectError(await service.rawClient('sk-nobodys').request('GET', '/api/v1/key'), 401, 'unauthorized')
  },
)
