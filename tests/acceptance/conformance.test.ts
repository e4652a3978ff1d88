import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { PROMISES, runConformance } from '@annals/conformance'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const BIN = fileURLToPath(new URL('../../packages/conformance/dist/main.js', import.meta.url))

/** A busy machine may take this long. */
const MS_MAX = 100_000

/** A request on its way through the proxy; a fault changes it. */
interface Request {
  method: string
  url: URL
  headers: Record<string, string>
  body: string
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the service answers
type Data = any

/** How a server breaks a promise. */
interface Fault {
  /** Changes a request, or answers it in place of the service. */
  asks?(request: Request): Data | undefined
  /** Changes the data of an answer. */
  answers?(request: Request, data: Data): void
  /** Frames of a live tail in place of one. */
  sends?(frame: string): string[]
}

const is = ({ method, url }: Request, wanted: string, path: RegExp) =>
  method === wanted && path.test(url.pathname)
const changesBody =
  (path: RegExp, change: (body: Data) => void): NonNullable<Fault['asks']> =>
  (request) => {
    if (!is(request, 'POST', path)) return
    const body = JSON.parse(request.body)
    change(body)
    request.body = JSON.stringify(body)
  }
const forgets =
  (header: string): NonNullable<Fault['asks']> =>
  ({ headers }) => {
    delete headers[header]
  }

let owner: Project
let stranger: Project

/** What each fault is seen as: a promise, and what the report says. */
const FAULTS: Array<[fault: string, promise: string, says: RegExp, Fault]> = [
  [
    'drops an entry from its timeline',
    'order',
    /^The seqs of the timeline/,
    {
      answers: (request, { items }) => {
        if (is(request, 'GET', /\/timeline$/)) items.splice(2, 1)
      },
    },
  ],
  [
    'answers a seq twice',
    'order',
    /^The seqs that the writers were answered/,
    {
      answers: (request, data) => {
        if (is(request, 'POST', /\/events$/) && data.seq > 1) data.seq = 1
      },
    },
  ],
  [
    'shows a later entry first',
    'prefix',
    /^What a reader saw beside the writers/,
    {
      answers: (request, data) => {
        if (is(request, 'GET', /\/timeline$/)) data.items = data.items.filter(({ seq }: Data) => seq !== 3)
      },
    },
  ],
  [
    'stores what is valid of a batch',
    'batch',
    /instead of 400 invalid_request/,
    {
      asks: changesBody(/\/entries$/, (body) => {
        body.entries = body.entries.filter(({ data }: Data) => data)
      }),
    },
  ],
  ['sends an entry twice', 'tail', /^What the tail sent/, { sends: (frame) => [frame, frame] }],
  [
    'loses an entry of a tail',
    'tail',
    /^What the tail sent/,
    { sends: (frame) => (/^id: ?6\b/m.test(frame) ? [] : [frame]) },
  ],
  ['begins a resumed tail anew', 'tail', /after Last-Event-ID/, { asks: forgets('last-event-id') }],
  ['ignores If-Match', 'condition', /instead of 409 seq_conflict/, { asks: forgets('if-match') }],
  ['forgets idempotency keys', 'idempotency', /^The seqs of repeats/, { asks: forgets('idempotency-key') }],
  [
    "forgets entries' own ids",
    'entry-ids',
    /^The seqs of a repeated and a new entry/,
    {
      asks: changesBody(/\/entries$/, ({ entries }) => {
        for (const entry of entries) delete entry.id
      }),
    },
  ],
  ['reads numbers as doubles', 'json', /9007199254740993/, { asks: changesBody(/\/events$/, () => {}) }],
  [
    'does not mark what was retracted',
    'retraction',
    /^retracted_by along the timeline/,
    {
      answers: (request, { items }) => {
        if (is(request, 'GET', /\/timeline$/)) for (const item of items) delete item.retracted_by
      },
    },
  ],
  [
    'copies a whole log in place of its beginning',
    'fork',
    /^The entries of the fork/,
    { asks: changesBody(/\/copy$/, (body) => delete body.up_to_seq) },
  ],
  [
    'deletes nothing',
    'erasure',
    /instead of 404 session_not_found/,
    { asks: (request) => (is(request, 'DELETE', /\/session\/[^/]+$/) ? {} : undefined) },
  ],
  [
    'ignores a filter',
    'containment',
    /^What \{"agent":"x"\} found/,
    { asks: ({ url }) => url.searchParams.delete('filter_by_configs') },
  ],
  [
    'ignores a cursor',
    'cursors',
    /^A walk met a session twice/,
    { asks: ({ url }) => url.searchParams.delete('cursor') },
  ],
  [
    'skips a session between pages',
    'cursors',
    /^What a walk with time_desc=false met/,
    {
      answers: (request, { items, has_more }) => {
        if (is(request, 'GET', /\/session$/) && has_more) items.pop()
      },
    },
  ],
  [
    'ignores a misspelt parameter',
    'strictness',
    /instead of 400 invalid_request/,
    { asks: ({ url }) => url.searchParams.delete('usr') },
  ],
  [
    'answers without a key',
    'authorization',
    /instead of 401 unauthorized/,
    {
      asks: ({ headers }) => {
        headers.authorization ??= `Bearer ${owner.token}`
      },
    },
  ],
  [
    "shows a project's sessions to another",
    'tenants',
    /instead of 404 session_not_found/,
    {
      asks: ({ url, headers }) => {
        // Only an id that somebody has: the answer to one that nobody has stays true.
        if (url.pathname.split('/').length > 4) headers.authorization = `Bearer ${owner.token}`
      },
    },
  ],
]

const service = useSharedService()
let proxy: Awaited<ReturnType<typeof faultyProxy>>

beforeAll(async () => {
  ;[owner, stranger] = [await service.newProject(), await service.newProject()]
  proxy = await faultyProxy(service.node.url)
})
afterAll(() => proxy.close())

it('this service keeps every promise of the suite and has nothing left of it afterwards', async () => {
  const { code, stdout } = await run([service.node.url, '--json'])
  const report = JSON.parse(stdout)
  expect(report.promises.filter(({ outcome }: Data) => outcome !== 'kept')).toEqual([])
  expect([code, report.kept, report.left_behind]).toEqual([0, PROMISES.length, []])
  const users = await service.rawClient(owner.token).request('GET', '/api/v1/user/ls')
  expect(expectOk(users)).toMatchObject({ items: [] })
})

it("the package's page lists every promise, as the suite words it and with where it is made", async () => {
  const page = await readFile(new URL('../../packages/conformance/README.md', import.meta.url), 'utf8')
  const listed = [...page.matchAll(/^\| `(\S+)` \| (.+) \| \[.+\]\(\.\.\/\.\.\/docs\/(.+)\) \|$/gm)]
  expect(listed.map(([, ...cells]) => cells)).toEqual(
    PROMISES.map(({ name, promise, reference }) => [name, promise, reference]),
  )
})

describe('a server that breaks a promise fails it', () => {
  it.each(FAULTS)('because it %s: %s', async (_fault, promise, says, fault) => {
    proxy.fault = fault
    const { promises, broken } = await runConformance({
      url: proxy.url,
      key: owner.token,
      otherKey: stranger.token,
      only: [promise],
      msMax: MS_MAX,
    })
    expect(promises.find(({ name }) => name === promise)?.detail).toMatch(says)
    expect(broken).toBe(1)
  })

  it('every promise, because of at least one fault', () => {
    expect(new Set(FAULTS.map(([, promise]) => promise))).toEqual(new Set(PROMISES.map(({ name }) => name)))
  })

  it('with exit code 1 and a report for people', async () => {
    proxy.fault = { asks: forgets('if-match') }
    const { code, stdout } = await run([proxy.url, '--only', 'condition,json'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^BROKEN +condition +The last seq is 2: POST \S+ was answered 200 instead of 409/m)
    expect(stdout).toMatch(/^ +Promised: An append with If-Match .*\(api\.md#if-match\)$/m)
    expect(stdout).toMatch(/^kept +json +\d+ ms$/m)
    expect(stdout).toMatch(new RegExp(`^1 kept, 1 broken, ${PROMISES.length - 2} skipped$`, 'm'))
  })
})

it.each([
  ['without a URL', [], {}, 'Name the URL'],
  ['with an unknown promise', ['http://127.0.0.1:1', '--only', 'orders'], {}, 'There is no promise "orders"'],
  ['without a key', ['http://127.0.0.1:1'], { ANNALS_API_KEY: '' }, 'Set ANNALS_API_KEY'],
  ['with a server that is not there', ['http://127.0.0.1:1'], {}, 'http://127.0.0.1:1 cannot be reached'],
])('%s the suite says what it needs, with exit code 2', async (_name, args, env, says) => {
  const { code, stderr } = await run(args, env)
  expect([code, stderr]).toEqual([2, expect.stringContaining(says)])
})

function run(args: string[], env: Record<string, string> = {}) {
  const keys = { ANNALS_API_KEY: owner.token, ANNALS_OTHER_API_KEY: stranger.token }
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [BIN, '--timeout', String(MS_MAX / 1000), ...args],
      { env: { ...process.env, ...keys, ...env } },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

/** A server that does what the service behind it does, apart from its fault. */
async function faultyProxy(serviceUrl: string) {
  const state: { fault: Fault } = { fault: {} }
  const server = createServer((incoming, outgoing) => {
    forward(serviceUrl, state.fault, incoming, outgoing).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  })
}

async function forward(
  serviceUrl: string,
  fault: Fault,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const request: Request = {
    method: incoming.method!,
    url: new URL(incoming.url!, serviceUrl),
    headers: { ...(incoming.headers as Record<string, string>), 'accept-encoding': 'identity' },
    body: (await incoming.toArray()).join(''),
  }
  for (const own of ['host', 'connection', 'content-length']) delete request.headers[own]
  const instead = fault.asks?.(request)
  if (typeof instead === 'object') {
    outgoing.end(JSON.stringify({ code: 0, error: '', msg: 'ok', data: instead }))
    return
  }
  const end = new AbortController()
  outgoing.on('close', () => end.abort())
  const { method, headers, body } = request
  const answer = await fetch(request.url, { method, headers, signal: end.signal, ...(body ? { body } : {}) })
  const answered = Object.fromEntries(answer.headers)
  delete answered['content-length']
  outgoing.writeHead(answer.status, answered)
  if (answered['content-type']?.startsWith('text/event-stream')) return sendFrames(answer, fault, outgoing)
  const text = await answer.text()
  if (!answer.ok || !fault.answers) return void outgoing.end(text)
  const envelope = JSON.parse(text)
  fault.answers(request, envelope.data)
  outgoing.end(JSON.stringify(envelope))
}

async function sendFrames(
  answer: globalThis.Response,
  { sends = (frame) => [frame] }: Fault,
  outgoing: ServerResponse,
): Promise<void> {
  let buffered = ''
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    const frames = (buffered + piece).split('\n\n')
    buffered = frames.pop()!
    for (const frame of frames.flatMap(sends)) outgoing.write(`${frame}\n\n`)
  }
}
