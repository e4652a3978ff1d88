import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { expect, it } from 'vitest'
import type { AppendRequest } from '../../packages/server/src/log/append/append_request.ts'
import { execute } from '../harness/sql.ts'
import { batchRequest, eventRequest, inputEntries, useLog } from './log_fixture.ts'
import { counted, NO_PLANS } from './watched_reads.ts'

/*
 * What a flush reads beside its own sessions, counted and not timed. Its plans are made while a project is small, and hold
 * until the tables are analyzed, a minute or more later.
 */

const SESSIONS = 5_000
/** Its head is locked and moved, and its session is asked for its settings. */
const READ_PER_SESSION = 4

const log = useLog()

it.skipIf(NO_PLANS)(
  'a flush of messages, or with ids, reads no other session of its project, though that was small a moment ago',
  async () => {
    const connection = new pg.Client({ connectionString: log.url })
    await connection.connect()
    try {
      const reads: number[] = []
      const database = counted(() => connection, ['session_heads', 'sessions'], reads)
      const node = log.newNode({ database: { of: () => database } })
      for (const table of ['session_heads', 'sessions'])
        await execute(log.url, `ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
      const project = await log.newProject()
      const session = await log.newSession(project)
      const appendBoth = async () => {
        for (let n = 0; n < 10; n++) {
          await node.append(messageRequest(project, session))
          await node.append(batchRequest(project, session, ['a'], [randomUUID()]))
        }
      }
      await appendBoth()
      await execute(
        log.url,
        `WITH made AS (
          INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at)
          SELECT $1, gen_random_uuid(), '{}', false, now() FROM generate_series(1, $2) RETURNING project_id, id
        ) INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at)
          SELECT m.project_id, m.id, 0, 0, now() FROM made m`,
        [project, SESSIONS],
      )
      reads.length = 0
      await appendBoth()
      expect(Math.max(...reads)).toBeGreaterThan(0)
      expect(Math.max(...reads)).toBeLessThanOrEqual(READ_PER_SESSION)
    } finally {
      await connection.end()
    }
  },
)

it.skipIf(NO_PLANS)(
  'an append that applies input reads no input and no entry of other sessions, though these were few a moment ago',
  async () => {
    const connection = new pg.Client({ connectionString: log.url })
    await connection.connect()
    try {
      const reads: number[] = []
      const database = counted(() => connection, ['session_inbox', 'entries'], reads)
      const node = log.newNode({ database: { of: () => database } })
      for (const table of ['session_inbox', 'entries'])
        await execute(log.url, `ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
      const project = await log.newProject()
      const session = await log.newSession(project)
      const applyTen = async () => {
        for (let n = 0; n < 10; n++) {
          const apply = [await log.newInput(project, session)]
          const request = messageRequest(project, session)
          await node.append({ ...request, apply, entries: [...inputEntries(apply), ...request.entries] })
        }
      }
      await applyTen()
      await execute(
        log.url,
        `INSERT INTO session_inbox (project_id, session_id, id, place, mode, entry_kind, type, bytes, tokens, data, created_at, not_before)
         SELECT $1, gen_random_uuid(), gen_random_uuid(), 1, 'queue', 'event', 'a', 2, 0, '{}', now(), now() FROM generate_series(1, $2)`,
        [project, SESSIONS],
      )
      const other = await log.newSession(project)
      await execute(
        log.url,
        `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
         SELECT $1, $2, n, now(), now(), gen_random_uuid(), 2, 0, 'event', 'a', '{}' FROM generate_series(1, $3) n`,
        [project, other, SESSIONS],
      )
      reads.length = 0
      await applyTen()
      // It is looked for, read and deleted.
      expect(Math.max(...reads)).toBeGreaterThan(0)
      expect(Math.max(...reads)).toBeLessThanOrEqual(READ_PER_SESSION)
    } finally {
      await connection.end()
    }
  },
)

function messageRequest(project: string, session: string): AppendRequest {
  const request = eventRequest(project, session, { data: '{"role":"user","content":"Hello"}' })
  const message = { kind: 'message', type: null, role: 'user', format: 'openai', tokens: 1 } as const
  return { ...request, kind: 'entries', entries: [{ ...request.entries[0]!, ...message }] }
}
