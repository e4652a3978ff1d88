import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog, sessionLog, type TimelineItem } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'

/** As many and as large as fill one commit while others are under way, so that two go side by side. */
const APPENDERS = 24
const ENTRIES = 100
const SESSIONS = 12
/** How many of these half of the batches are for. */
const SEVERAL = 3
const ACKNOWLEDGED_BEFORE_KILL = 60

const service = useService()

/** Entries for one session, or for several, all or nothing. */
interface Batch {
  session_ids: string[]
  key: string
}
/** Where each entry was stored. */
interface Acknowledged extends Batch {
  places: string[]
}
interface Stored {
  session_id: string
  items: TimelineItem[]
}

async function append(client: ApiClient, { session_ids, key }: Batch): Promise<Acknowledged> {
  const each = Math.floor(ENTRIES / session_ids.length)
  const appends = session_ids.map((session_id, place) => ({
    session_id,
    entries: Array.from({ length: each }, (_, at) => ({
      kind: 'event',
      type: 'durable',
      data: { marker: `${key}.${place * each + at}` },
    })),
  }))
  const headers = { 'Idempotency-Key': key }
  const [first] = appends as [(typeof appends)[number]]
  const send = async (): Promise<Answer<{ appends: Stored[] } | { items: TimelineItem[] }>> =>
    appends.length > 1
      ? client.request('POST', '/api/v1/entries', { body: { appends }, headers })
      : sessionLog(client, first.session_id).batch(first.entries, { headers })
  let answer = await send()
  // Too much waits: on a slow machine these may be more than are stored in time.
  while (answer.status === 503) answer = await send()
  const stored = expectOk(answer, 201)
  const parts = 'appends' in stored ? stored.appends : [{ session_id: first.session_id, items: stored.items }]
  const places = parts.flatMap(({ session_id, items }) =>
    items.map(({ seq, data }) => `${session_id} ${seq} ${(data as { marker: string }).marker}`),
  )
  return { session_ids, key, places }
}

it('kill -9 in the middle of full commits loses no batch, stores none twice, and leaves none in part, in whatever number of sessions', async () => {
  const project = await service.newProject()
  const doomed = await service.startNode()
  const client = await service.newClient({ token: project.token, node: doomed })
  const sessions: string[] = []
  for (let count = 0; count < SESSIONS; count += 1) sessions.push((await newSessionLog(client)).id)
  const acknowledged: Acknowledged[] = []
  const unanswered = Array.from({ length: APPENDERS }, async (_, appender) => {
    for (let count = 0; ; count += 1) {
      const session_ids = Array.from(
        { length: appender % 2 === 0 ? 1 : SEVERAL },
        (_, n) => sessions[(appender + count + 5 * n) % SESSIONS]!,
      )
      const batch = { session_ids, key: `${appender}-${count}` }
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
  const placed = [...acknowledged, ...retried].flatMap(({ places }) => places)
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
})
