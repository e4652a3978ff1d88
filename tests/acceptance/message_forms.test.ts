import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { bytesOf, errorOf, getBlob, newBytes, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const part = (file_field: string, more: object = {}) => ({
  type: 'file',
  text: null,
  meta: null,
  file_field,
  ...more,
})
const message = (...parts: object[]) => ({
  format: 'acontext',
  blob: { role: 'user', parts },
  meta: { n: 1 },
})

/** Sends a form as existing clients do; each has another boundary. */
async function send(
  log: SessionLog,
  fields: Array<[string, string | [Uint8Array, string, string]]>,
  headers: Record<string, string> = {},
) {
  const form = new FormData()
  for (const [name, value] of fields) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, new Blob([new Uint8Array(value[0])], { type: value[2] }), value[1])
  }
  const path = `/api/v1/session/${log.id}/messages`
  const sent = new Response(form)
  return api.request<{ seq: number; parts: object[] }>('POST', path, {
    rawBody: Buffer.from(await sent.arrayBuffer()),
    headers: { 'Content-Type': sent.headers.get('content-type')!, ...headers },
  })
}

describe('a message that is sent as a form', () => {
  it('has its files as blobs, where its parts name them', async () => {
    const log = await newSessionLog(api)
    const [pdf, png] = [newBytes(600_000), newBytes(0)]
    const payload = message(part('doc'), { type: 'text', text: 'Grüße' }, { ...part('photo'), type: 'image' })
    const added = await send(log, [
      ['payload', JSON.stringify(payload)],
      ['doc', [pdf, 'Jahresbericht ü.pdf', 'application/pdf']],
      ['photo', [png, 'a.png', 'image/png']],
    ])
    expectOk(added, 201)
    expect(added.text.length).toBeLessThan(2_000)
    expect((await getBlob(service.node.url, project.token, sha256Of(pdf))).status).toBe(200)
    const { items } = expectOk(await log.list({ format: 'acontext' }))
    const { parts, meta } = items[0] as {
      parts: Array<{ meta: { data: string }; filename: string }>
      meta: object
    }
    expect(meta).toEqual({ n: 1 })
    expect(parts.map(({ filename }) => filename)).toEqual(['Jahresbericht ü.pdf', undefined, 'a.png'])
    expect(parts[0]!.meta.data === pdf.toString('base64')).toBe(true)
    expect(parts[2]!.meta).toEqual({ media_type: 'image/png', data: '' })
    const [item] = expectOk(await log.list({ format: 'anthropic' })).items
    const [document] = item!.content as Array<{ source: { data: string; media_type: string } }>
    expect(document!.source.media_type).toBe('application/pdf')
    expect(document!.source.data === pdf.toString('base64')).toBe(true)
  })

  it('is answered with the asset of each file, by whose s3_key it can be downloaded, and so is its retry', async () => {
    const log = await newSessionLog(api)
    const bytes = newBytes(1_000)
    const payload = JSON.stringify(message(part('doc'), { type: 'text', text: 'a' }))
    const again = { 'Idempotency-Key': 'form-1' }
    const sendIt = () =>
      send(
        log,
        [
          ['payload', payload],
          ['doc', [bytes, 'a.pdf', 'application/pdf']],
        ],
        again,
      )
    const sha256 = sha256Of(bytes)
    const asset = { bucket: '', s3_key: sha256, etag: sha256, sha256, mime: 'application/pdf', size_b: 1_000 }
    for (const added of [await sendIt(), await sendIt()]) {
      const { parts } = expectOk(added, 201)
      expect(parts).toMatchObject([
        { type: 'file', filename: 'a.pdf', asset },
        { type: 'text', asset: null },
      ])
    }
    const path = `/api/v1/session/${log.id}/asset/download`
    const headers = { Authorization: `Bearer ${project.token}` }
    const answer = await fetch(`${service.node.url}${path}?s3_key=${sha256}`, { headers })
    expect((await bytesOf(answer)).equals(bytes)).toBe(true)
    for (const query of ['', '?s3_key=a.pdf', `?s3_key=${sha256}&sha256=${'0'.repeat(64)}`])
      expect((await fetch(`${service.node.url}${path}${query}`, { headers })).status).toBe(400)
  })

  it('has an asset that can be downloaded from its session, as a whole or in part, and from no other', async () => {
    const [log, other] = [await newSessionLog(api), await newSessionLog(api)]
    const bytes = newBytes(1_000)
    const payload = JSON.stringify(message(part('doc')))
    expectOk(
      await send(log, [
        ['payload', payload],
        ['doc', [bytes, 'a.pdf', 'application/pdf']],
      ]),
      201,
    )
    const download = (session_id: string, sha256: string, range = 'bytes=0-') =>
      fetch(`${service.node.url}/api/v1/session/${session_id}/asset/download?sha256=${sha256}`, {
        headers: { Authorization: `Bearer ${project.token}`, range },
      })
    const answer = await download(log.id, sha256Of(bytes))
    expect(bytes.equals(await bytesOf(answer))).toBe(true)
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-disposition')).toMatch(/^attachment/)
    const some = await download(log.id, sha256Of(bytes), 'bytes=10-19')
    expect(some.status).toBe(206)
    expect(bytes.subarray(10, 20).equals(await bytesOf(some))).toBe(true)
    expect(await errorOf(await download(other.id, sha256Of(bytes)))).toMatchObject({
      status: 404,
      error: 'blob_not_found',
    })
    expect((await errorOf(await download(log.id, 'abc'))).status).toBe(400)
  })

  it('is the same message when it is sent again with its key, whatever the boundary', async () => {
    const log = await newSessionLog(api)
    const payload = JSON.stringify(message(part('doc', { meta: { page: 12345678901234567000 } })))
    const sendAgain = (bytes: Buffer) =>
      send(
        log,
        [
          ['payload', payload],
          ['doc', [bytes, 'a.pdf', 'application/pdf']],
        ],
        { 'Idempotency-Key': 'form' },
      )
    const bytes = newBytes(1_000)
    const first = await sendAgain(bytes)
    expectOk(first, 201)
    expect((await sendAgain(bytes)).json).toEqual(first.json)
    expectError(await sendAgain(newBytes(1_000)), 422, 'idempotency_key_reused')
  })

  const file: [Uint8Array, string, string] = [newBytes(10), 'a.pdf', 'application/pdf']
  it.each<[string, Array<[string, string | [Uint8Array, string, string]]>, string]>([
    ['no payload', [['doc', file]], 'payload'],
    [
      'two payloads',
      [
        ['payload', '{}'],
        ['payload', '{}'],
      ],
      'payload',
    ],
    ['a payload that is a file', [['payload', file]], 'payload'],
    [
      'a file that no part names',
      [
        ['payload', JSON.stringify(message(part('doc')))],
        ['doc', file],
        ['more', file],
      ],
      'more',
    ],
    [
      'a part that names no file',
      [
        ['payload', JSON.stringify(message(part('doc'), part('b')))],
        ['doc', file],
      ],
      '/blob/parts/1/file_field',
    ],
    [
      'a text in place of a file',
      [
        ['payload', JSON.stringify(message(part('doc')))],
        ['doc', 'text'],
      ],
      'doc',
    ],
    [
      'files in another format',
      [
        ['payload', '{"blob":{"role":"user","content":"a"}}'],
        ['doc', file],
      ],
      'acontext',
    ],
    ['an unknown field', [['payload', '{"blob":{"role":"user","content":"a"},"more":1}']], '/more'],
    [
      'two files of one name',
      [
        ['payload', JSON.stringify(message(part('doc')))],
        ['doc', file],
        ['doc', file],
      ],
      'doc',
    ],
    ['too many fields', Array.from({ length: 70 }, (_, n) => [`f${n}`, 'a'] as [string, string]), 'too many'],
  ])('with %s is refused, and says why', async (_, fields, said) => {
    const log = await newSessionLog(api)
    expectError(await send(log, fields), 400, 'invalid_request', said)
    expect(expectOk(await log.timeline()).items).toEqual([])
  })

  it.each([
    ['multipart/form-data', 'x'],
    ['multipart/form-data; boundary=a', '--b\r\n\r\n--b--'],
    [
      'multipart/form-data; boundary=a',
      `--a\r\nContent-Disposition: form-data; name="payload"\r\n\r\n{"blob":`,
    ],
    ['multipart/form-data; boundary=a', ''],
    ['multipart/form-data; boundary=a', '\r\n'.repeat(100_000)],
  ])('that is no form is refused: %s %.20j', async (type, rawBody) => {
    const log = await newSessionLog(api)
    const options = { rawBody, headers: { 'Content-Type': type } }
    expectError(
      await api.request('POST', `/api/v1/session/${log.id}/messages`, options),
      400,
      'invalid_request',
    )
  })

  it.each(['x="boundary=a"', 'xboundary=a', 'x="; boundary=a"'])(
    'has no more fields than it may have, also where its Content-Type names another boundary: %s',
    async (ahead) => {
      const log = await newSessionLog(api)
      const field = '--b\r\nContent-Disposition: form-data; name="payload"\r\n\r\n{}\r\n'
      const options = {
        rawBody: `${field.repeat(100)}--b--\r\n`,
        headers: { 'Content-Type': `multipart/form-data; ${ahead}; boundary=b` },
      }
      const answer = await api.request('POST', `/api/v1/session/${log.id}/messages`, options)
      // Once it has been read, the field is named, which it has so often.
      expectError(answer, 400, 'invalid_request')
      expect(answer.json.msg).not.toContain('twice')
    },
  )

  it('is read only where messages are: elsewhere it is an unsupported type', async () => {
    const log = await newSessionLog(api)
    const options = { rawBody: '--a--', headers: { 'Content-Type': 'multipart/form-data; boundary=a' } }
    const answer = await api.request('POST', `/api/v1/session/${log.id}/events`, options)
    expectError(answer, 415, 'unsupported_media_type')
  })

  it('of another project’s session is not stored', async () => {
    const other = await newSessionLog(await service.newClient())
    expectError(await send(other, [['payload', JSON.stringify(message())]]), 404, 'session_not_found')
  })
})
