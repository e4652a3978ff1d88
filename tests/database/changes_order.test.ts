import { beforeAll, describe, expect, it } from 'vitest'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { MARKED, useChanges, witness } from './changes_fixture.ts'
import { batchRequest, useLog } from './log_fixture.ts'

const log = useLog()
const { start, newProject, seenInTheEnd } = useChanges(log)
let appender: Appender

beforeAll(() => {
  appender = log.newNode()
})

describe('more than a consumer is given at once', () => {
  it('is read in the order in which it was written', async () => {
    const project = await newProject()
    const sessions: string[] = []
    for (let session = 0; session < 12; session++) {
      const id = await log.newSession(project)
      sessions.push(id)
      const marks = Array.from({ length: 500 }, () => 'x')
      await appender.append({ ...batchRequest(project, id, marks), unmarked_until: MARKED })
    }
    const read: string[] = []
    const consumer = witness()
    // Of the six that it is given, the entries of four are read at once.
    start(
      {
        ...consumer,
        sessions_max: 6,
        consume: (work) => {
          read.push(
            ...work.sessions.flatMap(({ session_id, entries }) => (entries.length > 0 ? session_id : [])),
          )
          return consumer.consume(work)
        },
      },
      { lease_s: 60 },
    )
    await seenInTheEnd(project)
    expect(read).toEqual(sessions)
  }, 30_000)
})
