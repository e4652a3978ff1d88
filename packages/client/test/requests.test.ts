import { describe, expect, it } from 'vitest'
import { Annals } from '../src/index.ts'
import { ok, scriptedFetch } from './scripted_fetch.ts'

const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const API = 'http://127.0.0.1:8029/api/v1'

/** What a call sends, given one success in answer. */
async function sentBy(call: (annals: Annals) => Promise<unknown>) {
  const { fetch, sent } = scriptedFetch(ok({ items: [], has_more: false, next_cursor: '' }))
  await call(new Annals({ token: 'sk-1', fetch }))
  const { method, url, headers, body } = sent[0]!
  return { request: `${method} ${url.replace(API, '')}`, headers, body: body && JSON.parse(body) }
}

const message = { blob: { role: 'user', content: 'Hello' }, format: 'openai' as const, meta: { a: 1 } }
const event = { type: 'note', data: { text: 'hello' } }

describe('what a method sends', () => {
  it.each<[string, (annals: Annals) => Promise<unknown>, unknown, boolean]>([
    ['GET /ping', (annals) => annals.ping(), undefined, false],
    ['GET /key', (annals) => annals.key(), undefined, false],
    ['GET /usage', (annals) => annals.usage(), undefined, false],
    ['GET /usage?days=7', (annals) => annals.usage({ days: 7 }), undefined, false],
    ['GET /session', (annals) => annals.sessions.list().page(), undefined, false],
    ['POST /session', (annals) => annals.sessions.create(), {}, true],
    ['POST /session', (annals) => annals.sessions.create({ user: 'ada' }), { user: 'ada' }, true],
    [`GET /session/${ID}`, (annals) => annals.sessions.get(ID), undefined, false],
    [
      `PATCH /session/${ID}`,
      (annals) => annals.sessions.update(ID, { expires_in_s: null }),
      { expires_in_s: null },
      false,
    ],
    [`DELETE /session/${ID}`, (annals) => annals.sessions.delete(ID), undefined, false],
    [`POST /session/${ID}/copy`, (annals) => annals.sessions.copy(ID), undefined, true],
    [
      `POST /session/${ID}/copy`,
      (annals) => annals.sessions.fork(ID, { up_to_seq: 3, user: 'ada' }),
      { up_to_seq: 3, user: 'ada' },
      true,
    ],
    [`GET /session/${ID}/configs`, (annals) => annals.sessions.configs.get(ID), undefined, false],
    [
      `PUT /session/${ID}/configs`,
      (annals) => annals.sessions.configs.replace(ID, { a: 1 }),
      { configs: { a: 1 } },
      false,
    ],
    [
      `PATCH /session/${ID}/configs`,
      (annals) => annals.sessions.configs.merge(ID, { a: null }),
      { configs: { a: null } },
      false,
    ],
    [`POST /session/${ID}/events`, (annals) => annals.sessions.append(ID, event), event, true],
    [`POST /session/${ID}/messages`, (annals) => annals.sessions.appendMessage(ID, message), message, true],
    [
      `POST /session/${ID}/entries`,
      (annals) => annals.sessions.appendBatch(ID, [{ kind: 'event', ...event }]),
      { entries: [{ kind: 'event', ...event }] },
      true,
    ],
    ['GET /webhooks', (annals) => annals.webhooks.list(), undefined, false],
    [
      'POST /webhooks',
      (annals) => annals.webhooks.create({ url: 'https://example.com', events: ['message'] }),
      { url: 'https://example.com', events: ['message'] },
      false,
    ],
    [`DELETE /webhooks/${ID}`, (annals) => annals.webhooks.delete(ID), undefined, false],
    [
      'POST /entries',
      (annals) =>
        annals.sessions.appendToSessions([
          { session_id: ID, entries: [{ kind: 'event', ...event }], if_match: 0 },
        ]),
      { appends: [{ session_id: ID, entries: [{ kind: 'event', ...event }], if_match: 0 }] },
      true,
    ],
    [`GET /session/${ID}/events`, (annals) => annals.sessions.events(ID).page(), undefined, false],
    [
      `GET /session/${ID}/latest?key_prefix=a`,
      (annals) => annals.sessions.latest(ID, { key_prefix: 'a' }).page(),
      undefined,
      false,
    ],
    [
      `POST /session/${ID}/retractions`,
      (annals) => annals.sessions.retract(ID, { last: 1 }),
      { last: 1 },
      true,
    ],
    [`GET /session/${ID}/timeline`, (annals) => annals.sessions.timeline(ID).page(), undefined, false],
    [
      `GET /session/${ID}/messages?limit=200&format=gemini`,
      (annals) => annals.sessions.messages(ID, { format: 'gemini' }).page(),
      undefined,
      false,
    ],
    [
      `PATCH /session/${ID}/messages/${ID}/meta`,
      (annals) => annals.sessions.patchMessageMeta(ID, ID, { a: 1 }),
      { meta: { a: 1 } },
      false,
    ],
    [`GET /session/${ID}/token_counts`, (annals) => annals.sessions.tokenCounts(ID), undefined, false],
    ['GET /learning_spaces', (annals) => annals.learningSpaces.list().page(), undefined, false],
    ['POST /learning_spaces', (annals) => annals.learningSpaces.create(), {}, true],
    [`GET /learning_spaces/${ID}`, (annals) => annals.learningSpaces.get(ID), undefined, false],
    [
      `PATCH /learning_spaces/${ID}`,
      (annals) => annals.learningSpaces.merge(ID, { a: 1 }),
      { meta: { a: 1 } },
      false,
    ],
    [`DELETE /learning_spaces/${ID}`, (annals) => annals.learningSpaces.delete(ID), undefined, false],
    ['GET /user/ls?limit=200', (annals) => annals.users.list().page(), undefined, false],
    ['GET /user/ada/resources', (annals) => annals.users.resources('ada'), undefined, false],
    ['DELETE /user/ada', (annals) => annals.users.erase('ada'), undefined, false],
  ])('is %s', async (request, call, body, keyed) => {
    const sent = await sentBy(call)
    expect([sent.request, sent.body]).toEqual([request, body])
    expect(sent.headers.authorization).toBe('Bearer sk-1')
    expect(sent.headers['content-type']).toBe(body === undefined ? undefined : 'application/json')
    if (keyed) expect(sent.headers['idempotency-key']).toMatch(/^[0-9a-f]{32}$/)
    else expect(sent.headers).not.toHaveProperty('idempotency-key')
  })

  it('names its list parameters as the API does; a filter goes as JSON', async () => {
    const query = { user: 'a&b', filter_by_configs: { agent: 'x y' }, time_desc: true, limit: 7 }
    const { request } = await sentBy((annals) => annals.sessions.list(query).page('c-1'))
    expect(Object.fromEntries(new URL(`http://x${request.slice(4)}`).searchParams)).toEqual({
      user: 'a&b',
      filter_by_configs: '{"agent":"x y"}',
      time_desc: 'true',
      limit: '7',
      cursor: 'c-1',
    })
  })

  it('leaves out what is undefined', async () => {
    const query = { kind: undefined, after_seq: 0, time_desc: false, cursor: undefined }
    const { request } = await sentBy((annals) => annals.sessions.timeline(ID, query).page())
    expect(request).toBe(`GET /session/${ID}/timeline?after_seq=0&time_desc=false`)
  })

  it('has the key and the seq that the caller gives', async () => {
    const options = { idempotency_key: 'run-7', if_match: 0 }
    const { headers } = await sentBy((annals) => annals.sessions.append(ID, event, options))
    expect(headers).toMatchObject({ 'idempotency-key': 'run-7', 'if-match': '"0"' })
  })

  it.each<[string, (annals: Annals, options: { fence: number }) => Promise<unknown>]>([
    ['append', ({ sessions }, options) => sessions.append(ID, event, options)],
    ['appendMessage', ({ sessions }, options) => sessions.appendMessage(ID, { blob: {} }, options)],
    ['appendBatch', ({ sessions }, options) => sessions.appendBatch(ID, [], { apply: [ID], ...options })],
    ['retract', ({ sessions }, options) => sessions.retract(ID, { last: 1 }, options)],
    [
      'compact',
      ({ sessions }, options) => sessions.compact(ID, { to_seq: 1, summary: { blob: {} } }, options),
    ],
    ['patchMessageMeta', ({ sessions }, options) => sessions.patchMessageMeta(ID, ID, {}, options)],
    ['configs.replace', ({ sessions }, options) => sessions.configs.replace(ID, {}, options)],
    ['configs.merge', ({ sessions }, options) => sessions.configs.merge(ID, {}, options)],
    ['request', ({ runs }, options) => runs.request(ID, { kind: 'approval' }, options)],
    ['withdraw', ({ runs }, options) => runs.withdraw(ID, ID, undefined, options)],
    [
      'send',
      ({ runs }, options) => runs.send(ID, { mode: 'queue', kind: 'event', type: 'go', data: {} }, options),
    ],
  ])('has the fence that the caller gives: %s', async (_name, write) => {
    const { headers } = await sentBy((annals) => write(annals, { fence: 7 }))
    expect(headers).toMatchObject({ 'annals-fence': '7' })
  })

  it('encodes whatever an id holds', async () => {
    const { request } = await sentBy((annals) => annals.users.resources('../a b?c#d%/ü'))
    expect(request).toBe('GET /user/..%2Fa%20b%3Fc%23d%25%2F%C3%BC/resources')
  })

  it.each(['', '.', '..'])('is nothing for the id "%s", which no URL can carry', async (id) => {
    const { fetch, sent } = scriptedFetch()
    const annals = new Annals({ token: 'sk-1', fetch })
    await expect(annals.users.erase(id)).rejects.toMatchObject({ status: 0, error: 'invalid_request' })
    expect(sent).toEqual([])
  })

  it('is nothing where a header cannot carry the key, and it is not tried again', async () => {
    const { fetch, sent } = scriptedFetch()
    const annals = new Annals({ token: 'sk-1', fetch })
    const options = { idempotency_key: 'a\nb' }
    await expect(annals.sessions.append(ID, event, options)).rejects.toThrow(TypeError)
    expect(sent).toEqual([])
  })
})

