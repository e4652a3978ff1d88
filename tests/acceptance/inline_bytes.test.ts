import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { getBlob, newBytes, sha256Of } from '../harness/blobs.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'

const MEGABYTE = 1024 * 1024
const FORMATS = ['openai', 'anthropic', 'gemini', 'responses', 'acontext']
const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const base64Of = (length: number) => newBytes(length).toString('base64')

/** Each format's message with an image in base64. */
const IMAGES: Array<[string, (data: string) => object]> = [
  [
    'openai',
    (data) => ({
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}`, detail: 'auto' } }],
    }),
  ],
  [
    'anthropic',
    (data) => ({
      role: 'user',
      content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
    }),
  ],
  ['gemini', (data) => ({ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] })],
  [
    'responses',
    (data) => ({
      type: 'message',
      role: 'user',
      content: [{ type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${data}` }],
    }),
  ],
  [
    'acontext',
    (data) => ({
      role: 'user',
      parts: [{ type: 'image', text: null, meta: { media_type: 'image/png', data } }],
    }),
  ],
]

const png = (data: string) => `data:image/png;base64,${data}`
const says = (...content: object[]) => ({ role: 'user', content })

/** The same in the form of another format, or of a framework, as programs store it. */
const MISPLACED: Array<[string, string, (data: string) => object]> = [
  ['anthropic', 'a URL of bytes', (data) => says({ type: 'image', source: { type: 'url', url: png(data) } })],
  [
    'anthropic',
    'a block of OpenAI’s in a result',
    (data) =>
      says({
        type: 'tool_result',
        tool_use_id: 'a',
        content: [{ type: 'image_url', image_url: { url: png(data) } }],
      }),
  ],
  ['openai', 'a block of the Responses API', (data) => says({ type: 'input_image', image_url: png(data) })],
  [
    'openai',
    'a block of Anthropic’s',
    (data) => says({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }),
  ],
  ['openai', 'a block of LangChain’s', (base64) => says({ type: 'image', base64, mime_type: 'image/png' })],
  [
    'gemini',
    'bytes for an address',
    (data) => ({ role: 'user', parts: [{ fileData: { fileUri: png(data) } }] }),
  ],
  [
    'responses',
    'bytes for an address',
    (data) => says({ type: 'input_file', file_url: `data:application/pdf;base64,${data}` }),
  ],
]

/** Compares long values without showing them. */
const expectSame = (one: unknown, other: unknown) => expect(isDeepStrictEqual(one, other)).toBe(true)

const itemsIn = async (log: SessionLog, format: string) => expectOk(await log.list({ format })).items
const storedIn = (log: SessionLog) =>
  queryRows(service.databaseUrl, 'SELECT data::text FROM entries WHERE session_id = $1 ORDER BY seq', [
    log.id,
  ])

