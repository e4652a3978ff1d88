import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Annals, type AnnalsOptions } from '../src/index.ts'
import { broken, ok, refused, scriptedFetch, silence } from './scripted_fetch.ts'

const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const event = { type: 'note', data: {} }

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

type Steps = Parameters<typeof scriptedFetch>

/** Makes a call to a scripted service, lets all the time pass that it waits for, and gives what became of it. */
async function run(
  steps: Steps,
  call: (annals: Annals) => Promise<unknown>,
  options: Partial<AnnalsOptions> = {},
) {
  const { fetch, sent } = scriptedFetch(...steps)
  const outcome = call(new Annals({ token: 'sk-1', fetch, ...options })).then(
    (value) => ({ value, error: undefined }),
    (error) => ({ value: undefined, error }),
  )
  await vi.runAllTimersAsync()
  return { ...(await outcome), sent, waits_ms: sent.slice(1).map((next, n) => next.at_ms - sent[n]!.at_ms) }
}

const append = (annals: Annals) => annals.sessions.append(ID, event)
const remove = (annals: Annals) => annals.sessions.delete(ID)

describe('a call that failed for now', () => {
  it.each<[string, () => Steps[number]]>([
    ['429', () => refused(429, 'rate_limited')],
    ['503', () => refused(503, 'unavailable')],
    ['502 of a proxy', () => new Response('<html>Bad Gateway</html>', { status: 502 })],
    ['504 of a proxy', () => new Response('', { status: 504 })],
    ['503 of a proxy', () => new Response('busy', { status: 503 })],
    ['a broken connection', () => broken()],
    ['no answer in time', () => silence],
  ])('is made again after %s, with the same key and the same body', async (_case, failure) => {
    const { value, sent } = await run([failure(), failure(), ok({ seq: 1 })], append)
    expect(value).toEqual({ seq: 1 })
    expect(sent).toHaveLength(3)
    expect(new Set(sent.map((request) => request.headers['idempotency-key'])).size).toBe(1)
    expect(new Set(sent.map((request) => request.body)).size).toBe(1)
  })

  it('has another key when it is called anew', async () => {
    const both = async (annals: Annals) => [await append(annals), await append(annals)]
    const { sent } = await run([ok(), ok()], both)
    expect(new Set(sent.map((request) => request.headers['idempotency-key'])).size).toBe(2)
  })

  it('waits twice as long each time, up to 5 s, and not always the same', async () => {
    const failures = Array.from({ length: 8 }, () => broken())
    const { waits_ms } = await run([...failures, ok()], append, { retries: 8, timeout_ms: 60_000 })
    const longest = [200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]
    expect(waits_ms).toHaveLength(longest.length)
    for (const [n, wait_ms] of waits_ms.entries()) {
      expect(wait_ms).toBeLessThanOrEqual(longest[n]!)
      expect(wait_ms).toBeGreaterThanOrEqual(longest[n]! / 2)
    }
  })

  it('waits as long as Retry-After says, and a little more', async () => {
    const soon = refused(503, 'overloaded', { 'retry-after': '2' })
    const later = refused(429, 'rate_limited', {
      'retry-after': new Date(Date.now() + 9_000).toUTCString(),
    })
    const { value, waits_ms } = await run([soon, later, ok({})], append)
    expect(value).toEqual({})
    expect(waits_ms[0]).toBeGreaterThanOrEqual(2_000)
    expect(waits_ms[0]).toBeLessThanOrEqual(2_200)
    expect(waits_ms[0]! + waits_ms[1]!).toBeGreaterThanOrEqual(8_000)
    expect(waits_ms[0]! + waits_ms[1]!).toBeLessThanOrEqual(9_500)
  })

  it('throws at once when the wait would end after its deadline', async () => {
    const away = refused(503, 'unavailable', { 'retry-after': '60' })
    const began = Date.now()
    const { error, sent } = await run([away], append)
    expect(error).toMatchObject({ status: 503, error: 'unavailable', retryAfter: 60 })
    expect(sent).toHaveLength(1)
    expect(Date.now() - began).toBeLessThan(1_000)
  })

  it('throws the last failure after 5 retries, or as many as are given', async () => {
    const failures = Array.from({ length: 6 }, () => broken())
    const all = await run(failures, append)
    expect(all.sent).toHaveLength(6)
    expect(all.error).toMatchObject({ name: 'AnnalsError', status: 0, error: 'connection_failed' })
    expect((await run([broken(), broken()], append, { retries: 1 })).sent).toHaveLength(2)
    const none = (annals: Annals) => annals.sessions.append(ID, event, { retries: 0 })
    expect((await run([broken()], none)).sent).toHaveLength(1)
  })

  it.each([400, 401, 403, 404, 409, 413, 415, 422, 500])('is not made again after %i', async (status) => {
    const { error, sent } = await run([refused(status, 'some_error')], append)
    expect(error).toMatchObject({ status, error: 'some_error' })
    expect(sent).toHaveLength(1)
  })
})

