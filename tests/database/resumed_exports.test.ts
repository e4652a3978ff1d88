import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { registryOf } from '../../packages/server/src/lifecycle/registry.ts'
import { type Checkpoint, writeExport } from '../../packages/server/src/lifecycle/transfer/export_project.ts'
import { type DatabasePool, openDatabase } from '../../packages/server/src/postgres/database.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

const project = { id: randomUUID(), name: 'resumed' }
const { tables } = registryOf(MODULES)
let own: TestDatabase
let database: DatabasePool

beforeAll(async () => {
  own = await createTestDatabase()
  const run = (text: string) => execute(own.url, text, [project.id])
  await run("INSERT INTO projects (id, name, created_at) VALUES ($1, 'resumed', now())")
  // More than one page of users, and of the sessions of one of them and of nobody.
  await run(
    "INSERT INTO users (project_id, id, identifier, created_at, updated_at) SELECT $1, gen_random_uuid(), 'u' || n, now(), now() FROM generate_series(1, 620) n",
  )
  await run(
    `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at)
     SELECT $1, gen_random_uuid(), u.id, '{}', false, now() - n * interval '1 s'
     FROM (SELECT id, row_number() OVER (ORDER BY id) AS at FROM users WHERE project_id = $1 UNION ALL SELECT NULL, 3) u
     CROSS JOIN LATERAL generate_series(1, CASE WHEN at = 3 THEN 250 ELSE at % 2 END) n`,
  )
  await run(
    `INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
     SELECT s.project_id, s.id, n, now(), now(), gen_random_uuid(), 10, 0, 'event', 'n', jsonb_build_object('n', n)
     FROM sessions s, generate_series(1, 2) n WHERE s.project_id = $1`,
  )
  await run(
    'INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at) SELECT project_id, id, 2, 0, now() FROM sessions WHERE project_id = $1',
  )
  await run(
    `INSERT INTO learning_spaces (project_id, id, user_id, meta, created_at, updated_at)
     SELECT $1, gen_random_uuid(), u.id, '{}', now(), now() FROM users u WHERE u.project_id = $1`,
  )
  database = openDatabase({
    target: { connectionString: own.url },
    connections_max: 1,
    wait_ms_max: 30_000,
    statement_ms_max: 0,
  })
})
afterAll(async () => {
  await database.close()
  await own.drop()
})

async function exported(from?: { checkpoint: Checkpoint; before: Buffer }) {
  const pieces = from ? [from.before] : []
  const checkpoints: Checkpoint[] = []
  const counts = await writeExport(
    database,
    { project },
    { write: async (bytes) => void pieces.push(bytes) },
    {
      tables,
      schema_version: 1,
      exported_at: '',
      signal: new AbortController().signal,
      onProgress: () => {},
      onCheckpoint: async (checkpoint) => void checkpoints.push(checkpoint),
      from: from && { ...from.checkpoint, hash: createHash('sha256').update(from.before) },
    },
  )
  return { bytes: Buffer.concat(pieces), checkpoints, counts }
}

it('goes on from its checkpoints to the same rows, each once, but for users that it may name again', async () => {
  const whole = await exported()
  expect(whole.counts.rows).toMatchObject({ users: 620, learning_spaces: 620 })
  expect(whole.checkpoints.length).toBeGreaterThan(20)
  const linesOf = (bytes: Buffer) => bytes.toString().trimEnd().split('\n').slice(0, -1)
  for (const checkpoint of whole.checkpoints.filter((_, index) => index % 3 === 1)) {
    const before = whole.bytes.subarray(0, checkpoint.counts.bytes)
    // As it comes back from a file.
    const again = await exported({ checkpoint: JSON.parse(JSON.stringify(checkpoint)), before })
    expect(again.counts.rows).toEqual(whole.counts.rows)
    const lines = linesOf(again.bytes)
    const others = lines.filter((line) => !line.startsWith('{"kind":"user"'))
    expect(others).toEqual(linesOf(whole.bytes).filter((line) => !line.startsWith('{"kind":"user"')))
    expect(new Set(lines)).toEqual(new Set(linesOf(whole.bytes)))
    const end = JSON.parse(again.bytes.toString().trimEnd().split('\n').at(-1)!)
    const sha256 = createHash('sha256')
      .update(`${lines.join('\n')}\n`)
      .digest('hex')
    expect(end).toEqual({ kind: 'end', lines: lines.length, sha256 })
  }
})
