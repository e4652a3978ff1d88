import { randomUUID } from 'node:crypto'
import { must, mustEqual, repeat, upTo } from './expectations.js'
import { event } from './log.js'
import type { Promised } from './promise.js'
import { refused, type Session, succeeded } from './server.js'

export const WRITING: Promised[] = [
  {
    name: 'condition',
    promise:
      'An append with If-Match is stored only if the last seq is still that; of several on one condition, one is.',
    reference: 'api.md#if-match',
    async check({ newLog }) {
      const log = await newLog()
      await log.append({}, { 'If-Match': '"0"' })
      await log.append({}, { 'If-Match': '"1"' })
      refused(await log.tryAppend({}, { 'If-Match': '"1"' }), 409, 'seq_conflict', 'The last seq is 2')
      const answers = await repeat(6, (racer) => log.tryAppend({ racer }, { 'If-Match': '"2"' }))
      const stored = answers.filter(({ status }) => status < 300)
      must(stored.length === 1, `Of 6 appends on the same condition, ${stored.length} were stored.`)
      for (const answer of answers)
        if (answer !== stored[0]) refused(answer, 409, 'seq_conflict', 'Another append was first')
      mustEqual(await log.seqs(), upTo(3), 'The log after three stored appends')
    },
  },
  {
    name: 'idempotency',
    promise:
      'A request with an Idempotency-Key takes effect once, however often it is sent, and repeats get the first answer.',
    reference: 'api.md#idempotency-key',
    async check({ server, newLog, newUser }) {
      const log = await newLog()
      const key = { 'Idempotency-Key': randomUUID() }
      const answers = await repeat(6, () => log.tryAppend({ step: 1 }, key))
      const late = await log.tryAppend({ step: 1 }, key)
      mustEqual(
        [...answers, late].map((answer) => succeeded(answer).seq),
        Array(7).fill(1),
        'The seqs of repeats',
      )
      must(
        new Set([...answers, late].map(({ data }) => data.id)).size === 1,
        'Repeats were answered different ids.',
      )
      const first = answers.filter(({ headers }) => headers.get('idempotent-replayed') !== 'true')
      must(
        first.length === 1,
        `${first.length} of 6 requests at once lack Idempotent-Replayed: true, instead of 1.`,
      )
      must(
        late.headers.get('idempotent-replayed') === 'true',
        'A late repeat lacks Idempotent-Replayed: true.',
      )
      mustEqual(await log.seqs(), [1], 'The log after one request sent seven times')
      refused(
        await log.tryAppend({ step: 2 }, key),
        422,
        'idempotency_key_reused',
        'The key has another body',
      )

      const corrected = { 'Idempotency-Key': randomUUID() }
      const wrong = await log.send('POST', '/events', { body: { type: 'conformance' }, headers: corrected })
      refused(wrong, 400, 'invalid_request', 'An event without data')
      const { seq } = await log.append({ step: 2 }, corrected)
      must(seq === 2, `A corrected request under the key of a refused one got seq ${seq} instead of 2.`)

      const creation = { body: { user: newUser() }, headers: { 'Idempotency-Key': randomUUID() } }
      const sessions = await repeat(3, () => server.ok<Session>('POST', '/session', creation))
      must(
        new Set(sessions.map(({ id }) => id)).size === 1,
        'One creation sent three times made several sessions.',
      )
    },
  },
  {
    name: 'entry-ids',
    promise: 'An entry with an id of its own is stored once; another entry under the same id is refused.',
    reference: 'resources.md#the-timeline',
    async check({ newLog }) {
      const log = await newLog()
      const [id, other] = [randomUUID(), randomUUID()]
      await log.batch([event({ step: 1 }, { id })])
      const [again, next] = await log.batch([event({ step: 1 }, { id }), event({ step: 2 }, { id: other })])
      mustEqual([again?.seq, next?.seq], [1, 2], 'The seqs of a repeated and a new entry')
      const entries = [event({ step: 3 }, { id })]
      const reused = await log.send('POST', '/entries', { body: { entries } })
      refused(reused, 422, 'idempotency_key_reused', 'The id has other data')
      mustEqual(await log.seqs(), [1, 2], 'The log')
    },
  },
  {
    name: 'json',
    promise: 'JSON comes back with every number, string and level as it was sent.',
    reference: 'api.md#json-comes-back-as-it-was-sent',
    async check({ newLog }) {
      const log = await newLog()
      const numbers = [
        '9007199254740993',
        '-0.12345678901234567890123456789',
        '123456789012345678901234567890',
      ]
      const strings = { emoji: '😀', '': 'an empty key', ' \\"': '\u2028\t\u0001é', __proto__x: null }
      const nesting = `${'['.repeat(200)}${']'.repeat(200)}`
      const text = `{"type":"conformance","data":{"numbers":[${numbers}],"strings":${JSON.stringify(strings)},"nesting":${nesting}}}`
      succeeded(await log.send('POST', '/events', { text }))
      const answer = await log.send<{ items: Array<{ data: { strings: object } }> }>('GET', '/timeline')
      const stored = succeeded(answer).items[0]!.data.strings
      const squeezed = answer.text.replaceAll(/\s/g, '')
      must(squeezed.includes(`[${numbers}]`), `The numbers ${numbers} are not there as they were sent.`)
      must(squeezed.includes(nesting), 'An array nested 200 levels deep is not there.')
      for (const [key, value] of Object.entries(strings))
        must(Reflect.get(stored, key) === value, `The value of the key ${JSON.stringify(key)} is another.`)
    },
  },
]
