import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Annals, AnnalsError } from '../src/index.ts'
import { answerOk, cutInTheMiddle, refuse, scriptedServer } from './scripted_server.ts'

const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

/** What a call throws, which must be an AnnalsError. */
async function thrownBy(call: Promise<unknown>): Promise<AnnalsError> {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  )
  expect(error).toBeInstanceOf(AnnalsError)
  return error
}

/** A port that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('an error', () => {
  it('has the status, the name, the sentence and the request id of the answer', async () => {
    const { url } = await scriptedServer(refuse(404, 'session_not_found'))
    const error = await thrownBy(new Annals({ url, token: 'sk-1' }).sessions.get(ID))
    expect(error).toMatchObject({
      name: 'AnnalsError',
      status: 404,
      error: 'session_not_found',
      message: 'This is session_not_found.',
      requestId: 'request-1',
      retryAfter: undefined,
    })
    expect(error.stack).toContain('AnnalsError: This is session_not_found.')
  })

  it('says who did not answer, and why', async () => {
    const port = await freePort()
    const annals = new Annals({ url: `http://127.0.0.1:${port}`, token: 'sk-1', retries: 0 })
    const error = await thrownBy(annals.ping())
    expect(error).toMatchObject({ status: 0, error: 'connection_failed', requestId: undefined })
    expect(error.message).toContain(`GET http://127.0.0.1:${port}/api/v1/ping`)
    expect(error.message).toContain('ECONNREFUSED')
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('does not show the token', async () => {
    const { url } = await scriptedServer(refuse(401, 'unauthorized'))
    const error = await thrownBy(new Annals({ url, token: 'sk-secret' }).ping())
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('sk-secret')
  })

  it.each<[string, number, Record<string, string>, string]>([
    ['a page of another program', 404, { 'content-type': 'text/html' }, '<h1>Not here</h1>'],
    ['a page with status 200', 200, { 'content-type': 'text/html' }, '<h1>Welcome</h1>'],
    ['JSON of another program', 200, { 'content-type': 'application/json' }, '{"hello":"world"}'],
    ['JSON that is no object', 200, { 'content-type': 'application/json' }, 'null'],
    ['an envelope with nothing in it', 200, { 'content-type': 'application/json' }, '{"data":null}'],
    ['nothing', 403, {}, ''],
    ['a redirect, which is not followed', 302, { location: '/elsewhere' }, ''],
  ])('says that it was not Annals that answered: %s', async (_case, status, headers, body) => {
    const { url, requests } = await scriptedServer((_request, response) => {
      response.writeHead(status, headers)
      response.end(body)
    })
    const error = await thrownBy(new Annals({ url, token: 'sk-1' }).sessions.create())
    expect(error).toMatchObject({ status, error: 'unexpected_answer' })
    expect(error.message).toContain(`POST ${url}/api/v1/session was answered ${status}`)
    expect(error.message).toContain(body)
    expect(requests).toHaveLength(1)
  })
})

describe('an answer that is cut in the middle', () => {
  it('is asked for again', async () => {
    const { url, requests } = await scriptedServer(cutInTheMiddle(), cutInTheMiddle(), answerOk({ seq: 1 }))
    const annals = new Annals({ url, token: 'sk-1' })
    expect(await annals.sessions.append(ID, { type: 'a', data: {} })).toEqual({ seq: 1 })
    const keys = requests.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).toBe(1)
    expect(keys).toHaveLength(3)
  })

  it('is a broken connection', async () => {
    const { url } = await scriptedServer(cutInTheMiddle())
    const error = await thrownBy(new Annals({ url, token: 'sk-1', retries: 0 }).sessions.get(ID))
    expect(error).toMatchObject({ status: 0, error: 'connection_failed' })
  })

  it('is a timeout where it only stops coming', async () => {
    const { url } = await scriptedServer((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('{"code":0')
    })
    const annals = new Annals({ url, token: 'sk-1', retries: 0, timeout_ms: 100 })
    expect(await thrownBy(annals.sessions.get(ID))).toMatchObject({ status: 0, error: 'timeout' })
  })

  it('ends with the signal', async () => {
    const { url } = await scriptedServer((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('{"code":0')
    })
    const abort = new AbortController()
    const call = new Annals({ url, token: 'sk-1' }).sessions.get(ID, { signal: abort.signal })
    setTimeout(() => abort.abort(), 50)
    await expect(call).rejects.toMatchObject({ name: 'AbortError' })
  })
})
