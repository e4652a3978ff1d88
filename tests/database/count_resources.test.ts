import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { REQUEST_SETTINGS } from '../../packages/kits/src/postgres/pool_settings.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { countedOfUser, countResources } from '../../packages/server/src/users/users.ts'
import { useLog } from './log_fixture.ts'
import { NO_PLANS, watched } from './watched_reads.ts'

const log = useLog()
let connection: pg.Client
beforeAll(async () => {
  connection = new pg.Client({ connectionString: log.url })
  await connection.connect()
  for (const [setting, value] of Object.entries(REQUEST_SETTINGS))
    await connection.query(`SET ${setting} = ${value}`)
})
afterAll(() => connection.end())

describe.skipIf(NO_PLANS)('counting what a user has', () => {
  it.each([0, 3, 10_000, 24_001])('counts %i sessions, no statement more than 10,000', async (sessions) => {
    const project_id = await log.newProject()
    for (const [identifier, count] of Object.entries({ ada: sessions, bob: 12_000 })) {
      const id = randomUUID()
      const user =
        'INSERT INTO users (project_id, id, identifier, created_at, updated_at) VALUES ($1, $2, $3, now(), now())'
      await connection.query(user, [project_id, id, identifier])
      // Many share a created_at.
      await connection.query(
        `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at)
         SELECT $1::uuid, gen_random_uuid(), $2::uuid, '{}', false, now() - n / 700 * interval '1 s' FROM generate_series(1, $3) AS n`,
        [project_id, id, count],
      )
    }
    const looks: number[] = []
    const counts = await countResources(
      watched(connection, 'sessions', looks),
      countedOfUser(registryOf(MODULES).tables),
      project_id,
      'ada',
    )
    expect(counts).toEqual({ sessions, skills: 0, learning_spaces: 0 })
    expect(Math.max(...looks)).toBeLessThanOrEqual(10_000)
  })
})
