import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { ApiClient, SessionEvent } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { walkPages } from '../harness/walk_pages.ts'

const APPENDERS = 16
const ACKNOWLEDGED_BEFORE_KILL = 400

const service = useService()

interface Attempt {
  key: string
  body: { type: string; data: { marker: string } }
}

const appendOnce = (client: ApiClient, sessionId: string, { key, body }: Attempt) =>
  client.appendEvent(sessionId, body, { headers: { 'Idempotency-Key': key } })

/** Appends until the node dies; gives what was acknowledged and the one attempt whose fate is unknown. */
async function appendUntilDeath(
  client: ApiClient,
  sessionId: string,
  appender: number,
  acknowledged: SessionEvent[],
): Promise<Attempt> {
  for (let count = 0; ; count += 1) {
    const marker = `${appender}-${count}`
    const attempt = { key: `key-${marker}`, body: { type: 'durable', data: { marker } } }
    try {
      acknowledged.push(expectOk(await appendOnce(client, sessionId, attempt)))
    } catch (error) {
      if (!(error as NodeJS.ErrnoException).code) throw error
      return attempt
    }
  }
}

describe('kill -9 of a node in the middle of 16 appenders', () => {
  it.each(IS_THOROUGH ? [1, 2, 3] : [1])(
    'loses nothing that was answered, leaves no gap, and a retry stores nothing twice (round %i)',
    async () => {
      const { token } = await service.newProject()
      const doomed = await service.startNode()
      const client = await service.newClient({ token, node: doomed })
      const { id } = expectOk(await client.createSession({}), 201)
      const acknowledged: SessionEvent[] = []
      const appenders = Array.from({ length: APPENDERS }, (_, index) =>
        appendUntilDeath(client, id, index, acknowledged),
      )
      while (acknowledged.length < ACKNOWLEDGED_BEFORE_KILL) await sleep(5)
      await doomed.kill()
      const unanswered = await Promise.all(appenders)

      const restarted = await service.startNode()
      const reader = await service.newClient({ token, node: restarted })
      const readAll = () => walkPages((cursor) => reader.listEvents(id, { limit: 200, cursor }))
      const stored = await readAll()
      expect(stored.map((event) => event.seq)).toEqual(stored.map((_, index) => index + 1))
      const bySeq = new Map(stored.map((event) => [event.seq, event]))
      for (const event of acknowledged) expect(bySeq.get(event.seq)).toEqual(event)

      const retried = await Promise.all(unanswered.map((attempt) => appendOnce(reader, id, attempt)))
      for (const answer of retried) expectOk(answer)
      const final = await readAll()
      const markers = final.map((event) => event.data.marker)
      expect(new Set(markers).size).toBe(markers.length)
      expect(final).toHaveLength(acknowledged.length + APPENDERS)
      expect(final.map((event) => event.seq)).toEqual(final.map((_, index) => index + 1))
      await restarted.stop()
    },
  )
})
