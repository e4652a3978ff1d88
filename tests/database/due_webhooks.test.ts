import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FIND_DUE_WEBHOOKS } from '../../packages/server/src/webhooks/webhook_queries.ts'
import { execute } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'
import { NO_PLANS, watched } from './watched_reads.ts'

const WAITING = 20_000

const log = useLog()
let connection: pg.Client
let project: string
let id = 0
const newId = () => `00000000-0000-7000-8000-${String(++id).padStart(12, '0')}`

beforeAll(async () => {
  connection = new pg.Client({ connectionString: log.url })
  await connection.connect()
  project = await log.newProject()
})
afterAll(() => connection.end())

/** A webhook for which so many sessions wait, all of them from `not_before` on. */
async function newWebhook(sessions: number, not_before: string): Promise<string> {
  const webhook = newId()
  await execute(
    log.url,
    `INSERT INTO webhooks (project_id, id, url, events, secret, created_at, given_up)
     VALUES ($1, $2, 'https://a.example', '{message}', 's', now(), 0)`,
    [project, webhook],
  )
  await execute(
    log.url,
    `INSERT INTO webhook_deliveries (project_id, webhook_id, session_id, delivered_seq, through_seq, attempts, not_before)
     SELECT $1, $2, gen_random_uuid(), 0, 1, 0, ${not_before} FROM generate_series(1, $3::int)`,
    [project, webhook, sessions],
  )
  return webhook
}

it('looking for webhooks with something due reads a row of each, however many sessions wait for it', async () => {
  const away = await newWebhook(WAITING, 'now()')
  await newWebhook(3, "now() + interval '1 hour'")
  const due = await newWebhook(1, "now() - interval '1 hour'")
  await execute(log.url, 'ANALYZE webhooks, webhook_deliveries', [])
  const looks: number[] = []
  const found = await watched(connection, 'webhook_deliveries', looks).query(FIND_DUE_WEBHOOKS, [])
  const own = found.filter((row) => row.project_id === project).map((row) => row.webhook_id)
  expect(own.sort()).toEqual([away, due])
  if (!NO_PLANS) expect(looks[0]).toBeLessThan(100)
})
