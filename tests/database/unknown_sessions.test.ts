import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { ending, eventRequest, useLog } from './log_fixture.ts'

const log = useLog()
let nodes: Appender[]
let project: string
let session: string

beforeAll(async () => {
  nodes = [log.newNode(), log.newNode()]
  project = await log.newProject()
  session = await log.newSession(project)
})

describe('an append to an unknown session', () => {
  it('fails alone wherever unknown sessions stand among the known ones of its flush', async () => {
    for (const node of nodes) {
      const known = await Promise.all(Array.from({ length: 10 }, () => log.newSession(project)))
      // The first one is a flush of its own; what comes while it is in flight goes together.
      const first = ending(node, eventRequest(project, session))
      const sessions = [...known, ...known, ...Array.from({ length: 10 }, () => randomUUID())].sort()
      const endings = await Promise.all(
        sessions.map((session_id) => ending(node, eventRequest(project, session_id))),
      )
      const expected = sessions.map((session_id, index) =>
        known.includes(session_id) ? [sessions.indexOf(session_id) === index ? 1 : 2] : 'session_not_found',
      )
      expect(endings).toEqual(expected)
      expect(await first).toEqual([expect.any(Number)])
      expect((await log.readSession(project, known[0]!)).entries.map(({ seq }) => seq)).toEqual([1, 2])
    }
  })

  it('fails with all others when no session of its flush is known', async () => {
    for (const node of nodes) {
      const first = ending(node, eventRequest(project, session))
      const endings = Array.from({ length: 10 }, () => ending(node, eventRequest(project, randomUUID())))
      expect(new Set(await Promise.all(endings))).toEqual(new Set(['session_not_found']))
      expect(await first).toEqual([expect.any(Number)])
    }
  })
})
