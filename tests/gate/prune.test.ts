import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { startAnnals } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { walkPages } from '../harness/walk_pages.ts'

/** Appends are held, and none of them is to be hung up. */
const service = useService({ ANNALS_COMMIT_MS_MAX: '60000' })
let project: Project
let api: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

/** Sessions that were created, and last touched, so many days ago. */
async function newOldSessions(count: number, days: number, body: unknown = {}): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n += 1) {
    const log = await newSessionLog(api, body)
    expectOk(await log.addEvent())
    ids.push(log.id)
  }
  const parameters = [project.id, ids, days]
  await execute(
    service.databaseUrl,
    `UPDATE sessions SET created_at = now() - make_interval(days => $3) WHERE project_id = $1 AND id = ANY ($2)`,
    parameters,
  )
  await execute(
    service.databaseUrl,
    `UPDATE session_heads SET updated_at = now() - make_interval(days => $3) WHERE project_id = $1 AND session_id = ANY ($2)`,
    parameters,
  )
  return ids
}

const prune = (...args: string[]) =>
  runCommand(['prune', '--project', project.name, ...args], { DATABASE_URL: service.databaseUrl })
const remaining = async () => {
  const sessions = await walkPages((cursor) => api.listSessions({ limit: 200, cursor }))
  return sessions.map((session) => session.id).sort()
}

