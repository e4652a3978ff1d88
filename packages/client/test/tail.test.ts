import { describe, expect, it, vi } from 'vitest'
import { Annals, type AnnalsError, type TailOptions } from '../src/index.ts'
import {
  entry,
  type Handler,
  refuse,
  type ScriptedServer,
  scriptedServer,
  stream,
} from './scripted_server.ts'

const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

/** Tails a server that answers so, until the entry `last` or the tail's own end. Gives the seqs. */
async function tail(handlers: Handler[], last: number, options: TailOptions = {}) {
  const server = await scriptedServer(...handlers)
  const lost: AnnalsError[] = []
  const annals = new Annals({ url: server.url, token: 'sk-1', retries: 1 })
  const seqs: number[] = []
  const on_disconnect = (error: AnnalsError) => lost.push(error)
  const walk = async () => {
    for await (const { seq } of annals.sessions.tail(ID, { on_disconnect, ...options })) {
      seqs.push(seq)
      if (seq === last) break
    }
  }
  const error = await walk().then(
    () => undefined,
    (thrown) => thrown,
  )
  return { seqs, error, lost, server, requests: server.requests }
}

describe('a tail', () => {
  it('begins after the seq that it is given, and names the filters', async () => {
    const { requests, seqs } = await tail([stream([entry(5), entry(6)], 'stays')], 6, {
      after: 4,
      kind: 'event',
      type: 'note',
    })
    expect(seqs).toEqual([5, 6])
    expect(requests[0]!.url).toBe(`/api/v1/session/${ID}/timeline?kind=event&type=note&after_seq=4`)
    expect(requests[0]!.headers).toMatchObject({ accept: 'text/event-stream', authorization: 'Bearer sk-1' })
    expect(requests[0]!.headers).not.toHaveProperty('last-event-id')
  })

  it('continues after the last entry when the stream ends or breaks, however often', async () => {
    const { seqs, requests, lost } = await tail(
      [
        stream([], 'breaks'),
        stream([entry(1), entry(2)], 'ends'),
        stream([entry(3)], 'breaks'),
        stream([], 'ends'),
        stream([entry(4)], 'stays'),
      ],
      4,
    )
    expect(seqs).toEqual([1, 2, 3, 4])
    const ids = requests.map(({ headers }) => headers['last-event-id'])
    expect(ids).toEqual([undefined, undefined, '2', '3', '3'])
    expect(lost.map(({ error }) => error)).toEqual(Array(4).fill('connection_failed'))
  })

  it('names the last whole entry as the service does, and the one that it is given to begin with', async () => {
    const place = (seq: number) => `id: ${seq}@2026-11-21T09:30:00.00000${seq}Z\n\n`
    const { seqs, requests } = await tail(
      [
        stream([entry(2), place(2), entry(3).slice(0, 10)], 'breaks'),
        stream([entry(3) + place(3)], 'ends'),
        stream([entry(4)], 'stays'),
      ],
      4,
      { after: { seq: 1, created_at: '2026-11-21T09:30:00.000001Z' } },
    )
    expect(seqs).toEqual([2, 3, 4])
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual(
      [1, 2, 3].map((seq) => `${seq}@2026-11-21T09:30:00.00000${seq}Z`),
    )
    expect(requests[0]!.url).toContain('after_seq=1')
  })

  it('returns no entry of which only a part came, and none twice', async () => {
    const part = entry(2).slice(0, -1)
    const { seqs } = await tail(
      [stream([entry(1), part], 'breaks'), stream([entry(1), entry(2), entry(2), entry(3)], 'stays')],
      3,
    )
    expect(seqs).toEqual([1, 2, 3])
  })

  it('goes on after the service was away, busy or at fault', async () => {
    const { seqs, lost } = await tail(
      [
        stream([entry(1)], 'ends'),
        refuse(503, 'unavailable'),
        refuse(429, 'rate_limited'),
        refuse(500, 'internal_error'),
        (_request, response) => response.destroy(),
        stream([entry(2)], 'stays'),
      ],
      2,
    )
    expect(seqs).toEqual([1, 2])
    expect(lost.map(({ status }) => status)).toEqual([0, 503, 429, 500, 0])
  })

  it.each<[number, string]>([
    [401, 'unauthorized'],
    [403, 'insufficient_scope'],
    [404, 'session_not_found'],
    [400, 'invalid_request'],
  ])('throws %i', async (status, name) => {
    const { seqs, error, lost, requests } = await tail([stream([entry(1)], 'ends'), refuse(status, name)], 2)
    expect(seqs).toEqual([1])
    expect(error).toMatchObject({ name: 'AnnalsError', status, error: name })
    expect(lost).toHaveLength(1)
    expect(requests).toHaveLength(2)
  })

  it('throws when something else answers', async () => {
    const { error } = await tail([(_request, response) => response.end('<h1>Welcome</h1>')], 1)
    expect(error).toMatchObject({ status: 200, error: 'unexpected_answer' })
  })

  it('gives up on a service that does not answer at first, after as many retries as any call', async () => {
    const { error, requests } = await tail([(_request, response) => response.destroy()], 1)
    expect(error).toMatchObject({ status: 0, error: 'connection_failed' })
    expect(requests).toHaveLength(2)
  })

  it('takes a silent connection for a broken one', async () => {
    const { seqs, lost } = await tail([stream([entry(1)], 'stays'), stream([entry(2)], 'stays')], 2, {
      idle_timeout_ms: 1_500,
    })
    expect(seqs).toEqual([1, 2])
    expect(lost.map(({ error }) => error)).toEqual(['timeout'])
  })

  it('lets no time run while its entries are worked on', async () => {
    const server = await scriptedServer((request, response) => {
      stream([entry(1)], 'stays')(request, response)
      setTimeout(() => response.write(entry(2)), 600)
    })
    const annals = new Annals({ url: server.url, token: 'sk-1' })
    const seqs: number[] = []
    for await (const { seq } of annals.sessions.tail(ID, { idle_timeout_ms: 400 })) {
      seqs.push(seq)
      if (seq === 2) break
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    expect(seqs).toEqual([1, 2])
    expect(server.requests).toHaveLength(1)
  })

  it('pauses as the server says, and not longer each time that it had been connected', async () => {
    const breaks = Array.from({ length: 20 }, (_, n) => stream([entry(n + 1)], 'ends'))
    const { seqs } = await tail([...breaks, stream([entry(21)], 'stays')], 21)
    expect(seqs).toHaveLength(21)
    // Pauses of 20 ms each; had they grown, they would have been 30 s together.
  }, 25_000)

  it('reads an entry with what the client parses JSON with', async () => {
    const { url } = await scriptedServer(stream([entry(1)], 'stays'))
    const annals = new Annals({ url, token: 'sk-1', parse: (text) => ({ text }) })
    const { value } = await annals.sessions.tail(ID).next()
    expect(value).toEqual({ text: '{"kind":"event","seq":1}' })
  })
})

describe('the end of a tail', () => {
  const closed = (server: ScriptedServer) => vi.waitFor(() => expect(server.open).toBe(0))

  it('closes its stream when its loop is left', async () => {
    const { server } = await tail([stream([entry(1)], 'stays')], 1)
    await closed(server)
  })

  it.each<[string, Handler[]]>([
    ['it waits for an entry', [stream([entry(1)], 'stays')]],
    ['it waits for an answer', [() => {}]],
    ['it pauses', [stream([entry(1)], 'ends'), refuse(503, 'unavailable')]],
  ])('comes with the signal and without an error, while %s', async (_case, handlers) => {
    const { error, server } = await tail(handlers, 2, { signal: AbortSignal.timeout(300) })
    expect(error).toBeUndefined()
    await closed(server)
  })

  it('comes with the signal even if entries have come already', async () => {
    const { url } = await scriptedServer(stream([entry(1), entry(2)], 'stays'))
    const abort = new AbortController()
    const seqs: number[] = []
    for await (const { seq } of new Annals({ url, token: 'sk-1' }).sessions.tail(ID, {
      signal: abort.signal,
    })) {
      seqs.push(seq)
      abort.abort()
    }
    expect(seqs).toEqual([1])
  })

  it('has been when the signal aborted before', async () => {
    const { seqs, requests } = await tail([stream([entry(1)], 'stays')], 1, { signal: AbortSignal.abort() })
    expect(seqs).toEqual([])
    expect(requests).toEqual([])
  })
})

it('goes on at once with another token when the service asks for it, and when the renewal fails at first', async () => {
  const renewal = 'event: renew\ndata: {}\n\n'
  const server = await scriptedServer(
    stream([entry(1), renewal], 'ends'),
    stream([entry(2)], 'ends'),
    stream([entry(2), renewal], 'ends'),
    stream([entry(3)], 'stays'),
  )
  const tokens = ['t-1', new TypeError('Failed to fetch'), 't-2']
  const renew = async () => {
    const next = tokens.shift()!
    if (typeof next === 'string') return next
    throw next
  }
  const lost: string[] = []
  const annals = new Annals({ url: server.url, renew })
  const on_disconnect = ({ message }: AnnalsError) => lost.push(message)
  const seqs: number[] = []
  for await (const { seq } of annals.sessions.tail(ID, { on_disconnect })) {
    seqs.push(seq)
    if (seq === 3) break
  }
  expect(seqs).toEqual([1, 2, 3])
  expect(lost.filter((message) => message.startsWith('The renewal'))).toHaveLength(1)
  expect(tokens).toEqual([])
})
