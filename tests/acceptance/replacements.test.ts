import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, SessionEvent } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { RequestOptions } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, type TimelineItem } from '../harness/session_log.ts'

interface Replaced {
  retraction: SessionEvent
  items: TimelineItem[]
  appended?: TimelineItem[]
}

const service = useSharedService()
let api: ApiClient
beforeAll(async () => {
  api = await service.newClient()
})

const replace = (log: SessionLog, body: unknown, options: RequestOptions = {}) =>
  api.request<Replaced>('POST', `/api/v1/session/${log.id}/retractions`, { body, ...options })
const said = (content: string, more = {}) => ({ kind: 'message', blob: { role: 'user', content }, ...more })
const contents = async (log: SessionLog) => expectOk(await log.list()).items.map(({ content }) => content)

async function logOf(...texts: string[]): Promise<SessionLog> {
  const log = await newSessionLog(api)
  expectOk(await log.batch(texts.map((text) => said(text))), 201)
  return log
}

describe('a retraction with entries', () => {
  it('replaces what it retracts, in one commit', async () => {
    const log = await logOf('a', 'b', 'c')
    const note = { kind: 'event', type: 'edited', data: { by: 'omar' }, key: 'edit' }
    const { retraction, items, appended } = expectOk(
      await replace(log, { last: 2, entries: [said('d'), note] }),
    )
    expect(retraction).toMatchObject({ seq: 4, type: 'annals.retraction', data: { seqs: [2, 3] } })
    expect(retraction).not.toHaveProperty('kind')
    expect(items.map(({ seq }) => seq)).toEqual([2, 3])
    const timeline = expectOk(await log.timeline()).items
    expect(appended).toEqual(timeline.slice(4))
    expect(appended).toMatchObject([
      { seq: 5, kind: 'message' },
      { seq: 6, kind: 'event', type: 'edited', key: 'edit', created_at: retraction.created_at },
    ])
    expect(await contents(log)).toEqual(['a', 'd'])
    const two = await logOf('a', 'd')
    expect(expectOk(await log.tokens())).toEqual(expectOk(await two.tokens()))
  })

  it('is carried out once for one key, and not at all at another seq than If-Match names', async () => {
    const log = await logOf('a', 'b')
    const body = { after_seq: 1, entries: [said('c')] }
    const late = await replace(log, body, { headers: { 'If-Match': '"1"' } })
    expectError(late, 409, 'seq_conflict')
    expect(await contents(log)).toEqual(['a', 'b'])
    const headers = { 'Idempotency-Key': randomUUID() }
    const first = await replace(log, body, { headers })
    const again = await replace(log, body, { headers })
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(again.text).toBe(first.text)
    expectError(
      await replace(log, { ...body, entries: [said('d')] }, { headers }),
      422,
      'idempotency_key_reused',
    )
    expect(await contents(log)).toEqual(['a', 'c'])
  })

  it('is refused as a whole for an entry that cannot be stored', async () => {
    const log = await logOf('a', 'b')
    const refusals: Array<[unknown, string]> = [
      [[said('c'), said('d', { id: randomUUID() })], '/entries/1/id is not accepted here'],
      [[said('c'), { kind: 'message', blob: { role: 'nobody' } }], '/entries/1/blob'],
      [[{ kind: 'event', type: 'annals.retraction', data: {} }], '/entries/0/type'],
      [[], '/entries'],
    ]
    for (const [entries, place] of refusals)
      expectError(await replace(log, { last: 1, entries }), 400, 'invalid_request', place)
    expect(expectOk(await log.timeline()).items).toHaveLength(2)
  })

  it('keeps the number of messages, however many replace the last one at once', async () => {
    const log = await logOf('a', 'b')
    const texts = Array.from({ length: 20 }, (_, at) => `replacement ${at}`)
    const answers = await Promise.all(texts.map((text) => replace(log, { last: 1, entries: [said(text)] })))
    const gone = answers.map((answer) => expectOk(answer).items.map(({ seq }) => seq))
    expect(new Set(gone.flat()).size).toBe(20)
    const [first, last, ...more] = await contents(log)
    expect([first, more]).toEqual(['a', []])
    expect(texts).toContain(last)
  })
})