describe('annals prune', () => {
  it('deletes what nobody has touched for so long, log and all, and says how much', async () => {
    const old = await newOldSessions(3, 100)
    const young = await newOldSessions(2, 80)
    const result = await prune('--older-than', '90d')
    expect(result).toMatchObject({ code: 0 })
    expect(result.stdout).toMatch(/^Deleted 3 sessions with 3 entries, last touched before \d{4}-/)
    expect(await remaining()).toEqual([...young].sort())
    for (const id of old) {
      expectError(await api.getSession(id), 404, 'session_not_found')
      expectError(await sessionLog(api, id).timeline(), 404, 'session_not_found')
      expectError(await sessionLog(api, id).addEvent(), 404, 'session_not_found')
    }
    expect((await prune('--older-than', '90d')).stdout).toMatch(/^Deleted 0 sessions with 0 entries,/)
  })

  it('keeps an old session that was touched lately, by an append or a change of its configs', async () => {
    const ids = await newOldSessions(3, 100)
    expectOk(await sessionLog(api, ids[0]!).addEvent())
    expectOk(await api.request('PATCH', `/api/v1/session/${ids[1]}/configs`, { body: { configs: { a: 1 } } }))
    expect((await prune('--older-than', '90d')).stdout).toMatch(/^Deleted 1 session /)
    expect(await remaining()).toEqual(ids.slice(0, 2).sort())
  })

  it('with --dry-run says the same and deletes nothing', async () => {
    const ids = await newOldSessions(3, 100)
    const result = await prune('--older-than', '90d', '--dry-run')
    expect(result).toMatchObject({ code: 0 })
    expect(result.stdout).toMatch(/^Would delete 3 sessions with 3 entries, /)
    expect(await remaining()).toEqual([...ids].sort())
  })

  it('takes only those of a user, or whose configs contain an object', async () => {
    const mine = await newOldSessions(2, 100, { user: 'ann', configs: { env: 'test', nested: { a: [1] } } })
    const other = await newOldSessions(2, 100, { user: 'bob', configs: { env: 'live' } })
    const none = await newOldSessions(1, 100)
    expect((await prune('--older-than', '90d', '--user', 'ann', '--configs', 'env=live')).stdout).toMatch(
      /^Deleted 0 /,
    )
    expect((await prune('--older-than', '90d', '--user', 'ann')).stdout).toMatch(/^Deleted 2 /)
    expect(await remaining()).toEqual([...other, ...none].sort())
    expect((await prune('--older-than', '90d', '--filter', '{"env":"live"}')).stdout).toMatch(/^Deleted 2 /)
    expect(await remaining()).toEqual(none)
    expect(mine).toHaveLength(2)
    const unknown = await prune('--older-than', '90d', '--user', 'nobody')
    expect(unknown.code).not.toBe(0)
    expect(unknown.stderr).toContain('no such user')
  })

  it('leaves other projects alone', async () => {
    const [id] = await newOldSessions(1, 100)
    const other = await service.newProject()
    const result = await runCommand(['prune', '--project', other.name, '--older-than', '90d'], {
      DATABASE_URL: service.databaseUrl,
    })
    expect(result.stdout).toMatch(/^Deleted 0 /)
    expect(await remaining()).toEqual([id])
  })

  it('refuses an age, a filter and a choice of projects that make no sense', async () => {
    for (const args of [
      ['--older-than', '90'],
      ['--older-than', '0d'],
      ['--older-than', '1d', '--filter', '[1]'],
      ['--older-than', '1d', '--configs', '{'],
      ['--older-than', '1d', '--all-projects'],
    ]) {
      const result = await prune(...args)
      expect(result.code, args.join(' ')).toBe(2)
      expect(result.stderr).toMatch(/^annals: |must be/)
    }
    const neither = await runCommand(['prune', '--older-than', '1d'], { DATABASE_URL: service.databaseUrl })
    expect(neither.code).toBe(2)
    expect(neither.stderr).toContain('name one (--project')
  })

  it('keeps a session that an append reaches while it waits for the session', async () => {
    const [touched, old] = await newOldSessions(2, 100)
    const appended = await whileSessionIsHeld(service.databaseUrl, project.id, touched!, async (held) => {
      const append = sessionLog(api, touched!).addEvent()
      await held.waiting()
      const pruning = prune('--older-than', '90d')
      await held.waiting(2)
      await held.release()
      return { append, pruning }
    })
    expectOk(await appended.append)
    expect((await appended.pruning).stdout).toMatch(/^Deleted 1 session with 1 entry/)
    expect(await remaining()).toEqual([touched])
    expectError(await api.getSession(old!), 404, 'session_not_found')
  })

  it('hinders no writer: appends to other sessions, and new sessions, go on while it deletes', async () => {
    const old = await newOldSessions(150, 100)
    const log = await newSessionLog(api)
    let pruning = true
    const statuses: number[] = []
    const writing = Array.from({ length: 4 }, async () => {
      while (pruning) {
        statuses.push((await log.addEvent()).status)
        statuses.push((await api.createSession({ user: randomUUID() })).status)
      }
    })
    const [first, second] = await Promise.all([prune('--older-than', '90d'), prune('--older-than', '90d')])
    pruning = false
    await Promise.all(writing)
    expect([first.code, second.code]).toEqual([0, 0])
    const deleted = [first, second].map(({ stdout }) => Number(/^Deleted (\d+) /.exec(stdout)?.[1]))
    expect(deleted[0]! + deleted[1]!).toBe(old.length)
    expect(statuses.filter((status) => status !== 200 && status !== 201)).toEqual([])
    const { items } = expectOk(await log.timeline({ limit: 200 }))
    expect(items.map((item) => item.seq)).toEqual(items.map((_, index) => index + 1))
  })

  it('ends cleanly when it is interrupted, and the next run goes on', async () => {
    const [long, other] = await newOldSessions(2, 100)
    await execute(
      service.databaseUrl,
      `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
       SELECT $1::uuid, $2::uuid, seq, now(), now(), gen_random_uuid(), 2, 0, 'event', 'note', '{}'::jsonb
       FROM generate_series(2, 5000) AS seq`,
      [project.id, long],
    )
    await execute(
      service.databaseUrl,
      'UPDATE session_heads SET last_seq = 5000 WHERE project_id = $1 AND session_id = $2',
      [project.id, long],
    )
    await withConnection(service.databaseUrl, async (holder) => {
      await holder.query('BEGIN')
      await holder.query(
        'SELECT seq FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 2500 FOR UPDATE',
        [project.id, long],
      )
      const { child, exited } = startAnnals(['prune', '--project', project.name, '--older-than', '90d'], {
        DATABASE_URL: service.databaseUrl,
      })
      // More than one where files share a database: the housekeeping of their nodes meets the remains too.
      const waits = async () => expect(await lockWaits(service.databaseUrl, holder)).toBeGreaterThan(0)
      await vi.waitFor(waits, { timeout: 15_000 })
      child.kill('SIGINT')
      await holder.query('ROLLBACK')
      expect(await exited).toMatchObject({
        code: 130,
        stderr: expect.stringContaining('run the same command'),
      })
    })
    const again = await prune('--older-than', '90d')
    expect(again).toMatchObject({ code: 0 })
    expect(await remaining()).toEqual([])
    const rows = 'SELECT 1 FROM entries WHERE project_id = $1 AND session_id = ANY ($2)'
    expect(await queryRows(service.databaseUrl, rows, [project.id, [long, other]])).toEqual([])
  })

  it('ends the tails of what it deletes', async () => {
    const [id] = await newOldSessions(1, 100)
    const tail = await openTail(service.node.url, project.token, id!, {})
    await tail.received(1)
    await prune('--older-than', '90d')
    await tail.whenEnded(8_000)
  })
})
