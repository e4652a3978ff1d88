import { randomUUID } from 'node:crypto'
import { must, mustEqual, repeat, upTo } from './expectations.js'
import { event } from './log.js'
import type { Promised } from './promise.js'
import { type Entry, type Page, refused, type Session } from './server.js'

type Retracted = { retraction: Entry; items: Entry[] }

export const KEEPING: Promised[] = [
  {
    name: 'retraction',
    promise:
      'A retracted entry stays in the log, marked, and leaves messages and latest; no two callers retract the same one.',
    reference: 'resources.md#retractions',
    async check({ newLog }) {
      const log = await newLog()
      const said = [await log.say('one'), await log.say('two'), await log.say('three')]
      await log.batch([event({ plan: 'old' }, { key: 'plan' }), event({ plan: 'new' }, { key: 'plan' })])
      const body = { ids: [said[1]!.id] }
      const { retraction, items } = await log.ok<Retracted>('POST', '/retractions', { body })
      mustEqual(
        [retraction.seq, retraction.type, ...items.map(({ seq }) => seq)],
        [6, 'annals.retraction', 2],
        'The retraction',
      )
      await log.ok('POST', '/retractions', { body: { ids: [(await log.timeline())[4]!.id] } })
      const marks = (await log.timeline()).map(({ retracted_by }) => retracted_by ?? 0)
      mustEqual(marks, [0, 6, 0, 0, 7, 0, 0], 'retracted_by along the timeline')
      const { ids } = await log.ok<{ ids: string[] }>('GET', '/messages', { query: { format: 'openai' } })
      mustEqual(ids, [said[0]!.id, said[2]!.id], 'The messages that remain')
      const latest = await log.ok<Page<Entry>>('GET', '/latest', { query: { key: 'plan' } })
      mustEqual(
        latest.items.map(({ seq }) => seq),
        [4],
        'The latest entry of a key whose newest was retracted',
      )

      const stale = { body: { last: 1 }, headers: { 'If-Match': '"1"' } }
      refused(await log.send('POST', '/retractions', stale), 409, 'seq_conflict', 'The last seq is 7')
      const stack = await newLog()
      await stack.batch(upTo(4).map((step) => event({ step })))
      const popped = await repeat(4, () =>
        stack.ok<Retracted>('POST', '/retractions', { body: { last: 1, type: 'conformance' } }),
      )
      mustEqual(
        popped.flatMap((one) => one.items.map(({ seq }) => seq)).sort(),
        upTo(4),
        'What four callers popped at once',
      )
    },
  },
  {
    name: 'fork',
    promise: 'A fork is the log up to one seq, with its seqs and times; from then on the two are apart.',
    reference: 'resources.md#copies-and-forks',
    async check({ server, newLog }) {
      const log = await newLog({ configs: { attempt: 1 } })
      await log.batch(upTo(5).map((step) => event({ step })))
      const body = { up_to_seq: 3, configs: { attempt: 2 } }
      const copied = await log.ok<{ new_session_id: string }>('POST', '/copy', { body })
      const path = `/session/${copied.new_session_id}`
      const read = async () => (await server.ok<Page<Entry>>('GET', `${path}/timeline`)).items
      const told = (entries: Entry[]) =>
        entries.map(({ seq, created_at, data }) => [seq, created_at, data?.step])
      mustEqual(told(await read()), told((await log.timeline()).slice(0, 3)), 'The entries of the fork')
      const fork = await server.ok<Session & Record<string, unknown>>('GET', path)
      mustEqual(
        [fork.configs.attempt, fork.forked_from, fork.forked_at_seq],
        [2, log.id, 3],
        'What the fork says of itself',
      )
      const next = await server.ok<Entry>('POST', `${path}/events`, {
        body: { type: 'conformance', data: {} },
      })
      must(next.seq === 4, `The first append to a fork at 3 got seq ${next.seq} instead of 4.`)
      mustEqual(await log.seqs(), upTo(5), 'The original after an append to its fork')
      const ahead = await log.send('POST', '/copy', { body: { up_to_seq: 6 } })
      refused(ahead, 409, 'seq_ahead', 'The log ends at 5')
    },
  },
  {
    name: 'erasure',
    promise:
      'What is deleted is gone from every answer, with the sessions below it, as if it had never been there.',
    reference: 'resources.md#users',
    async check({ server, newLog, newUser }) {
      const user = newUser()
      const [kept, parent] = [await newLog({ user }), await newLog({ user })]
      const child = await newLog({ user, parent: parent.id })
      for (const log of [kept, parent, child]) await log.append({ secret: user })
      await server.ok('DELETE', parent.path)
      for (const log of [parent, child])
        for (const path of ['', '/timeline', '/events', '/messages?format=openai'])
          refused(await log.send('GET', path), 404, 'session_not_found', 'The session was deleted')
      refused(await parent.tryAppend(), 404, 'session_not_found', 'The session was deleted')
      const list = () => server.ok<Page<Session>>('GET', '/session', { query: { user } })
      mustEqual(
        (await list()).items.map(({ id }) => id),
        [kept.id],
        "The user's sessions that remain",
      )

      const receipt = await server.ok<{ deleted?: { sessions?: number; entries?: number } }>(
        'DELETE',
        `/user/${user}`,
      )
      mustEqual(
        [receipt.deleted?.sessions, receipt.deleted?.entries],
        [1, 1],
        'Sessions and entries on the receipt',
      )
      mustEqual((await list()).items, [], 'The sessions of an erased user')
      refused(await server.send('DELETE', `/user/${user}`), 404, 'user_not_found', 'The user was erased')
      const [gone, never] = [await kept.send('GET', ''), await server.send('GET', `/session/${randomUUID()}`)]
      refused(gone, 404, 'session_not_found', 'The user was erased')
      must(gone.text === never.text, 'The answer tells a deleted session from one that never was.')
    },
  },
]