describe('a write without a key', () => {
  it.each<[string, (annals: Annals) => Promise<unknown>]>([
    ['replace', (annals) => annals.sessions.configs.replace(ID, {})],
    ['merge', (annals) => annals.sessions.configs.merge(ID, {})],
    ['patchMessageMeta', (annals) => annals.sessions.patchMessageMeta(ID, ID, {})],
    ['merge of a learning space', (annals) => annals.learningSpaces.merge(ID, {})],
    ['delete', remove],
  ])('is made again where twice is like once: %s', async (_name, call) => {
    const { error, sent } = await run([broken(), silence, ok()], call)
    expect(error).toBeUndefined()
    expect(sent).toHaveLength(3)
  })

  it('that deletes has done so when a retry after a lost answer finds nothing', async () => {
    const steps: Steps = [broken(), refused(503, 'unavailable'), refused(404, 'session_not_found')]
    expect(await run(steps, remove)).toMatchObject({ value: undefined, error: undefined })
    const removeSpace = (annals: Annals) => annals.learningSpaces.delete(ID)
    const gone = refused(404, 'learning_space_not_found')
    expect(await run([silence, gone], removeSpace)).toMatchObject({ error: undefined })
    const afterProxy: Steps = [new Response('busy', { status: 503 }), refused(404, 'session_not_found')]
    expect(await run(afterProxy, remove)).toMatchObject({ error: undefined })
  })

  it('that deletes throws 404 when nothing had been done before', async () => {
    const gone = () => refused(404, 'session_not_found')
    expect((await run([gone()], remove)).error).toMatchObject({ status: 404 })
    const refusedFirst: Steps = [refused(503, 'unavailable'), gone()]
    expect((await run(refusedFirst, remove)).error).toMatchObject({ status: 404 })
    const elsewhere: Steps = [broken(), refused(404, 'route_not_found')]
    expect((await run(elsewhere, remove)).error).toMatchObject({ error: 'route_not_found' })
  })

  it('that erases is made again only where nothing was done, since it tells once what it removed', async () => {
    const erase = (annals: Annals) => annals.users.erase('ada')
    const deleted = { deleted: { sessions: 1, entries: 2, learning_spaces: 0 } }
    expect((await run([refused(503, 'unavailable'), ok(deleted)], erase)).value).toEqual(deleted)
    const lost = await run([refused(503, 'unavailable'), broken()], erase)
    expect(lost.error).toMatchObject({ error: 'connection_failed' })
    expect(lost.sent).toHaveLength(2)
    const atProxy = await run([new Response('busy', { status: 503 })], erase)
    expect(atProxy.error).toMatchObject({ status: 503, error: 'unexpected_answer' })
  })
})

describe('the time that a call may take', () => {
  it('is 30 s in all, of which an attempt gets a third', async () => {
    const began = Date.now()
    const { error, sent } = await run([silence, silence, silence], append)
    expect(error).toMatchObject({ status: 0, error: 'timeout', message: expect.stringContaining('30000 ms') })
    expect(sent).toHaveLength(3)
    expect(sent[1]!.at_ms - began).toBeGreaterThanOrEqual(10_000)
    expect(Date.now() - began).toBe(30_000)
  })

  it('is what the client or the call says', async () => {
    const limits = { timeout_ms: 1_000, attempt_timeout_ms: 400, retries: 1 }
    const began = Date.now()
    const { error, sent } = await run([silence, silence], append, limits)
    expect(error).toMatchObject({ error: 'timeout', message: expect.stringContaining('400 ms') })
    expect(sent).toHaveLength(2)
    expect(Date.now() - began).toBeLessThanOrEqual(1_000)
    const call = (annals: Annals) => annals.sessions.append(ID, event, { timeout_ms: 50, retries: 0 })
    const again = Date.now()
    expect((await run([silence], call)).error).toMatchObject({ error: 'timeout' })
    expect(Date.now() - again).toBe(50)
  })

  it.each([2 ** 31, Number.POSITIVE_INFINITY])('may be %d ms, longer than any timer', async (timeout_ms) => {
    vi.useRealTimers()
    const answerLater = async (signal: AbortSignal) => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      signal.throwIfAborted()
      return ok({ id: ID })
    }
    const { fetch } = scriptedFetch(answerLater)
    const annals = new Annals({ token: 'sk-1', fetch, timeout_ms, attempt_timeout_ms: timeout_ms })
    expect(await annals.sessions.get(ID)).toEqual({ id: ID })
  })
})

describe('a signal', () => {
  const reason = new Error('enough')

  it.each<[string, () => Steps]>([
    ['an attempt', () => [silence]],
    ['a pause', () => [refused(503, 'unavailable', { 'retry-after': '5' })]],
  ])('ends a call during %s, with its reason', async (_during, steps) => {
    const abort = new AbortController()
    setTimeout(() => abort.abort(reason), 1_000)
    const call = (annals: Annals) => annals.sessions.append(ID, event, { signal: abort.signal })
    const { error, sent } = await run(steps(), call)
    expect(error).toBe(reason)
    expect(sent).toHaveLength(1)
  })

  it('that has aborted before keeps the call from being sent', async () => {
    const call = (annals: Annals) => annals.sessions.get(ID, { signal: AbortSignal.abort(reason) })
    const { error, sent } = await run([], call)
    expect(error).toBe(reason)
    expect(sent).toEqual([])
  })

  it('that outlives many calls keeps nothing of them', async () => {
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    const call = (annals: Annals) => annals.sessions.get(ID, { signal })
    await run([broken(), refused(503, 'unavailable'), ok({})], call)
    expect(add).toHaveBeenCalledTimes(5)
    expect(remove).toHaveBeenCalledTimes(5)
    expect(vi.getTimerCount()).toBe(0)
  })
})