describe('a client', () => {
  it.each(['http://host:1/base', 'http://host:1/base/', 'http://host:1/base//'])('at %s', async (url) => {
    const { fetch, sent } = scriptedFetch(ok())
    await new Annals({ url, token: 'sk-1', fetch }).ping()
    expect(sent[0]!.url).toBe('http://host:1/base/api/v1/ping')
  })

  it('needs a url of http and a token', () => {
    expect(() => new Annals({ url: 'localhost:8029', token: 'sk-1' })).toThrow(/http:\/\//)
    expect(() => new Annals({ url: 'nonsense', token: 'sk-1' })).toThrow(TypeError)
    expect(() => new Annals({ token: undefined })).toThrow(/token/)
    expect(() => new Annals({ token: '' })).toThrow(/token/)
    expect(() => new Annals({ token: 'sk-\u{1f600}' })).toThrow(TypeError)
  })

  it('reads and writes JSON with what it is given', async () => {
    const text = '{"code":0,"error":"","msg":"ok","data":{"n":12345678901234567890}}'
    const { fetch, sent } = scriptedFetch(new Response(text))
    const parse = (json: string) => JSON.parse(json.replace(/\d{16,}/g, '"$&"'))
    const stringify = (value: unknown) => JSON.stringify(value).replace(/"(\d{16,})"/g, '$1')
    const annals = new Annals({ token: 'sk-1', fetch, parse, stringify })
    const answer = await annals.sessions.append(ID, { type: 'a', data: { n: '12345678901234567890' } })
    expect(sent[0]!.body).toBe('{"type":"a","data":{"n":12345678901234567890}}')
    expect(answer).toEqual({ n: '12345678901234567890' })
  })
})
