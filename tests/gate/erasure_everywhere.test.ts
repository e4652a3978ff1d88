import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, it, vi } from 'vitest'
import type { Asked, Reply } from '../../lab/model_server.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { putBlob, sha256Of } from '../harness/blobs.ts'
import { describedOperations, resolveSchema } from '../harness/described_operations.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, calls, result, useModelProjects, user } from '../harness/model_project.ts'
import { switchSearch, untilIndexed } from '../harness/search.ts'
import { useService } from '../harness/service.ts'
import { skillZip, uploadSkill } from '../harness/skills.ts'
import { placesOf } from '../harness/string_places.ts'
import { tablesThatMention } from '../harness/tables_that_mention.ts'
import { type Receiver, startReceiver } from '../harness/webhook_receiver.ts'

/*
 * Words that nobody else uses are sent to every place where an operation takes a text, and from there into all that is
 * derived: statements of rules and of a model, skills, search, deliveries. Then their owner is erased, and every column of
 * every table is searched for them.
 */

// Keys are looked up anew by each request, so that a node knows at once that a project has webhooks.
const service = useService({ ANNALS_TOKEN_CACHE_MS: '0' })
const newModelProject = useModelProjects(service)

type Described = (typeof describedOperations)[number]
type Ids = Record<string, string>

/** Letters only: what has digits is kept out of statements. */
const newWord = () => `q${[...randomBytes(14)].map((byte) => String.fromCharCode(97 + (byte % 26))).join('')}`
const WORDS = /q[a-z]{14}/g

