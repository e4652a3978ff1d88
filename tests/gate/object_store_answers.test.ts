import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { errorOf, getBlob, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { sendRaw } from '../harness/raw_connection.ts'
import { useService } from '../harness/service.ts'
import { type MessagePage, newSessionLog } from '../harness/session_log.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

/** How a store answers who asks for the bytes from one position to another, instead of with them. */
type Answers = (response: ServerResponse, all: Buffer, from: number, to: number) => unknown

const range = (from: number, to: number, all: number) => ({
  'content-range': `bytes ${from}-${to - 1}/${all}`,
})
const HTML = '<html>Back soon.</html>'

/** The wrong answers, of a whole object and of a part. */
const WRONG: Record<string, Answers> = {
  'everything, as a part': (to_client, all, from, to) => {
    to_client.writeHead(206, range(from, to, all.length))
    // Without a length.
    to_client.write(all)
    to_client.end(all)
  },
  'a page of a proxy': (to_client) => to_client.writeHead(200, { 'content-type': 'text/html' }).end(HTML),
  'a page of a proxy, as a part': (to_client, all, from, to) =>
    to_client.writeHead(206, range(from, to, all.length)).end(HTML),
  'half of what it announces': (to_client, all, from, to) => {
    to_client.writeHead(206, { ...range(from, to, all.length), 'content-length': to - from })
    to_client.write(all.subarray(from, from + Math.floor((to - from) / 2)))
    setImmediate(() => to_client.destroy())
  },
  'half of what was asked for': (to_client, all, from, to) =>
    to_client
      .writeHead(206, range(from, to, all.length))
      .end(all.subarray(from, Math.floor((from + to) / 2))),
  'another part': (to_client, all, from, to) =>
    to_client
      .writeHead(206, range(from + 1, to + 1, all.length))
      .end(Buffer.concat([all, all]).subarray(from + 1, to + 1)),
  'a part of another object': (to_client, all, from, to) =>
    to_client
      .writeHead(206, range(from, to, all.length + 1))
      .end(Buffer.concat([newBytes(to - from), all]).subarray(0, to - from)),
  'half, and then nothing': (to_client, all, from, to) => {
    to_client.writeHead(206, { ...range(from, to, all.length), 'content-length': to - from })
    to_client.write(all.subarray(from, from + Math.floor((to - from) / 2)))
  },
  'informational answers without end': (to_client) => {
    const flood = () => {
      while (
        to_client.socket?.writable &&
        to_client.socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000))
      );
    }
    to_client.socket!.on('error', () => {}).on('drain', flood)
    flood()
  },
}
/** Of a store that does not know ranges. */
const EVERYTHING: Answers = (to_client, all) => to_client.end(all)
/** Only of a whole object can be told that it is another one. */
const OTHER: Answers = (to_client, all, from, to) =>
  to_client.writeHead(206, range(from, to, all.length)).end(newBytes(to - from))

const RIGHT: Answers = (to_client, all, from, to) =>
  to_client.writeHead(206, range(from, to, all.length)).end(all.subarray(from, to))

const objects = new Map<string, Buffer>()
let answers = RIGHT

const store = createServer(async (request, response) => {
  const key = new URL(request.url!, 'http://store').pathname
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  if (request.method === 'PUT') {
    objects.set(key, Buffer.concat(pieces))
    return response.writeHead(200, { etag: '"x"' }).end()
  }
  const all = objects.get(key)
  if (request.method === 'DELETE' || !all) {
    objects.delete(key)
    return response.writeHead(request.method === 'DELETE' ? 204 : 404).end()
  }
  const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []
  answers(response, all, Number(from), Math.min(Number(to) + 1, all.length))
})
await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve))
const service = useService({
  ANNALS_S3_BUCKET: 'bucket',
  ANNALS_S3_ENDPOINT: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
  ANNALS_S3_ACCESS_KEY_ID: 'key',
  ANNALS_S3_SECRET_ACCESS_KEY: 'secret',
})
afterAll(() => {
  store.closeAllConnections()
  store.close()
})

/** A project with a blob in a message. After its first ten bytes stands what looks like an answer. */
async function newAttachment() {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const planted = '0123456789HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 7\r\n\r\nplanted'
  const bytes = Buffer.concat([Buffer.from(planted), newBytes(1_000)])
  expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
  const log = await newSessionLog(api)
  const url = { annals_blob: sha256Of(bytes), media_type: 'image/png' }
  expectOk(await log.add({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }), 201)
  const messages = `/api/v1/session/${log.id}/messages?format=openai`
  const read = (headers = {}) => getBlob(service.node.url, project.token, sha256Of(bytes), { headers })
  return { project, api, bytes, messages, read }
}

// In a database that all files share, nodes with other stores would take the notes of its objects for theirs.
describe.skipIf(reasonForNoOwnDatabase())('an object store that answers with', () => {
  it.each(Object.entries(WRONG))(
    '%s is away: to a message, to a blob, and to a part of one',
    async (_name, wrong) => {
      const { api, bytes, messages, read } = await newAttachment()
      answers = wrong
      const away = { status: 503, error: 'unavailable' }
      const [message, whole, part] = await Promise.all([
        api.request<MessagePage>('GET', messages),
        read(),
        read({ Range: 'bytes=0-9' }),
      ])
      expect({ status: message.status, error: message.json.error }).toEqual(away)
      expect(await errorOf(whole)).toMatchObject(away)
      // A part may have begun when the rest does not come: its connection ends then.
      if (part.status === 206) await expect(part.arrayBuffer()).rejects.toThrow()
      else expect(await errorOf(part)).toMatchObject(away)
      answers = RIGHT
      expect(Buffer.from(await (await read()).arrayBuffer()).equals(bytes)).toBe(true)
      expect(expectOk(await api.request('GET', messages))).toMatchObject({ items: [{ role: 'user' }] })
    },
  )

  it('other bytes of the same number is away, as far as the whole is read', async () => {
    const { api, messages, read } = await newAttachment()
    answers = OTHER
    expect((await api.request('GET', messages)).status).toBe(503)
    expect((await read()).status).toBe(503)
    answers = RIGHT
  })

  it('everything is away for a part; where everything was asked for, it is right', async () => {
    const { bytes, api, messages, read } = await newAttachment()
    answers = EVERYTHING
    expect(await errorOf(await read({ Range: 'bytes=0-9' }))).toMatchObject({ status: 503 })
    expect(Buffer.from(await (await read()).arrayBuffer()).equals(bytes)).toBe(true)
    expect((await api.request('GET', messages)).text).toContain(bytes.toString('base64'))
    answers = RIGHT
  })

  it('more than was asked for splits no answer: the next one on the connection is that to the next request', async () => {
    const { project, bytes } = await newAttachment()
    const head = `HTTP/1.1\r\nHost: annals\r\nAuthorization: Bearer ${project.token}\r\n`
    const part = `GET /api/v1/blobs/${sha256Of(bytes)} ${head}Range: bytes=0-9\r\n\r\n`
    for (const [name, wrong] of Object.entries({ ...WRONG, EVERYTHING })) {
      if (!/everything/i.test(name)) continue
      answers = wrong
      const text = await sendRaw(service.node.url, `${part}GET /api/v1/ping ${head}Connection: close\r\n\r\n`)
      expect(text, name).toMatch(/^HTTP\/1\.1 503 [\s\S]*HTTP\/1\.1 200 OK[\s\S]*"pong"/)
      expect(text, name).not.toContain('planted')
    }
    answers = RIGHT
  })
})
