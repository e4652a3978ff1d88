import { beforeEach, describe, expect, it } from 'vitest'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import { useSharedService } from '../harness/service.ts'
import type { SessionLog } from '../harness/session_log.ts'
import { event, useThreeSessions } from '../harness/three_sessions.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
const three = useThreeSessions(service)
const { send, toAll, lengths } = three
let logs: SessionLog[]
beforeEach(() => {
  logs = three.logs
})

describe('appends to overlapping sessions at once', () => {
  it('of 20 callers in any order through two nodes are stored in all sessions or in none, without gaps', async () => {
    const callers = Array.from({ length: 20 }, (_, n) => n)
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(
        callers.map((n) => {
          const data = { mark: `${round} ${n}` }
          const appends = [0, 1, 2].map((at) => ({
            session_id: logs[(at + n) % 3]!.id,
            entries: [event({ data })],
          }))
          const isRefused = n % 4 === 0
          if (isRefused) appends.push({ session_id: NOBODYS_ID, entries: [event()] })
          return send(n % 2 ? appends : appends.reverse(), {}, n % 3)
        }),
      )
      for (const [n, answer] of answers.entries())
        expect([n, answer.status]).toEqual([n, n % 4 === 0 ? 404 : 201])
    }
    const marks = await Promise.all(
      logs.map(async ({ timeline }) => {
        const items = await walkPages((cursor) => timeline({ limit: 200, cursor }))
        expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: 45 }, (_, index) => index + 1))
        return items.map(({ data }) => (data as { mark: string }).mark).sort()
      }),
    )
    expect(new Set(marks[0]).size).toBe(45)
    expect(marks[1]).toEqual(marks[0])
    expect(marks[2]).toEqual(marks[0])
  })

  it('with the same if_match let one of 20 callers through', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => send(toAll(n % 3, { if_match: 0 }), {}, n)),
    )
    const statuses = answers.map(({ status }) => status).sort()
    // Those of another session may come later, as long as it is empty: but the first filled all three.
    expect(statuses).toEqual([201, ...Array(19).fill(409)])
    expect(await lengths()).toEqual([1, 1, 1])
  })

  it('refuse one without keeping back, or reordering, those that wait with it', async () => {
    const [held, free] = [logs[0]!, logs[1]!]
    await whileSessionIsHeld(service.databaseUrl, three.project.id, held.id, async ({ waiting, release }) => {
      const first = held.addEvent('first')
      await waiting()
      // These leave in one flush when the first is stored.
      const bad = send(toAll(2, { session_id: NOBODYS_ID }))
      const good = send(toAll())
      const plain = [held.addEvent('plain'), free.addEvent('plain'), held.addEvent('last')]
      await release()
      expectOk(await first)
      expectError(await bad, 404, 'session_not_found', '/appends/2/session_id')
      expectOk(await good, 201)
      for (const answer of await Promise.all(plain)) expectOk(answer)
    })
    const types = expectOk(await held.timeline()).items.map(({ type }) => type)
    expect(types).toEqual(['first', 'note', 'plain', 'last'])
    expect(await lengths()).toEqual([4, 2, 1])
  })
})