describe('long base64 in a message', () => {
  it.each(IMAGES)(
    'of %s is stored as a blob, and read in every format as if it were not',
    async (format, image) => {
      const [short, long] = [base64Of(3_000), base64Of(MEGABYTE + 1)]
      const [inline, taken] = [await newSessionLog(api), await newSessionLog(api)]
      expectOk(await inline.add(image(short), { format }), 201)
      const added = await taken.add(image(long), { format })
      expectOk(added, 201)
      expect(added.text.length).toBeLessThan(2_000)
      const [row] = await storedIn(taken)
      expect(String(row!.data).length).toBeLessThan(1_000)
      const sha256 = sha256Of(Buffer.from(long, 'base64'))
      expect((await getBlob(service.node.url, project.token, sha256, { method: 'HEAD' })).status).toBe(200)
      for (const other of FORMATS) {
        const [expected, read] = [await itemsIn(inline, other), await itemsIn(taken, other)]
        const plain = (items: unknown) =>
          JSON.parse(JSON.stringify(items).replaceAll(long, short), (key, value) =>
            /_at$|id$|^asset$/.test(key) ? undefined : value,
          )
        expectSame(plain(read), plain(expected))
      }
      if (format !== 'acontext') expectSame(await itemsIn(taken, format), [image(long)])
      const [item] = expectOk(await taken.timeline()).items
      expectSame(item!.blob, image(long))
    },
  )

  it.each(MISPLACED)(
    'of %s in %s is taken out, and comes back to the character',
    async (format, _, image) => {
      const log = await newSessionLog(api)
      const long = base64Of(MEGABYTE + 1)
      const call = { type: 'tool_use', id: 'a', name: 'look', input: {} }
      expectOk(await log.add({ role: 'assistant', content: [call] }, { format: 'anthropic' }), 201)
      expectOk(await log.add(image(long), { format }), 201)
      const [, row] = await storedIn(log)
      expect(String(row!.data).length).toBeLessThan(1_000)
      expectSame((await itemsIn(log, format)).at(-1), image(long))
      for (const other of FORMATS) {
        const { text } = await api.request('GET', `/api/v1/session/${log.id}/context`, {
          query: { format: other },
        })
        expect([other, text.includes(long) || (other === 'openai' && format === 'responses')]).toEqual([
          other,
          true,
        ])
      }
    },
  )

  it('comes back wherever the entry is shown: on the tail, under its key, from a batch, when it is retracted', async () => {
    const log = await newSessionLog(api)
    const [, image] = IMAGES[0]!
    const blob = image(base64Of(100_000))
    const tail = await openTail(service.node.url, project.token, log.id)
    const entries = [
      { kind: 'event', type: 'note', data: {} },
      { kind: 'message', blob, key: 'photo' },
    ]
    expectOk(await log.batch(entries), 201)
    const [, streamed] = await tail.received(2)
    expectSame(streamed!.item.blob, blob)
    tail.close()
    const path = `/api/v1/session/${log.id}`
    const latest = await api.request<{ items: Array<{ blob: object }> }>('GET', `${path}/latest?key=photo`)
    expectSame(expectOk(latest).items[0]!.blob, blob)
    const context = await api.request<{ items: object[] }>('GET', `${path}/context`)
    expectSame(expectOk(context).items, [blob])
    const popped = await api.request<{ items: Array<{ blob: object }> }>('POST', `${path}/retractions`, {
      body: { last: 1 },
    })
    expectSame(expectOk(popped).items[0]!.blob, blob)
  })

  it('that could not be put back to the character stays in it', async () => {
    const log = await newSessionLog(api)
    const data = base64Of(45_000)
    const urls = [
      `data:image/png;base64,${data}`,
      `DATA:image/PNG;Base64,${data}`,
      `data:;base64,${data}`,
      `data:image/png;base64,${data.replace(/.{76}/g, '$&\n')}`,
      `data:image/png;base64,${data.replaceAll('+', '-').replaceAll('/', '_')}`,
      `data:image/png;base64,${data}=`,
      `data:image/png,${data}`,
      data,
    ]
    const content = urls.map((url) => ({ type: 'image_url', image_url: { url } }))
    const blob = {
      role: 'user',
      content: [{ type: 'text', text: data }, ...content],
      more: 12345678901234567000,
    }
    const rawBody = JSON.stringify({ blob, meta: { url: urls[0] } }).replaceAll('/', '\\/')
    const path = `/api/v1/session/${log.id}/messages`
    expectOk(await api.request('POST', path, { rawBody }), 201)
    expectSame(await itemsIn(log, 'openai'), [blob])
    const { metas } = expectOk(await log.list())
    expectSame(metas, [{ url: urls[0] }])
  })

  it('makes a body of 25 MiB acceptable; other text of more than 1 MiB does not', {
    timeout: 60_000,
  }, async () => {
    const log = await newSessionLog(api)
    const [, image] = IMAGES[1]!
    const blob = image(base64Of(18 * MEGABYTE))
    expectOk(await log.add(blob, { format: 'anthropic' }), 201)
    expectSame(await itemsIn(log, 'anthropic'), [blob])
    const text = base64Of(MEGABYTE)
    const words = 'some words '.repeat(100_000)
    for (const content of [words, [{ type: 'image_url', image_url: { url: words } }]])
      expectError(await log.add({ role: 'user', content }), 413, 'payload_too_large')
    expectError(
      await log.addEvent('note', { url: `data:image/png;base64,${text}` }),
      413,
      'payload_too_large',
    )
  })

  it('is the same when it is sent again: by its key, or by the id of an entry', async () => {
    const log = await newSessionLog(api)
    const [, image] = IMAGES[0]!
    const [one, other] = [image(base64Of(100_000)), image(base64Of(100_000))]
    const headers = { 'Idempotency-Key': 'photo' }
    const first = await log.add(one, {}, { headers })
    const again = await log.add(one, {}, { headers })
    expect(again.text).toBe(first.text)
    expect(again.headers['idempotent-replayed']).toBe('true')
    expectError(await log.add(other, {}, { headers }), 422, 'idempotency_key_reused')
    const id = '01890000-0000-7000-8000-000000000001'
    const entry = (blob: object) => [{ kind: 'message', blob, id }]
    const stored = expectOk(await log.batch(entry(one)), 201)
    expectSame(expectOk(await log.batch(entry(one)), 201), stored)
    expectError(await log.batch(entry(other)), 422, 'idempotency_key_reused', '/entries/0/id')
    expect((await storedIn(log)).length).toBe(2)
  })

  it('counts as a blob, once for each project', async () => {
    const limited = await service.newProject()
    const path = `/admin/v1/projects/${limited.id}`
    expectOk(await service.adminClient().request('PATCH', path, { body: { max_blob_bytes: 150_000 } }))
    const log = await newSessionLog(await service.newClient({ token: limited.token }))
    const [, image] = IMAGES[0]!
    const blob = image(base64Of(100_000))
    for (let times = 0; times < 3; times++) expectOk(await log.add(blob), 201)
    expectError(await log.add(image(base64Of(100_000))), 403, 'quota_exceeded', 'max_blob_bytes')
    expect((await storedIn(log)).length).toBe(3)
  })

  it('is stored again if it is deleted meanwhile with the last session that had it', async () => {
    const [, image] = IMAGES[0]!
    const blob = image(base64Of(40_000))
    let before = await newSessionLog(api)
    expectOk(await before.add(blob), 201)
    for (let round = 0; round < 15; round++) {
      const log = await newSessionLog(api)
      const [deleted, added] = await Promise.all([api.deleteSession(before.id), log.add(blob)])
      expectOk(deleted)
      expectOk(added, 201)
      expectSame(await itemsIn(log, 'openai'), [blob])
      before = log
    }
  })

  it('as text is read as text where a format has that, such as a document of anthropic', async () => {
    const log = await newSessionLog(api)
    const text = `"Grüße", 你好\n\t😀`.repeat(9_000)
    const file_data = `data:text/plain;base64,${Buffer.from(text).toString('base64')}`
    expectOk(
      await log.add({ role: 'user', content: [{ type: 'file', file: { file_data, filename: 'a.txt' } }] }),
      201,
    )
    const [item] = await itemsIn(log, 'anthropic')
    const source = { type: 'text', media_type: 'text/plain', data: text }
    expectSame(item, { role: 'user', content: [{ type: 'document', source, title: 'a.txt' }] })
  })

  it('that only looks like a reference in meta, with a blob that is not there, is left as it is', async () => {
    const log = await newSessionLog(api)
    const meta = { a: { media_type: 'a/b', annals_blob: 'a'.repeat(64), annals_inline: '' } }
    expectOk(await log.add({ role: 'user', content: 'Hi' }, { meta }), 201)
    expect(expectOk(await log.timeline()).items[0]!.meta).toEqual(meta)
  })
})
