import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'

/** As many and as large as fill one commit while others are under way, so that two go side by side. */
const APPENDERS = 24
const ENTRIES = 100
const SESSIONS = 12
const ACKNOWLEDGED_BEFORE_KILL = 60

const service = useService()

interface Batch {
  session_id: string
  key: string
}
interface Acknowledged extends Batch {
  seqs: number[]
}

async function append(client: ApiClient, { session_id, key }: Batch): Promise<Acknowledged> {
  const entries = Array.from({ length: ENTRIES }, (_, at) => ({
    kind: 'event',
    type: 'durable',
    data: { marker: `${key}.${at}` },
  }))
  const { batch } = sessionLog(client, session_id)
  let answer = await batch(entries, { headers: { 'Idempotency-Key': key } })
  // Too much waits: on a slow machine these may be more than are stored in time.
  while (answer.status === 503) answer = await batch(entries, { headers: { 'Idempotency-Key': key } })
  return { session_id, key, seqs: expectOk(answer, 201).items.map(({ seq }) => seq) }
}

it('kill -9 in the middle of full commits loses no batch, stores none twice, and leaves none in part', async () => {
  const project = await service.newProject()
  const doomed = await service.startNode()
  const client = await service.newClient({ token: project.token, node: doomed })
  const sessions: string[] = []
  for (let count = 0; count < SESSIONS; count += 1) sessions.push((await newSessionLog(client)).id)
  const acknowledged: Acknowledged[] = []
  const unanswered = Array.from({ length: APPENDERS }, async (_, appender) => {
    for (let count = 0; ; count += 1) {
      const batch = { session_id: sessions[(appender + count) % SESSIONS]!, key: `${appender}-${count}` }
      try {
        acknowledged.push(await append(client, batch))
      } catch (error) {
        if (!(error as NodeJS.ErrnoException).code) throw error
        return batch
      }
    }
  })
  while (acknowledged.length < ACKNOWLEDGED_BEFORE_KILL) await sleep(5)
  await doomed.kill()
  const open = await Promise.all(unanswered)

  const restarted = await service.startNode()
  const retrier = await service.newClient({ token: project.token, node: restarted })
  const retried = await Promise.all(open.map((batch) => append(retrier, batch)))
  const placed = [...acknowledged, ...retried].flatMap(({ session_id, key, seqs }) =>
    seqs.map((seq, at) => `${session_id} ${seq} ${key}.${at}`),
  )
  const stored = await queryRows<{ session_id: string; seq: string; marker: string }>(
    service.databaseUrl,
    `SELECT session_id, seq, data->>'marker' AS marker FROM entries WHERE project_id = $1
     ORDER BY session_id, seq`,
    [project.id],
  )
  expect(new Set(stored.map(({ session_id, seq, marker }) => `${session_id} ${seq} ${marker}`))).toEqual(
    new Set(placed),
  )
  expect(stored).toHaveLength(placed.length)
  for (const session_id of sessions) {
    const seqs = stored.filter((row) => row.session_id === session_id).map(({ seq }) => Number(seq))
    expect(seqs).toEqual(seqs.map((_, at) => at + 1))
  }
  await restarted.stop()
}, 60_000)
