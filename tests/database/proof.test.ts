import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { execute, queryRows } from '../harness/sql.ts'
import { batchRequest, ending, eventRequest, useLog } from './log_fixture.ts'

const log = useLog()

const links = async (session: string) =>
  (
    await queryRows<{ is_linked: boolean }>(
      log.url,
      `SELECT e.proof IS NOT NULL AS is_linked FROM entries e WHERE e.session_id = $1
       UNION ALL SELECT h.proof = (SELECT e.proof FROM entries e WHERE e.session_id = $1 ORDER BY e.seq DESC LIMIT 1)
       FROM session_heads h WHERE h.session_id = $1`,
      [session],
    )
  ).map(({ is_linked }) => is_linked)

it('a chain goes on whatever a node knows of its project, and begins only where the project wants it', async () => {
  const [knowing, ignorant] = [log.newNode(), log.newNode()]
  const project = await log.newProject()
  const [chained, plain, later] = [
    await log.newSession(project),
    await log.newSession(project),
    await log.newSession(project),
  ]
  await execute(log.url, 'UPDATE projects SET proof = true WHERE id = $1', [project])
  expect(await ending(knowing, eventRequest(project, chained, { proof: true }))).toEqual([1])
  expect(await ending(ignorant, eventRequest(project, plain))).toEqual([1])
  // In one flush, beside others: a node that has not heard of it, and one that was told that it is off now.
  const [conflict, unknown] = [
    { ...eventRequest(project, chained), if_match: 9 },
    eventRequest(project, randomUUID()),
  ]
  const many = await Promise.all([
    ...Array.from({ length: 5 }, () => ending(ignorant, eventRequest(project, chained))),
    ending(ignorant, batchRequest(project, plain, ['a', 'b'])),
    ending(ignorant, conflict),
    ending(ignorant, unknown),
    ending(knowing, eventRequest(project, chained, { proof: false })),
    ending(knowing, eventRequest(project, later, { proof: false })),
  ])
  expect(many.filter((end) => typeof end === 'string').sort()).toEqual(['seq_conflict', 'session_not_found'])
  expect(many.slice(0, 5).concat([many[8]!]).flat().sort()).toEqual([2, 3, 4, 5, 6, 7])
  expect(await links(chained)).toEqual(Array.from({ length: 8 }, () => true))
  expect(await links(plain)).toEqual([false, false, false, null])
  expect(await links(later)).toEqual([false, null])
  const retraction = { ...eventRequest(project, chained, { data: '{"seqs":[]}' }), retraction: { last: 2 } }
  retraction.entries = retraction.entries.map((entry) => ({ ...entry, type: 'annals.retraction' }))
  expect(await ending(ignorant, retraction)).toEqual([8])
  expect(await links(chained)).toEqual(Array.from({ length: 9 }, () => true))
})
