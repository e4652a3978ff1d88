import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it } from 'vitest'
import {
  CREATE_LEARNING_SPACE,
  MERGE_META,
} from '../../packages/server/src/learning/learning_space_queries.ts'
import { APPEND_ENTRIES } from '../../packages/server/src/log/append/append_queries.ts'
import type { AppendRequest } from '../../packages/server/src/log/append/append_request.ts'
import { planFlush } from '../../packages/server/src/log/append/flush_plan.ts'
import { MERGE_MESSAGE_META } from '../../packages/server/src/log/read/message_queries.ts'
import { END_COPIES } from '../../packages/server/src/log/unfinished_copy_queries.ts'
import type { Parameter } from '../../packages/server/src/postgres/database.ts'
import { requestSettings } from '../../packages/server/src/postgres/pool_settings.ts'
import type { StoredFunction } from '../../packages/server/src/postgres/stored_function.ts'
import { COPY_SHORT_SESSION } from '../../packages/server/src/sessions/copy_queries.ts'
import { ERASE_SLICE_OF_ENTRIES } from '../../packages/server/src/sessions/erase/erasure_queries.ts'
import {
  CREATE_SESSION,
  MERGE_CONFIGS,
  REPLACE_CONFIGS,
} from '../../packages/server/src/sessions/session_queries.ts'
import { withConnection } from '../harness/sql.ts'
import { eventRequest } from './log_fixture.ts'

const { mode, serverUrl } = inject('testServer')
const BYTES_MAX = 65_536

/** Creates a project, and returns the commands that the coordinator sends to workers for each call. */
async function remoteCommands(
  calls: (project: string, session: string) => Array<[string, StoredFunction, readonly Parameter[]]>,
): Promise<Array<[string, number]>> {
  return withConnection(serverUrl, async (connection) => {
    const project = randomUUID()
    await connection.query('INSERT INTO projects (id, name, created_at) VALUES ($1, $2, now())', [
      project,
      `cluster-${project}`,
    ])
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
    return counted
  })
}

function flushOf(project: string, session: string, parts: Partial<AppendRequest>): readonly Parameter[] {
  return planFlush(project, [{ request: eventRequest(project, session, parts), known: new Map() }]).parameters
}

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  it('each write of a request is one command to one worker', async () => {
    const counted = await remoteCommands((project, session) => {
      const owned = [project, session]
      const made = [project, session, 'ada', randomUUID(), '{"configs":{"a":1}}', randomUUID(), 'h']
      const space = randomUUID()
      return [
        ['session', CREATE_SESSION, made],
        ['event', APPEND_ENTRIES, flushOf(project, session, {})],
        ['conditional event', APPEND_ENTRIES, flushOf(project, session, { if_match: 1 })],
        [
          'event with a key',
          APPEND_ENTRIES,
          flushOf(project, session, { idempotency: { key: 'k', request_hash: 'h' } }),
        ],
        ['replaced configs', REPLACE_CONFIGS, [...owned, '{"configs":{"a":2}}']],
        ['merged configs', MERGE_CONFIGS, [...owned, '{"configs":{"b":2}}', BYTES_MAX]],
        ['meta of a message', MERGE_MESSAGE_META, [...owned, randomUUID(), '{"meta":{}}', BYTES_MAX]],
        ['copy', COPY_SHORT_SESSION, [...owned, randomUUID(), null, null, 2_000, 4_000_000]],
        ['end of a copy', END_COPIES.own, [project, `{${randomUUID()}}`]],
        ['slice of remains', ERASE_SLICE_OF_ENTRIES, [...owned, 2_000]],
        ['space', CREATE_LEARNING_SPACE, [project, space, 'ada', randomUUID(), '{"meta":{}}', null, null]],
        ['meta of a space', MERGE_META, [project, space, '{"meta":{"a":1}}', BYTES_MAX]],
      ]
    })
    expect(counted.filter(([, sent]) => sent !== 1)).toEqual([])
    expect(counted).toHaveLength(12)
  })
})
