import { randomUUID } from 'node:crypto'
import { execute } from './sql.ts'

/**
 * Sessions written straight into the tables, for what the API cannot be asked: many with one and the same
 * `created_at`. Gives their ids.
 */
export async function insertSessionRows(
  databaseUrl: string,
  projectId: string,
  count: number,
  createdAt: string,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  await execute(
    databaseUrl,
    `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at)
     SELECT $1::uuid, id, NULL, '{}'::jsonb, false, $3::timestamptz FROM unnest($2::uuid[]) AS id`,
    [projectId, ids, createdAt],
  )
  await execute(
    databaseUrl,
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at)
     SELECT $1::uuid, id, 0, 0, $3::timestamptz FROM unnest($2::uuid[]) AS id`,
    [projectId, ids, createdAt],
  )
  return ids
}
