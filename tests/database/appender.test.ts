import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { DatabaseAway, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { planned } from '../../packages/kits/src/postgres/statement.ts'
import type { AppendRequest } from '../../packages/server/src/log/append/append_request.ts'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import { startRelay } from './connection_relay.ts'
import { batchRequest, ending, eventRequest, inputEntries, useLog } from './log_fixture.ts'

const log = useLog()
let nodes: Appender[]
let project: string
let session: string

beforeAll(async () => {
  nodes = [log.newNode(), log.newNode()]
  project = await log.newProject()
  session = await log.newSession(project)
})

describe('what fails in a flush', () => {
  it('fails alone when its session is unknown', async () => {
    const endings = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        ending(nodes[0]!, eventRequest(project, n % 10 === 3 ? randomUUID() : session)),
      ),
    )
    expect(endings.filter((how) => how === 'session_not_found')).toHaveLength(3)
    expect(endings.filter(Array.isArray)).toHaveLength(27)
  })

  it('fails alone when the database cannot hold its body', async () => {
    const bad = [
      '{"mark":"\\u0000"}',
      '{"mark":"\\ud800"}',
      '{"mark":1e200000}',
      `{"mark":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      '{"\\u0000":"mark"}',
    ]
    const session_id = await log.newSession(project)
    const endings = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        ending(
          nodes[0]!,
          eventRequest(project, session_id, n % 12 === 5 ? { data: bad[(n - 5) / 12]! } : {}),
        ),
      ),
    )
    expect(endings.filter((how) => how === 'invalid_request')).toHaveLength(5)
    const seqs = endings.filter(Array.isArray).flat()
    expect(seqs).toEqual(seqs.map((_, n) => n + 1))
    expect((await log.readSession(project, session_id)).entries).toHaveLength(55)
  })

  it('fails alone when its If-Match no longer holds, and its message names the seq that does', async () => {
    const session_id = await log.newSession(project)
    const append = (if_match?: number) => nodes[0]!.append(eventRequest(project, session_id, { if_match }))
    const outcomes = await Promise.allSettled([append(), append(5), append(1), append()])
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    const { reason } = outcomes[1] as PromiseRejectedResult
    expect(reason).toMatchObject({ error: 'seq_conflict', message: expect.stringMatching(/last seq is 1\b/) })
    expect((await log.readSession(project, session_id)).last_seq).toBe(3)
  })

  it('takes the whole of its batch with it and nothing else', async () => {
    const session_id = await log.newSession(project)
    const given = randomUUID()
    await nodes[0]!.append(batchRequest(project, session_id, ['first'], [given]))
    const endings = await Promise.all([
      ending(nodes[0]!, eventRequest(project, session_id)),
      ending(
        nodes[0]!,
        batchRequest(project, session_id, ['new', 'not first', 'new too'], [randomUUID(), given]),
      ),
      ending(nodes[0]!, batchRequest(project, session_id, ['x', 'y'])),
    ])
    expect(endings).toEqual([[2], 'idempotency_key_reused', [3, 4]])
    const { entries } = await log.readSession(project, session_id)
    expect(entries.map((entry) => entry.data.mark)).toEqual(['first', expect.any(String), 'x', 'y'])
  })
})

describe('a session of another project', () => {
  it('is unknown, also when both projects have one with the same id', async () => {
    const other = await log.newProject()
    expect(await ending(nodes[0]!, eventRequest(other, session))).toBe('session_not_found')
    const shared = await log.newSession(other)
    await log.newSession(project, shared)
    const endings = await Promise.all([
      ending(nodes[0]!, eventRequest(project, shared)),
      ending(nodes[1]!, eventRequest(other, shared)),
      ending(nodes[0]!, eventRequest(other, shared, { if_match: 0 })),
    ])
    expect(endings.filter(Array.isArray).flat().sort()).toEqual(
      endings[2] === 'seq_conflict' ? [1, 1] : [1, 1, 2],
    )
  })

  it('may use the same idempotency key', async () => {
    const other = await log.newProject()
    const idempotency = { key: 'the same', request_hash: 'h' }
    const [one, two] = [
      await nodes[0]!.append(eventRequest(project, session, { idempotency })),
      await nodes[0]!.append(eventRequest(other, await log.newSession(other), { idempotency })),
    ]
    expect([one.replayed, two.replayed]).toEqual([false, false])
  })
})

describe('a retry that meets its first attempt on another node', () => {
  const twice = async (parts: Partial<AppendRequest>) => {
    const session_id = await log.newSession(project)
    await nodes[0]!.append(eventRequest(project, session_id))
    const data = JSON.stringify({ mark: 'once' })
    const answers = await whileSessionIsHeld(log.url, project, session_id, async ({ waiting, release }) => {
      const attempts = nodes.map((node) => node.append(eventRequest(project, session_id, { data, ...parts })))
      await waiting(2)
      await release()
      return Promise.allSettled(attempts)
    })
    const { entries } = await log.readSession(project, session_id)
    expect(entries.filter((entry) => entry.data.mark === 'once')).toHaveLength(1)
    return answers.map((answer) =>
      answer.status === 'fulfilled'
        ? { seq: answer.value.entries[0]!.seq, replayed: answer.value.replayed }
        : (answer.reason as { error?: string }).error,
    )
  }

  it('gets the first answer', async () => {
    const answers = await twice({ idempotency: { key: randomUUID(), request_hash: 'h' } })
    expect(answers).toEqual(
      expect.arrayContaining([
        { seq: 2, replayed: false },
        { seq: 2, replayed: true },
      ]),
    )
  })

  it('gets the first answer also when the append was conditional', async () => {
    const answers = await twice({ idempotency: { key: randomUUID(), request_hash: 'h' }, if_match: 1 })
    expect(answers).toEqual(
      expect.arrayContaining([
        { seq: 2, replayed: false },
        { seq: 2, replayed: true },
      ]),
    )
  })
})

describe('an append whose connection breaks after the database has committed it', () => {
  const lostOnce = async (parts: Partial<AppendRequest>, isApplying = false) => {
    const session_id = await log.newSession(project)
    const apply = isApplying ? [await log.newInput(project, session_id)] : undefined
    const relay = await startRelay(log.url)
    const node = log.newNode({}, relay.url)
    await node.append(eventRequest(project, session_id))
    relay.loseNextAnswer()
    const request = eventRequest(project, session_id, parts)
    const all = [...inputEntries(apply), ...request.entries]
    const outcome = await node.append({ ...request, apply, entries: all })
    const { entries } = await log.readSession(project, session_id)
    await relay.close()
    expect(relay.lost).toBe(1)
    return { seqs: outcome.entries.map((entry) => entry.seq), stored: entries.length }
  }

  it('is stored once and acknowledged', async () => {
    expect(await lostOnce({})).toEqual({ seqs: [2], stored: 2 })
  })

  it('is stored once and acknowledged, though its If-Match no longer holds the second time', async () => {
    expect(await lostOnce({ if_match: 1 })).toEqual({ seqs: [2], stored: 2 })
  })

  it('is stored once and acknowledged with an idempotency key', async () => {
    expect(await lostOnce({ idempotency: { key: randomUUID(), request_hash: 'h' } })).toEqual({
      seqs: [2],
      stored: 2,
    })
  })

  it('is stored once and acknowledged with the input that it applies, with an idempotency key or without', async () => {
    expect(await lostOnce({}, true)).toEqual({ seqs: [2, 3], stored: 3 })
    const idempotency = { key: randomUUID(), request_hash: 'h' }
    expect(await lostOnce({ idempotency }, true)).toEqual({ seqs: [2, 3], stored: 3 })
  })
})

describe('a database that is held up', () => {
  it('leaves what was sent in doubt, though stored in the end, and what waits behind it unavailable', async () => {
    const session_id = await log.newSession(project)
    const node = log.newNode({ wait_ms_max: 2_000 })
    const [sent, waiting] = await whileSessionIsHeld(log.url, project, session_id, () =>
      Promise.all([
        ending(node, eventRequest(project, session_id)),
        ending(node, eventRequest(project, session_id)),
      ]),
    )
    expect([sent, waiting]).toEqual(['AppendInDoubt', 'unavailable'])
    const patience = { timeout: 15_000 }
    await vi.waitFor(
      async () => expect((await log.readSession(project, session_id)).last_seq).toBe(1),
      patience,
    )
    await vi.waitFor(() => expect(node.load()).toEqual({ requests: 0, bytes: 0, flushes: 0 }), patience)
    expect(await ending(node, eventRequest(project, session_id))).toEqual([2])
  })
})

describe('a process that stands still, or vanished, within a transaction', () => {
  it('loses its locks, and with them its transaction', async () => {
    const standing = openDatabase({
      target: { connectionString: log.url },
      connections_max: 1,
      wait_ms_max: 5_000,
      statement_ms_max: 200,
    })
    const lock = planned(
      'lock',
      'SELECT 1 FROM session_heads WHERE project_id = $1 AND session_id = $2 FOR UPDATE',
    )
    const transaction = standing.transaction(async (connection) => {
      await connection.query(lock, [project, session])
      // It goes on when somebody else has got what it held.
      await nodes[0]!.append(eventRequest(project, session))
      await connection.query(lock, [project, session])
    })
    await expect(transaction).rejects.toBeInstanceOf(DatabaseAway)
    await standing.close()
  })
})
