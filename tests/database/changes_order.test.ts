import { beforeAll, describe, expect, it } from 'vitest'
import type { Consumer } from '../../packages/kits/src/changes/consumer.ts'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { execute } from '../harness/sql.ts'
import { MARKED, useChanges, witness } from './changes_fixture.ts'
import { batchRequest, eventRequest, useLog } from './log_fixture.ts'

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

describe('sessions that are deleted while a consumer reads them', () => {
  it('hold up few of the others, though there always are some', async () => {
    const project = await newProject()
    const sessions = await Promise.all(Array.from({ length: 8 }, () => log.newSession(project)))
    for (const session of sessions)
      await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    const consumer = witness()
    const consume: Consumer['consume'] = async (work) => {
      const [first, ...others] = work.project_id === project ? work.sessions : []
      const forget = 'DELETE FROM change_marks WHERE project_id = $1 AND session_id = $2'
      if (others.length > 0) await execute(log.url, forget, [project, first!.session_id])
      return consumer.consume(work)
    }
    start({ ...consumer, sessions_max: 8, consume }, { lease_s: 60 })
    // Of 8, 7 are left, and of these 4 and 3, and so on.
    expect(Object.keys(await seenInTheEnd(project))).toHaveLength(4)
  })
})
