import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, inject } from 'vitest'
import type { Parameter } from '../../packages/kits/src/postgres/database.ts'
import { requestSettings } from '../../packages/kits/src/postgres/pool_settings.ts'
import type { StoredFunction } from '../../packages/kits/src/postgres/stored_function.ts'
import { withConnection } from '../harness/sql.ts'

const { serverUrl } = inject('testServer')

/** Of a blob that each project of a test has. */
export const SHA256 = 'a'.repeat(64)

/** Where a project is: the worker's id, and its URL. */
export async function workerOf(
  coordinator: pg.ClientBase,
  project: string,
): Promise<{ group: string; url: string }> {
  const { rows } = await coordinator.query(
    `SELECT p.groupid::text AS group, n.nodename AS hostname, n.nodeport AS port
     FROM pg_dist_placement p JOIN pg_dist_node n ON n.groupid = p.groupid
     WHERE p.shardid = get_shard_id_for_distribution_column('entries', $1::uuid)`,
    [project],
  )
  const { group, ...machine } = rows[0]
  return { group, url: Object.assign(new URL(serverUrl), machine).href }
}

/**
 * Creates a project whose changes are consumed, and returns the commands that a machine sends to others for each call:
 * the coordinator, or the worker that has the project.
 */
export async function remoteCommands(
  machine: 'coordinator' | 'worker',
  calls: (project: string, session: string) => Array<[string, StoredFunction, readonly Parameter[]]>,
): Promise<Array<[string, number]>> {
  const project = randomUUID()
  const url = await withConnection(serverUrl, async (connection) => {
    await connection.query(
      "INSERT INTO projects (id, name, created_at, consumers) VALUES ($1, $2, now(), '{last_activity,learning,search}')",
      [project, `cluster-${project}`],
    )
    await connection.query(
      'INSERT INTO blobs (project_id, id, sha256, bytes, created_at) VALUES ($1, $2, $3, 0, now())',
      [project, randomUUID(), SHA256],
    )
    return machine === 'coordinator' ? serverUrl : (await workerOf(connection, project)).url
  })
  return withConnection(url, async (connection) => {
    for (const [name, value] of Object.entries(requestSettings({ connectionString: '', distributed: true })))
      await connection.query(`SET ${name} = ${value}`)
    await connection.query('SET citus.log_remote_commands = on')
    let sent = 0
    connection.on('notice', ({ message }) => {
      if (message?.startsWith('issuing ')) sent += 1
    })
    const counted: Array<[string, number]> = []
    for (const [name, { statement }, parameters] of calls(project, randomUUID())) {
      sent = 0
      await connection.query(statement.text, [...parameters])
      counted.push([name, sent])
    }
    const { rows } = await connection.query(
      'SELECT (SELECT count(*) FROM change_marks WHERE project_id = $1) AS marks, (SELECT count(*) FROM blob_references WHERE project_id = $1) AS refs',
      [project],
    )
    // Two sessions and the copy, for each consumer; and the references of the original and of the copy.
    expect(rows).toEqual([{ marks: '9', refs: '2' }])
    return counted
  })
}
