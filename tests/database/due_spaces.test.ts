import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { BEGIN_SESSION, FIND_DUE_SPACES } from '../../packages/server/src/learning/model/lane_queries.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'

const log = useLog()

/** A project with so many spaces, in each of which it is two sessions' turn, in the order of the spaces. */
async function newProject(count: number) {
  const project_id = await log.newProject()
  const spaces: string[] = Array.from({ length: count }, () => randomUUID())
  await execute(
    log.url,
    "INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) SELECT $1, r, '{}', now(), now() FROM unnest($2::uuid[]) r",
    [project_id, spaces],
  )
  await execute(
    log.url,
    `INSERT INTO space_sessions (project_id, learning_space_id, session_id, id, status, due_at, created_at, updated_at)
     SELECT $1, r.space, gen_random_uuid(), gen_random_uuid(), 'queued', now() - make_interval(secs => 1000 - r.place), now(), now()
     FROM unnest($2::uuid[]) WITH ORDINALITY AS r (space, place), generate_series(1, 2)`,
    [project_id, spaces],
  )
  return { project_id, spaces }
}

it('a look for due spaces finds some of each project, however many one has, and none that are under way', async () => {
  const [many, few] = [await newProject(40), await newProject(2)]
  const projects = [many.project_id, few.project_id]
  const find = async (but: string[], all_max: number) =>
    (await queryRows(log.url, FIND_DUE_SPACES.text, [projects, but, 4, all_max])).map(
      (row) => row.learning_space_id,
    )
  const first = await find([], 100)
  expect(first.filter((space) => many.spaces.includes(String(space)))).toEqual(many.spaces.slice(0, 4))
  expect(first.filter((space) => few.spaces.includes(String(space)))).toEqual(few.spaces)
  const next = await find(many.spaces.slice(0, 10), 100)
  expect(next.filter((space) => many.spaces.includes(String(space)))).toEqual(many.spaces.slice(10, 14))
  // One of each, before the second of any.
  expect((await find([], 2)).sort()).toEqual([many.spaces[0], few.spaces[0]].sort())
})

it('a turn that is interrupted is due at once, though the clock that let it begin is set back', async () => {
  const { project_id, spaces } = await newProject(1)
  const begun = await queryRows(log.url, BEGIN_SESSION.text, [project_id, spaces[0], 'distilling'])
  expect(begun).toHaveLength(1)
  const due = `SELECT x.session_id FROM space_sessions x
    WHERE x.project_id = $1 AND x.status = 'distilling' AND x.due_at <= now() - interval '30 days'`
  expect(await queryRows(log.url, due, [project_id])).toEqual([{ session_id: begun[0]!.session_id }])
})
