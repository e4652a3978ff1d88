import { must, mustEqual, repeat, upTo } from './expectations.js'
import { event, type Log } from './log.js'
import type { Promised } from './promise.js'
import { type Entry, refused } from './server.js'

const WRITERS = 6
const APPENDS = 5
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

/** Several writers at once, each of which sends its next append after the answer to the one before. */
async function writeTogether(log: Log): Promise<Entry[][]> {
  return repeat(WRITERS, async (writer) => {
    const stored: Entry[] = []
    for (const step of upTo(APPENDS)) {
      const data = { writer, step }
      stored.push(
        ...(step % 2 === 0 ? await log.batch([event(data), event(data)]) : [await log.append(data)]),
      )
    }
    return stored
  })
}

export const ORDER: Promised[] = [
  {
    name: 'order',
    promise:
      'The seqs of a session are 1, 2, 3, … without gaps, in one order that its times and writers agree with.',
    reference: 'api.md#writing-safely',
    async check({ newLog }) {
      const log = await newLog()
      const stored = await writeTogether(log)
      const answered = stored.flat().sort((a, b) => a.seq - b.seq)
      mustEqual(
        answered.map(({ seq }) => seq),
        upTo(answered.length),
        'The seqs that the writers were answered',
      )
      const entries = await log.timeline()
      mustEqual(
        entries.map(({ seq }) => seq),
        upTo(answered.length),
        'The seqs of the timeline',
      )
      mustEqual(
        entries.map(({ id }) => id),
        answered.map(({ id }) => id),
        'The ids of the timeline',
      )
      for (const own of stored)
        mustEqual(
          own.map(({ seq }) => seq),
          own.map(({ seq }) => seq).sort((a, b) => a - b),
          "A writer's own seqs",
        )
      const times = entries.map(({ created_at }) => created_at)
      must(
        times.every((time) => TIME.test(time)),
        `A created_at is not in UTC with microseconds: ${times[0]}.`,
      )
      mustEqual(times, [...times].sort(), 'created_at along seq')
    },
  },
  {
    name: 'prefix',
    promise: 'After a reader has seen the log up to n, nothing new appears at or before n.',
    reference: 'api.md#writing-safely',
    async check({ newLog }) {
      const log = await newLog()
      let written = false
      const writing = writeTogether(log).finally(() => {
        written = true
      })
      const seen: number[] = []
      try {
        for (let last = false; !last; ) {
          last = written
          const { items } = await log.page({ after_seq: seen.length, limit: 1000 })
          seen.push(...items.map(({ seq }) => seq))
          mustEqual(seen, upTo(seen.length), 'What a reader saw beside the writers')
        }
      } finally {
        await Promise.allSettled([writing])
      }
      const count = (await writing).flat().length
      must(seen.length === count, `The reader saw ${seen.length} of ${count} acknowledged entries.`)
    },
  },
  {
    name: 'batch',
    promise: 'A batch is stored as a whole, with consecutive seqs, or not at all.',
    reference: 'resources.md#the-timeline',
    async check({ newLog }) {
      const log = await newLog()
      const batches = await repeat(4, (batch) => log.batch(upTo(5).map((entry) => event({ batch, entry }))))
      for (const items of batches)
        mustEqual(
          items.map(({ seq }) => seq - items[0]!.seq),
          [0, 1, 2, 3, 4],
          'Distances within a batch',
        )
      const entries = [event({}), { kind: 'event', type: 'conformance' }]
      const answer = await log.send('POST', '/entries', { body: { entries } })
      refused(answer, 400, 'invalid_request', 'A batch whose second entry lacks its data')
      mustEqual(await log.seqs(), upTo(20), 'The log after a refused batch')
    },
  },
  {
    name: 'tail',
    promise:
      'A live tail sends what is stored and what follows: each entry once, in order, also after it was cut.',
    reference: 'resources.md#the-timeline',
    async check({ server, newLog }) {
      const log = await newLog()
      await log.batch([event({ step: 1 }), event({ step: 2 }), event({ step: 3 })])
      const seen: number[] = []
      const writeOn = async () => {
        await log.append({ step: 4 })
        await writeTogether(log)
        await log.append({ end: true })
      }
      let writing: Promise<void> | undefined
      try {
        for await (const { seq, data } of server.tail(log.id)) {
          seen.push(seq)
          if (seq === 3) writing ??= writeOn()
          if (data?.end === true) break
        }
      } finally {
        await Promise.allSettled([writing])
      }
      await writing
      const all = await log.seqs()
      mustEqual(seen, all, 'What the tail sent')
      const again: number[] = []
      for await (const { seq } of server.tail(log.id, { headers: { 'Last-Event-ID': '5' } })) {
        again.push(seq)
        if (seq === all.length) break
      }
      mustEqual(again, all.slice(5), 'What a tail sent after Last-Event-ID: 5')
    },
  },
]
