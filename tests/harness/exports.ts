import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Finished } from './annals_process.ts'
import { runCommand } from './command_process.ts'
import type { Service } from './service.ts'
import { execute, queryRows } from './sql.ts'

/** `annals export` and `annals import` on the database of a file's service, with a directory for their files. */
export interface Transfers {
  /** A path that no file has yet. */
  newPath(): string
  run(...args: string[]): Promise<Finished>
  /** Exports a project, or what further arguments name in it. Gives the file's path and its lines. */
  export(project: string, ...args: string[]): Promise<Exported>
  /** Imports a file; it must succeed. Gives what was printed. */
  import(path: string, project: string, ...args: string[]): Promise<string>
}

export interface Exported {
  path: string
  lines: string[]
  /** The lines between header and checksum: what two exports of the same things share. */
  body: string[]
}

/** Registers the hooks that make and remove the directory. */
export function useTransfers(service: Service, env: Record<string, string> = {}): Transfers {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'annals-transfer-'))
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))
  const transfers: Transfers = {
    newPath: () => join(directory, `${randomBytes(6).toString('hex')}.ndjson`),
    run: (...args) => runCommand(args, { DATABASE_URL: service.databaseUrl, ...env }),
    export: async (project, ...args) => {
      const path = transfers.newPath()
      const result = await transfers.run('export', '--project', project, '--output', path, ...args)
      expect(result.code, result.stderr).toBe(0)
      const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
      return { path, lines, body: lines.slice(1, -1) }
    },
    import: async (path, project, ...args) => {
      const result = await transfers.run('import', path, '--project', project, ...args)
      expect(result.code, result.stderr).toBe(0)
      return result.stdout
    },
  }
  return transfers
}

/**
 * A session without user whose log has many large events, written straight into the tables, which the API would
 * take minutes for. Gives its id.
 */
export async function insertLargeLog(
  databaseUrl: string,
  projectId: string,
  entries: number,
  entryBytes: number,
): Promise<string> {
  const id = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
  await execute(
    databaseUrl,
    `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at)
     VALUES ($1, $2, NULL, '{}', false, now())`,
    [projectId, id],
  )
  await execute(
    databaseUrl,
    `INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
     SELECT $1::uuid, $2::uuid, n, now(), now(), md5($2::text || n)::uuid, $4, 0, 'event', 'large',
       jsonb_build_object('text', repeat('text ', $4 / 5), 'n', n)
     FROM generate_series(1, $3::int) AS n`,
    [projectId, id, entries, entryBytes],
  )
  await execute(
    databaseUrl,
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at)
     VALUES ($1, $2, $3, 0, clock_timestamp())`,
    [projectId, id, entries],
  )
  return id
}

/** How many entries a project has. */
export async function countEntries(databaseUrl: string, projectId: string): Promise<number> {
  const [row] = await queryRows<{ count: string }>(
    databaseUrl,
    'SELECT count(*) FROM entries WHERE project_id = $1',
    [projectId],
  )
  return Number(row!.count)
}