/** Says in its statements every word that it was shown, and cites only the run of a bystander, if there is one. */
function parrot({ step, data }: Asked): Reply {
  if (step === 'curate')
    return {
      answer: {
        decisions: data.candidates!.map(({ number }) => ({
          candidate: number,
          action: 'add',
          statement: null,
        })),
      },
    }
  const runs = data.runs!
  const ofAgent = (run: (typeof runs)[number]) => run.entries.find(({ by }) => by === 'agent')
  const cited = runs.find((run) => run.entries.some(({ text }) => text.includes('bystander'))) ?? runs[0]!
  const entry = ofAgent(cited)
  const words = runs.flatMap(({ entries }) => entries.flatMap(({ text }) => text.match(WORDS) ?? []))
  if (!entry || words.length === 0) return { answer: { statements: [] } }
  const lines = Array.from({ length: 5 }, (_, line) => words.slice(line * 8, line * 8 + 8).join(' '))
  return {
    answer: {
      statements: lines
        .filter((line) => line !== '')
        .map((line) => ({
          kind: 'pitfall',
          text: `${runs.length > 1 ? 'Rather than all else avoid' : 'Beware of'} ${line}.`,
          tool: /^(q[a-z]{14}) \{/m.exec(entry.text)?.[1] ?? null,
          cites: [{ run: cited.run, seq: entry.seq, quote: entry.text.slice(0, 80) }],
        })),
    },
  }
}

/** The places of an operation, each with a word of its own, as requests that ought to be accepted. */
function* requestsOf(described: Described, ids: Ids) {
  const schema = described.operation.requestBody?.content['application/json']?.schema
  const required = schema ? (resolveSchema(schema).required ?? []) : []
  const count = placesOf(described, ids, '').length
  for (let at = 0; at < count; at++) {
    const word = newWord()
    const { place, path, headers, body } = placesOf(described, ids, word)[at]!
    const given = body as Record<string, unknown> | undefined
    const needed = Object.entries(given ?? {}).filter(
      ([name, value]) =>
        name === 'user' || required.includes(name) || JSON.stringify([name, value]).includes(word),
    )
    const bodies = given ? [given, Object.fromEntries(needed)] : [undefined]
    // Not everything that may be sent may be sent together.
    const tries = bodies.map((one) => ({ path, headers, ...(one && { body: withIds(one, ids, word) }) }))
    yield { word, place: `${described.method} ${described.path} ${place}`, tries }
  }
}

/** What would make something else of a request, or have it refused. */
const NOT_TOGETHER = new Set([
  ...['use_uuid', 'id', 'ids', 'after_seq', 'from_seq', 'parent', 'if_match', 'expires_in_s', 'secret'],
])

/** What a body names must be there, and what it makes must not be. */
function withIds(value: unknown, ids: Ids, word: string): unknown {
  if (Array.isArray(value)) return value.map((one) => withIds(one, ids, word))
  if (typeof value !== 'object' || value === null) return value
  const known: Record<string, unknown> = {
    ...ids,
    user: ids.identifier,
    statement_ids: [ids.statement_id],
    to_seq: 1,
    mode: 'suggest',
  }
  const left = Object.entries(value).filter(([name, one]) => one === word || !NOT_TOGETHER.has(name))
  return Object.fromEntries(
    left.map(([name, one]) => [name, one !== word && name in known ? known[name] : withIds(one, ids, word)]),
  )
}

/** Sends words to these operations, and adds them to `words`. Returns how many were accepted. */
async function feed(
  api: Pick<ApiClient, 'request'>,
  operations: Described[],
  ids: Ids,
  words: Map<string, string>,
): Promise<number> {
  let accepted = 0
  for (const described of operations)
    for (const { word, place, tries } of requestsOf(described, ids)) {
      // That is somebody else's then.
      if (place.endsWith('/user')) continue
      words.set(word, place)
      for (const { path, ...options } of tries) {
        const { status, text } = await api.request(described.method.toUpperCase(), path, options)
        expect(status, `${place}: ${text}`).toBeLessThan(500)
        if (status >= 300) continue
        accepted += 1
        break
      }
    }
  return accepted
}

const writes = describedOperations.filter(({ method }) => method !== 'delete')
const under = (...prefixes: string[]) =>
  writes.filter(({ path }) => prefixes.some((prefix) => path.startsWith(prefix)))

/** Waits until the calls of tools in all that is stored are counted, which the first request begins. */
async function untilCounted(api: ApiClient): Promise<void> {
  for (let complete = false; !complete; )
    complete = expectOk(await api.request<{ complete: boolean }>('GET', '/api/v1/tools')).complete
}

/** A project with search, figures of tools, a webhook whose receiver refuses, a model, and a space that learns from everybody. */
async function prepare() {
  const made = await newModelProject(parrot)
  const { api, project, newSpace } = made
  await switchSearch(service.adminClient(), project.id, true)
  await untilIndexed(api)
  await untilCounted(api)
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const receiver = await startReceiver(secret, () => 500)
  receivers.push(receiver)
  const hook = { url: `${receiver.url}/hook`, events: ['message', 'event'], secret }
  expectOk(await api.request('POST', '/api/v1/webhooks', { body: hook }), 201)
  const words = new Map<string, string>()
  const word = (place: string) => {
    const made = newWord()
    words.set(made, place)
    return made
  }
  return { ...made, words, word, shared: await newSpace('suggest') }
}
type Prepared = Awaited<ReturnType<typeof prepare>>

/** Runs of one task, of the one who goes and of one who stays, that rules and a model learn from. Returns the session that goes. */
async function learn({ shared, addRun, reflected, statementsOf, post, api, word }: Prepared, goer?: string) {
  const tool = word('name of a tool')
  const failing = [
    calls(tool, { [word('name of an argument')]: word('argument') }, 'c1'),
    result(`Error: no ${word('error of a tool')} in ${word('result')}`, 'c1'),
  ]
  const repair = calls(tool, { [word('argument of the repair')]: word('value of the repair') }, 'c2')
  const said = [
    user(`${word('words of a user')} ${word('more words of a user')}`),
    ...failing,
    repair,
    result(word('result of the repair'), 'c2'),
    agent(`I did ${word('words of the agent')}`),
  ]
  const outcome = { reward: 0, group: 'task', label: word('label') }
  const session_id = await reflected(shared, await addRun(shared, goer, said, outcome))
  const others = [user('Go.'), agent('I am the bystander.')]
  await reflected(shared, await addRun(shared, 'bystander', others, { reward: 1, group: 'task' }))
  const statements = await statementsOf(shared)
  expect(statements.map(({ author }) => author)).toEqual(expect.arrayContaining(['model', 'rule']))
  expect(statements.some(({ text }) => text.startsWith('Rather'))).toBe(true)
  // Those that are approved are in versions of a skill, too.
  for (const { id } of statements)
    expectOk(await api.request('PATCH', `/api/v1/statements/${id}`, { body: { state: 'active' } }))
  const feedback = { statement_ids: statements.map(({ id }) => id), session_id, helped: true }
  expectOk(await post(`/learning_spaces/${shared}/feedback`, feedback))
  return session_id
}

/** A message with an attachment in the session, a space with a statement, and a skill. */
async function belongings({ api, project, word }: Prepared, session_id: string, identifier: string) {
  const created = async (path: string, body: unknown) =>
    expectOk(await api.request<{ id: string }>('POST', `/api/v1/${path}`, { body }), 201).id
  const bytes = Buffer.from(word('bytes of a blob'))
  await putBlob(service.node.url, project.token, bytes)
  const file = { annals_blob: sha256Of(bytes), media_type: 'text/plain' }
  expectOk(await api.appendEvent(session_id, { type: 'file', data: file }))
  const message_id = await created(`session/${session_id}/messages`, { blob: user('Hello.') })
  const learning_space_id = await created('learning_spaces', { user: identifier })
  const space = `learning_spaces/${learning_space_id}`
  const statement_id = await created(`${space}/statements`, { text: `Never say ${word('statement')}.` })
  const zip = skillZip(word('name of a skill'), { [`${word('path of a file')}.md`]: word('file of a skill') })
  const uploaded = await uploadSkill(service.node.url, project.token, zip, { user: identifier })
  expect(uploaded.status).toBe(201)
  const { data: skill } = (await uploaded.json()) as { data: { id: string } }
  return { session_id, message_id, learning_space_id, statement_id, skill_id: skill.id, identifier }
}

/** No table has any of these words, but for the tables that are named. */
async function expectGone({ project, words }: Prepared, but: string[] = []) {
  const tablesWith = async (some: string[]) => {
    const tables = await tablesThatMention(service.databaseUrl, project.id, some)
    return tables.filter((table) => !but.includes(table))
  }
  await vi.waitFor(
    async () => {
      if ((await tablesWith([...words.keys()])).length === 0) return
      const found = []
      for (const [word, place] of words)
        for (const table of await tablesWith([word])) found.push(`${table}: ${place}`)
      expect(found).toEqual([])
    },
    { timeout: 60_000, interval: 2_000 },
  )
}

async function expectStored({ api, project, words }: Prepared, tables: string[]) {
  await untilIndexed(api)
  await untilCounted(api)
  const stored = await tablesThatMention(service.databaseUrl, project.id, [...words.keys()])
  expect(stored).toEqual(expect.arrayContaining(tables))
}

const OF_SESSION = [
  ...['entries', 'idempotency_keys', 'search_entries', 'session_readings', 'sessions', 'space_sessions'],
  'tool_calls',
]
const LEARNT = ['skill_versions', 'skills', 'statement_cites', 'statements']
const OF_USER = ['blob_chunks', 'learning_spaces', 'skill_files']

const receivers: Receiver[] = []
afterAll(() => Promise.all(receivers.map((receiver) => receiver.close())))

describe('no table keeps a word', { timeout: 240_000 }, () => {
  it('of a session that was deleted', async () => {
    const prepared = await prepare()
    const { api, words } = prepared
    const session_id = await learn(prepared)
    const message = { blob: user('Hello.') }
    const path = `/api/v1/session/${session_id}`
    const { id: message_id } = expectOk(
      await api.request<{ id: string }>('POST', `${path}/messages`, { body: message }),
      201,
    )
    // A copy is a session of its own.
    const operations = under('/api/v1/session/{', '/api/v1/entries').filter(
      ({ path }) => !path.endsWith('/copy'),
    )
    const accepted = await feed(api, operations, { session_id, message_id }, words)
    expect(accepted).toBeGreaterThan(40)
    await expectStored(prepared, [...OF_SESSION, ...LEARNT])
    expectOk(await api.deleteSession(session_id))
    await expectGone(prepared)
  })

  it('of a user who was erased', async () => {
    const prepared = await prepare()
    const { api, word, words } = prepared
    const identifier = word('identifier')
    const ids = await belongings(prepared, await learn(prepared, identifier), identifier)
    const theirs = under(
      '/api/v1/session',
      '/api/v1/entries',
      '/api/v1/learning_spaces',
      '/api/v1/statements',
    )
    const accepted = await feed(
      api,
      [...theirs, ...under('/api/v1/agent_skills', '/api/v1/user')],
      ids,
      words,
    )
    expect(accepted).toBeGreaterThan(60)
    await expectStored(prepared, [...OF_SESSION, ...LEARNT, ...OF_USER, 'users'])
    expectOk(await api.request('DELETE', `/api/v1/user/${identifier}`))
    await expectGone(prepared)
  })

  it('of a project that was deleted, but for the audit of what its operator did', async () => {
    const prepared = await prepare()
    const { api, project, word, words } = prepared
    const identifier = word('identifier')
    const ids = await belongings(prepared, await learn(prepared, identifier), identifier)
    const accepted = await feed(api, under('/api/v1/'), ids, words)
    expect(accepted).toBeGreaterThan(60)
    const hook = { url: `https://${word('host')}.example.com/${word('path')}`, events: ['event.never'] }
    expectOk(await api.request('POST', '/api/v1/webhooks', { body: hook }), 201)
    const admin = service.adminClient()
    const path = `/admin/v1/projects/${project.id}`
    const key = { name: word('name of a key'), scopes: ['read'] }
    expectOk(await admin.request('POST', `${path}/tokens`, { body: key }), 201)
    const model = {
      url: `https://example.com/${word('model url')}`,
      name: word('model'),
      key: word('model key'),
    }
    expectOk(await admin.request('PATCH', path, { body: { model } }))
    const tables = [...OF_SESSION, ...LEARNT, ...OF_USER, 'users', 'webhooks', 'api_keys', 'projects']
    await expectStored(prepared, tables)
    expectOk(await admin.request('DELETE', path))
    await expectGone(prepared, ['audit'])
  })
})
