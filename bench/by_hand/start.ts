import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { endWithUs } from '../../lab/children.ts'
import { BenchFailure } from '../failure.ts'
import type { BenchContext } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import type { Service } from '../service.ts'

const TABLES = [
  `CREATE TABLE hand_sessions (id uuid PRIMARY KEY, user_id text, configs jsonb NOT NULL, last_seq bigint NOT NULL DEFAULT 0,
     created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE TABLE hand_events (session_id uuid NOT NULL REFERENCES hand_sessions, seq bigint NOT NULL,
     id uuid NOT NULL DEFAULT gen_random_uuid(), type text NOT NULL, data jsonb NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (session_id, seq))`,
  'CREATE INDEX ON hand_sessions (created_at, id)',
  'CREATE INDEX ON hand_sessions (user_id, created_at, id)',
  'CREATE INDEX ON hand_sessions USING gin (configs jsonb_path_ops)',
]

/**
 * Starts the server by hand beside the service, on tables of its own in the same database, with the sessions that a
 * project has.
 */
export async function startByHand(
  ctx: BenchContext,
  database: BenchDatabase,
  project_id: string,
): Promise<Service> {
  for (const statement of TABLES) await database.query(statement)
  await database.query(
    `INSERT INTO hand_sessions (id, user_id, configs, created_at, updated_at)
     SELECT s.id, u.identifier, s.configs, s.created_at, s.created_at
     FROM sessions s LEFT JOIN users u ON u.project_id = s.project_id AND u.id = s.user_id WHERE s.project_id = $1`,
    [project_id],
  )
  await database.query('ANALYZE hand_sessions')
  const child = endWithUs(
    spawn(process.execPath, [fileURLToPath(new URL('server.js', import.meta.url))], {
      env: { PATH: process.env.PATH, DATABASE_URL: database.url },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const exited = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  ctx.atEnd(stop)
  for await (const url of createInterface({ input: child.stdout! }))
    return { url, pid: child.pid!, token: 'none', admin_token: 'none', ready_after_ms: 0, stop }
  throw new BenchFailure('The server by hand did not start.')
}
