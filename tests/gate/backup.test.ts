import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { Annals } from '@annals/client'
import { describe, expect, inject, it, vi } from 'vitest'
import { startAnnals, startServer } from '../harness/annals_process.ts'
import { apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { countEntries, insertLargeLog, useTransfers } from '../harness/exports.ts'
import { type Project, useService } from '../harness/service.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { createTestDatabase } from '../harness/test_database.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const service = useService()
const files = useTransfers(service)
/** Several pieces, as which an export reads a log. */
const MANY = Number(process.env.TEST_BACKUP_ENTRIES ?? (IS_THOROUGH ? 20_000 : 5_000))

/** A project with sessions of users and of nobody, a blob, a space and a key that was revoked. */
async function filledProject(): Promise<{ project: Project; revoked: string; session_id: string }> {
  const project = await service.newProject()
  const admin = service.adminClient()
  const model = { url: 'http://127.0.0.1:9/v1', name: 'scripted', key: 'model-key-of-backup' }
  const settings = { body: { max_sessions: 77, model } }
  expectOk(await admin.request('PATCH', `/admin/v1/projects/${project.id}`, settings))
  const path = `/admin/v1/projects/${project.id}/tokens`
  const { id, token } = expectOk(
    await admin.request<{ id: string; token: string }>('POST', path, { body: { name: 'old' } }),
    201,
  )
  expectOk(await admin.request('DELETE', `${path}/${id}`))
  const api = await service.newClient({ token: project.token })
  const session_id = randomUUID()
  for (const body of [{ user: 'ada', use_uuid: session_id }, { user: 'bob' }, {}])
    expectOk(await api.request('POST', '/api/v1/session', { body }), 201)
  const event = { type: 'note', data: { n: 1 } }
  for (let n = 0; n < 3; n += 1)
    expectOk(await api.request('POST', `/api/v1/session/${session_id}/events`, { body: event }))
  expectOk(await api.request('POST', '/api/v1/learning_spaces', { body: { user: 'ada' } }), 201)
  // Which also writes what was used today.
  expectOk(await api.request('GET', '/api/v1/usage'))
  return { project, revoked: token, session_id }
}

/** A session that has input and an open request, and whose lease somebody holds. */
async function newRun({ token }: Project) {
  const api = await service.newClient({ token })
  const { id } = expectOk(await api.createSession({}), 201)
  const post = async <Data>(what: string, body: object, status: number) =>
    expectOk(await api.request<Data>('POST', `/api/v1/session/${id}/${what}`, { body }), status)
  const { fence } = await post<{ fence: number }>('lease', { owner: 'a', ttl_ms: 600_000 }, 200)
  const sent = { mode: 'queue', kind: 'event', type: 'go', data: { n: 1.5 } }
  const input = await post<{ id: string }>('inbox', sent, 201)
  const asked = await post<{ id: string }>(
    'requests',
    { kind: 'approval', call: { name: 'pay', arguments: {} } },
    201,
  )
  return { id, fence, input, asked }
}

async function backUp(...args: string[]): Promise<string> {
  const path = files.newPath()
  const { code, stderr } = await files.run('backup', path, ...args)
  expect(code, stderr).toBe(0)
  return path
}

/** Restores a file into a database of its own. */
async function restored<T>(
  path: string,
  work: (url: string, restore: () => ReturnType<typeof runCommand>) => Promise<T>,
): Promise<T> {
  const database = await createTestDatabase()
  try {
    return await work(database.url, () => runCommand(['restore', path], { DATABASE_URL: database.url }))
  } finally {
    await database.drop()
  }
}

describe.skipIf(inject('testServer').mode === 'shared')('a backup', () => {
  it('has all projects with their data, settings, keys and the audit, and a service takes up the restored database', async () => {
    const { project, revoked, session_id } = await filledProject()
    const other = await filledProject()
    const run = await newRun(project)
    // The service writes it now and then: what it writes after the backup, the restored database has not.
    const usage = 'SELECT sum(entries)::int AS entries FROM usage_days WHERE project_id = $1'
    const entries = async () => (await queryRows(service.databaseUrl, usage, [project.id]))[0]
    await expect.poll(entries).toEqual({ entries: 4 })
    const path = await backUp()
    await restored(path, async (DATABASE_URL, restore) => {
      const { code, stdout, stderr } = await restore()
      expect(code, stderr).toBe(0)
      expect(stdout).toContain('nothing is wrong')
      const node = await startServer({ DATABASE_URL })
      try {
        const api = apiClient(node.url, project.token)
        const { items } = expectOk(
          await api.request<{ items: unknown[] }>('GET', `/api/v1/session/${session_id}/timeline`),
        )
        expect(items).toHaveLength(3)
        const work = { owner: 'b', ttl_ms: 60_000 }
        const claimed = await api.request<{ items: Array<{ fence: number }> }>('POST', '/api/v1/work/claim', {
          body: work,
        })
        const [taken] = expectOk(claimed).items
        expect(taken).toMatchObject({ session_id: run.id, inputs: [{ id: run.input.id, data: { n: 1.5 } }] })
        expect(taken!.fence).toBeGreaterThan(run.fence)
        expect(expectOk(await api.request('GET', `/api/v1/requests/${run.asked.id}`))).toEqual(run.asked)
        expectError(await apiClient(node.url, revoked).request('GET', '/api/v1/session'), 401, 'unauthorized')
        expectError(
          await apiClient(node.url, other.project.token).request('GET', `/api/v1/session/${session_id}`),
          404,
          'session_not_found',
        )
      } finally {
        await node.stop()
      }
      const of = (url: string, text: string) => queryRows(url, text, [project.id])
      for (const text of [
        "SELECT to_jsonb(p) - 'consumers' AS row FROM projects p WHERE p.id = $1",
        'SELECT * FROM api_keys WHERE project_id = $1 ORDER BY id',
        "SELECT * FROM audit WHERE project_id = $1 AND action <> 'project.restore' ORDER BY seq",
        'SELECT * FROM usage_days WHERE project_id = $1 ORDER BY day',
      ])
        expect(await of(DATABASE_URL, text)).toEqual(await of(service.databaseUrl, text))
      expect(await of(DATABASE_URL, "SELECT model ->> 'key' AS key FROM projects WHERE id = $1")).toEqual([
        { key: 'model-key-of-backup' },
      ])
      expect(
        await of(DATABASE_URL, "SELECT 1 FROM audit WHERE project_id = $1 AND action = 'project.restore'"),
      ).toHaveLength(1)
      const again = await restore()
      expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('0 sessions, 0 entries')])
    })
  })

  it('restored shows nobody its log as the one that had more: a cursor and a tail after its end are refused when it has grown again', async () => {
    const { project, session_id } = await filledProject()
    const events = async (url: string, count: number) => {
      const api = apiClient(url, project.token)
      for (let n = 0; n < count; n += 1)
        expectOk(await api.appendEvent(session_id, { type: 'note', data: { n } }))
    }
    const path = await backUp('--project', project.name)
    await events(service.node.url, 3)
    const before = new Annals({ url: service.node.url, token: project.token })
    const { items } = await before.sessions.timeline(session_id).page()
    const cursor = (await before.sessions.timeline(session_id, { limit: 5 }).page()).next_cursor
    await restored(path, async (DATABASE_URL, restore) => {
      expect((await restore()).code).toBe(0)
      const node = await startServer({ DATABASE_URL })
      try {
        await events(node.url, 4)
        const { sessions } = new Annals({ url: node.url, token: project.token })
        const diverged = { status: 409, error: 'log_diverged' }
        await expect(sessions.timeline(session_id, { limit: 5, cursor }).page()).rejects.toMatchObject(
          diverged,
        )
        await expect(sessions.tail(session_id, { after: items[5]! }).next()).rejects.toMatchObject(diverged)
        for (const after of [items[2]!, 3])
          expect((await sessions.tail(session_id, { after }).next()).value).toMatchObject({ seq: 4 })
      } finally {
        await node.stop()
      }
    })
  })

  it('of one project has nothing of another, and leaves other projects of its target alone', async () => {
    const { project } = await filledProject()
    const { project: other } = await filledProject()
    const path = await backUp('--project', project.name)
    const text = await readFile(path, 'utf8')
    expect(text).toContain(project.id)
    expect(text).not.toContain(other.id)
    const { code, stderr } = await files.run('restore', path)
    expect(code, stderr).toBe(0)
    await restored(path, async (url, restore) => {
      await queryRows(url, 'INSERT INTO projects (id, name, created_at) VALUES ($1, $2, now())', [
        randomUUID(),
        project.name,
      ])
      const { code, stderr } = await restore()
      expect([code, stderr]).toEqual([1, expect.stringContaining('a different row of projects')])
      expect(await countEntries(url, project.id)).toBe(0)
    })
  })

  it('that was killed goes on with the project where it was, and restores completely', {
    timeout: 1_800_000,
  }, async () => {
    const { project } = await filledProject()
    const { project: last } = await filledProject()
    await insertLargeLog(service.databaseUrl, last.id, MANY, 60)
    const path = files.newPath()
    const DATABASE_URL = service.databaseUrl
    const args = ['backup', path]
    const state = async () => JSON.parse(await readFile(`${path}.partial.json`, 'utf8'))
    await withConnection(DATABASE_URL, async (connection) => {
      await connection.query('BEGIN')
      // The last table that a project's export reads.
      await connection.query('LOCK TABLE blobs IN ACCESS EXCLUSIVE MODE')
      const running = startAnnals(args, { DATABASE_URL })
      const lines = async () => (await readFile(`${path}.partial`, 'utf8')).split('\n').length - 1
      await vi.waitFor(async () => expect(await lines()).toBeGreaterThan(1), { timeout: 60_000 })
      running.child.kill('SIGKILL')
      await running.exited
      expect(existsSync(path)).toBe(false)
    })
    expect((await state()).sections).toEqual([])
    const header = (await readFile(`${path}.partial`, 'utf8')).split('\n')[0]
    const { code, stderr } = await runCommand(args, { DATABASE_URL })
    expect([code, stderr]).toEqual([0, expect.stringContaining('Going on with the backup')])
    expect(existsSync(`${path}.partial.json`)).toBe(false)
    expect((await readFile(path, 'utf8')).split('\n')[0]).toBe(header)
    await restored(path, async (url, restore) => {
      const { code, stderr } = await restore()
      expect(code, stderr).toBe(0)
      expect(await countEntries(url, project.id)).toBe(3)
      expect(await countEntries(url, last.id)).toBe(MANY + 3)
    })
  })

  it('that is damaged or cut off is refused before anything of it is stored', async () => {
    const { project } = await filledProject()
    const path = await backUp('--project', project.name)
    const text = await readFile(path, 'utf8')
    const wrong: Array<[string, RegExp]> = [
      [text.replace('"type":"note"', '"type":"nope"'), /checksum does not match/],
      [text.replace('"name": "old"', '"name": "odd"'), /checksum of the projects and keys/],
      [text.slice(0, text.trimEnd().lastIndexOf('\n') + 1), /cut off/],
      [text.replace('"annals_backup":1', '"annals_backup":2'), /newer Annals/],
      [text.slice(text.indexOf('\n') + 1), /not a backup/],
    ]
    for (const [changed, message] of wrong) {
      expect(changed).not.toBe(text)
      await writeFile(path, changed)
      await restored(path, async (url, restore) => {
        const { code, stderr } = await restore()
        expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
        expect(await queryRows(url, 'SELECT id FROM projects')).toEqual([])
      })
    }
  })

  it('with a row of a project that nests without end is refused in a sentence', async () => {
    const { project } = await filledProject()
    const path = await backUp('--project', project.name)
    const bytes = await readFile(path)
    const last_at = bytes.lastIndexOf('\n', -2) + 1
    // Without its checksum, as older backups.
    const { sha256: _, ...end } = JSON.parse(bytes.subarray(last_at).toString())
    const { offset } = end.catalogue
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const row = `{"table":"projects","row":{"id":"${project.id}","name":${deep}}}\n`
    const rows = Buffer.concat([Buffer.from(row), bytes.subarray(offset, last_at)])
    end.catalogue = { offset, bytes: rows.length, sha256: createHash('sha256').update(rows).digest('hex') }
    await writeFile(path, Buffer.concat([bytes.subarray(0, offset), rows, Buffer.from(JSON.stringify(end))]))
    await restored(path, async (_url, restore) => {
      const { code, stderr } = await restore()
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/a line of the projects and keys.* is not one/),
      ])
    })
  })

  it('with a project that is damaged in it is restored without that project, which is named, and exits with 1', async () => {
    const { project: damaged } = await filledProject()
    const { project: sound } = await filledProject()
    const path = await backUp()
    const text = await readFile(path, 'utf8')
    const at = text.indexOf('"type":"note"', text.indexOf(`"project_id":"${damaged.id}"`))
    await writeFile(path, `${text.slice(0, at)}"type":"nope"${text.slice(at + '"type":"note"'.length)}`)
    await restored(path, async (url, restore) => {
      const { code, stdout, stderr } = await restore()
      expect(code, stderr).toBe(1)
      expect(stderr).toMatch(
        new RegExp(
          `project "${damaged.name}": nothing of it was restored.*Line \\d+: the checksum does not match`,
        ),
      )
      expect(stdout).toContain(`Restored project "${sound.name}"`)
      expect(stdout).toContain('nothing is wrong')
      expect(await countEntries(url, sound.id)).toBe(3)
      expect(await countEntries(url, damaged.id)).toBe(0)
      expect(await queryRows(url, 'SELECT 1 FROM api_keys WHERE project_id = $1', [damaged.id])).toEqual([])
    })
  })

  it('and an export are taken where nothing can be written, as on a standby', async () => {
    const database = await createTestDatabase()
    try {
      await queryRows(database.url, 'INSERT INTO projects (id, name, created_at) VALUES ($1, $2, now())', [
        randomUUID(),
        'read-only',
      ])
      const [row] = await queryRows<{ name: string }>(database.url, 'SELECT current_database() AS name')
      await queryRows(database.url, `ALTER DATABASE ${row!.name} SET default_transaction_read_only = on`)
      for (const args of [
        ['backup', files.newPath()],
        ['export', '--output', files.newPath()],
      ]) {
        const { code, stderr } = await runCommand(args, { DATABASE_URL: database.url })
        expect(code, stderr).toBe(0)
      }
    } finally {
      await database.drop()
    }
  })

  it('has each session complete up to one moment while it is written', async () => {
    const { project } = await filledProject()
    const api = await service.newClient({ token: project.token })
    const sessions = await Promise.all(
      Array.from({ length: 4 }, async () =>
        expectOk(await api.request<{ id: string }>('POST', '/api/v1/session', { body: {} }), 201),
      ),
    )
    let running = true
    const writers = sessions.map(async ({ id }) => {
      for (let n = 1; running; n += 1) {
        const body = { type: 'n', data: { n } }
        expectOk(await api.request('POST', `/api/v1/session/${id}/events`, { body }))
      }
    })
    const path = await backUp('--project', project.name)
    running = false
    await Promise.all(writers)
    await restored(path, async (url, restore) => {
      expect((await restore()).code).toBe(0)
      const rows = await queryRows<{ last_seq: string; all: string; n: string }>(
        url,
        `SELECT h.last_seq, count(e.seq) AS all, max((e.data ->> 'n')::int) AS n FROM session_heads h
         LEFT JOIN entries e USING (project_id, session_id) WHERE h.session_id = ANY ($1) GROUP BY h.last_seq, h.session_id`,
        [sessions.map(({ id }) => id)],
      )
      expect(rows).toHaveLength(4)
      for (const { last_seq, all, n } of rows)
        expect([all, Number(n ?? 0)]).toEqual([last_seq, Number(last_seq)])
    })
  })
})
