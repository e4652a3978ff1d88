import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { expectError, expectOk } from '../harness/expectations.ts'
import { whileCopyIsHeld } from '../harness/held_copy.ts'
import { ENTRIES, keyed, UNCOPIED, useLongSession } from '../harness/long_copy.ts'
import { type SessionLog, sessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const on = useLongSession()
const { service, rows, untilUncopied, expectSound } = on

/** The copy that is held, at an entry of its third slice. */
const held = () => ({ project_id: on.project.id, session_id: on.source.id, seq: 4_500 })

/** Starts a copy and holds it in its third slice while `action` runs. */
async function whileHeld<T>(
  action: (held: {
    id: string
    release(): Promise<void>
    answer: ReturnType<SessionLog['copy']>
  }) => Promise<T>,
  options: Parameters<SessionLog['copy']>[0] = {},
  log: SessionLog = on.source,
): Promise<T> {
  let answer: ReturnType<SessionLog['copy']> | undefined
  const start = () => {
    answer = log.copy(options)
    answer.catch(() => {})
  }
  return whileCopyIsHeld(service.databaseUrl, held(), start, (copy) => action({ ...copy, answer: answer! }))
}

/** As if so much time had passed that nobody waits for the writer of a copy any longer. */
const endLeases = () =>
  execute(
    service.databaseUrl,
    "UPDATE erased_sessions SET leased_until = now() - interval '1 ms' WHERE project_id = $1",
    [on.project.id],
  )

describe.skipIf(reasonForNoOwnDatabase())('a copy that is under way', () => {
  it('is seen by nobody, and annals verify finds nothing wrong', async () => {
    await whileHeld(async ({ id, release, answer }) => {
      const copy = sessionLog(on.api, id)
      expect(await rows()).toMatchObject({ sessions: 2, session_heads: 2, entries: ENTRIES + 4_000 })
      expectError(await on.api.getSession(id), 404, 'session_not_found')
      expectError(await on.api.deleteSession(id), 404, 'session_not_found')
      for (const reading of [copy.timeline(), copy.list(), copy.tokens(), copy.addEvent(), copy.copy()])
        expectError(await reading, 404, 'session_not_found')
      expectError(await on.api.createSession({ use_uuid: id }), 503, 'unavailable')
      expect(expectOk(await on.api.listSessions({ user: 'ada' })).items).toHaveLength(2)
      const { counts } = expectOk(
        await on.api.request<{ counts: Record<string, number> }>('GET', '/api/v1/user/ada/resources'),
      )
      expect(counts.sessions_count).toBe(2)
      await expectSound()
      await release()
      expect(expectOk(await answer).new_session_id).toBe(id)
      expectOk(await on.api.getSession(id))
    })
  })

  it('goes on when it loses its connection to the database', async () => {
    await whileHeld(async ({ release, answer }) => {
      const waiting = `datname = current_database() AND wait_event_type = 'Lock' AND query ILIKE '%INSERT INTO entries%'`
      const [{ pid } = { pid: 0 }] = await queryRows<{ pid: number }>(
        service.databaseUrl,
        `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${waiting}`,
      )
      await vi.waitFor(
        async () => {
          const others = `SELECT pid FROM pg_stat_activity WHERE ${waiting} AND pid <> ${pid}`
          expect(await queryRows(service.databaseUrl, others)).toHaveLength(1)
        },
        { timeout: 20_000 },
      )
      await release()
      expectOk(await answer)
    })
    expect(await rows()).toMatchObject({ sessions: 3, entries: 2 * ENTRIES, erased_sessions: 0 })
  })

  it('and is killed with its node leaves nothing when its lease has run out', async () => {
    const doomed = await service.startNode()
    const client = await service.newClient({ token: on.project.token, node: doomed })
    const options = keyed('killed')
    await whileHeld(
      async ({ id, answer }) => {
        await doomed.kill()
        await expect(answer).rejects.toThrow()
        // It waits for seconds, in which housekeeping comes by and leaves the copy alone.
        expectError(await on.source.copy(options), 503, 'unavailable', 'still in progress')
        expect((await rows()).entries).toBe(ENTRIES + 4_000)
        expectError(await on.api.getSession(id), 404, 'session_not_found')
      },
      options,
      sessionLog(client, on.source.id),
    )
    await endLeases()
    await untilUncopied()
    expectOk(await on.source.copy(options))
    await expectSound()
  })

  it('and is abandoned does not keep the same request from being carried out', async () => {
    const doomed = await service.startNode()
    const client = await service.newClient({ token: on.project.token, node: doomed })
    const housekeeping = 'UPDATE erased_sessions SET leased_until = $2 WHERE project_id = $1'
    await whileHeld(
      async ({ id, release }) => {
        await doomed.kill()
        await release()
        await execute(service.databaseUrl, housekeeping, [on.project.id, '2020-01-01'])
        const again = expectOk(await on.source.copy(keyed('again')))
        expect(again.new_session_id).not.toBe(id)
      },
      keyed('again'),
      sessionLog(client, on.source.id),
    )
    await vi.waitFor(
      async () =>
        expect(await rows()).toMatchObject({ sessions: 3, entries: 2 * ENTRIES, erased_sessions: 0 }),
      { timeout: 20_000 },
    )
  })

  it('and has lost its lease ends with 503 and leaves nothing', async () => {
    await whileHeld(async ({ release, answer }) => {
      await endLeases()
      await vi.waitFor(async () => expect((await rows()).erased_sessions).toBe(0), { timeout: 20_000 })
      await release()
      expectError(await answer, 503, 'unavailable', 'nothing of it remains')
    })
    await untilUncopied()
  })

  it('ends with 404 and leaves nothing when its session is deleted', async () => {
    await whileHeld(async ({ release, answer }) => {
      expectOk(await on.api.deleteSession(on.source.id))
      expect(await rows()).toEqual({ ...UNCOPIED, sessions: 1, session_heads: 1, entries: 0 })
      await release()
      expectError(await answer, 404, 'session_not_found')
    }, keyed('deleted'))
    expect(await rows()).toEqual({ ...UNCOPIED, sessions: 1, session_heads: 1, entries: 0 })
  })

  it('ends with 404 and leaves nothing when its user is erased', async () => {
    await whileHeld(async ({ release, answer }) => {
      expectOk(await on.api.request('DELETE', '/api/v1/user/ada'))
      const nothing = { sessions: 0, session_heads: 0, entries: 0, idempotency_keys: 0, erased_sessions: 0 }
      expect(await rows()).toEqual(nothing)
      await release()
      expectError(await answer, 404, 'session_not_found')
      expect(await rows()).toEqual(nothing)
    })
  })

  /** Starts a copy and leaves while it is held. Gives the id that the copy has. */
  async function leave(headers: Record<string, string>): Promise<string> {
    const caller = new AbortController()
    const url = `${service.node.url}/api/v1/session/${on.source.id}/copy`
    const options = { method: 'POST', headers: { Authorization: `Bearer ${on.project.token}`, ...headers } }
    const start = () => void fetch(url, { ...options, signal: caller.signal }).catch(() => {})
    return whileCopyIsHeld(service.databaseUrl, held(), start, async ({ id }) => {
      caller.abort()
      return id
    })
  }

  it('is dropped when its caller leaves, and leaves nothing', async () => {
    await leave({})
    await untilUncopied()
  })

  it('is finished when its caller leaves with an Idempotency-Key, which then has the answer', async () => {
    const id = await leave(keyed('left').headers)
    const answer = await on.source.copy(keyed('left'))
    expect(expectOk(answer).new_session_id).toBe(id)
    expect(answer.headers['idempotent-replayed']).toBe('true')
    expect(await rows()).toMatchObject({ sessions: 3, entries: 2 * ENTRIES, erased_sessions: 0 })
  })

  it('is answered 503 when the service is stopped, which ends in time, and the next node removes what is left', async () => {
    const stopping = await service.startNode()
    const client = await service.newClient({ token: on.project.token, node: stopping })
    await whileHeld(
      async ({ release, answer }) => {
        const stopped = stopping.stop()
        await vi.waitFor(async () => await expect(fetch(stopping.url)).rejects.toThrow(), { timeout: 10_000 })
        await release()
        expectError(await answer, 503, 'unavailable', 'nothing of it remains')
        expect((await stopped).code).toBe(0)
      },
      keyed(randomUUID()),
      sessionLog(client, on.source.id),
    )
    await untilUncopied()
  })
})
