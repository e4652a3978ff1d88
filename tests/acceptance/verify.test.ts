import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { runAnnals } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'
import { mixedEntries, newSessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

interface Found {
  check: string
  session_id: string | null
  place: string
  detail: string
  means: string
  todo: string
}

interface Verified {
  sound: boolean
  findings_total: number
  found: Record<string, number>
  findings: Found[]
  projects: Array<Record<string, string | number | null>>
}

const service = useService()

const annals = (...args: string[]) => runAnnals(['verify', ...args], { DATABASE_URL: service.databaseUrl })

async function verify(...args: string[]): Promise<Verified & { code: number | null }> {
  const { code, stdout, stderr } = await annals('--json', ...args)
  expect(stdout, stderr).not.toBe('')
  return { code, ...(JSON.parse(stdout) as Verified) }
}

/** A project with all that a project can have: users, sessions with logs, a copy, keys, patched meta, spaces. */
async function projectInUse(): Promise<{ project: Project; api: ApiClient; sessionId: string }> {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = await newSessionLog(api, { user: 'alice', configs: { agent: 'verify' } })
  expectOk(await log.batch(mixedEntries(30), { headers: { 'Idempotency-Key': randomUUID() } }), 201)
  const message = expectOk(await log.add({ role: 'user', content: 'last' }), 201)
  expectOk(await log.patchMeta(message.id, { seen: true }))
  expectOk(await log.addEvent())
  expectOk(await log.copy({ headers: { 'Idempotency-Key': randomUUID() } }), 201)
  await newSessionLog(api)
  expectOk(await api.createLearningSpace({ user: 'alice' }), 201)
  return { project, api, sessionId: log.id }
}

describe('annals verify of a database that is sound', () => {
  it('ends with 0, says so, and counts what is there', async () => {
    const { project } = await projectInUse()
    const { code, sound, findings, projects } = await verify('--project', project.name)
    expect({ code, sound, findings }).toEqual({ code: 0, sound: true, findings: [] })
    expect(projects).toEqual([
      {
        id: project.id,
        name: project.name,
        users: 1,
        sessions: 3,
        entries: 64,
        messages: 22,
        events: 42,
        tokens: expect.any(Number),
        bytes: expect.any(Number),
        learning_spaces: 1,
        idempotency_keys: 2,
        findings: 0,
      },
    ])
    const forPeople = await annals('--project', project.id)
    expect(forPeople.stdout).toContain('64 entries of 3 sessions')
    expect(forPeople.stdout).toContain('all is as it must be')
  })

  it('finds nothing while sessions are written, copied and deleted', async () => {
    const { project, api, sessionId } = await projectInUse()
    let done = false
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let index = 0; !done; index++) {
        const log = await newSessionLog(api, { user: `user ${writer}` })
        const headers = { 'Idempotency-Key': randomUUID() }
        expectOk(await log.batch(mixedEntries(5), { headers }), 201)
        const { new_session_id } = expectOk(await log.copy(), 201)
        expectOk(await api.appendEvent(sessionId, { type: 'note', data: { index } }, { headers: {} }))
        expectOk(await api.deleteSession(new_session_id))
      }
    })
    try {
      for (let round = 0; round < 2; round++) {
        const { code, findings } = await verify('--project', project.id)
        expect({ code, findings }).toEqual({ code: 0, findings: [] })
      }
    } finally {
      done = true
    }
    await Promise.all(writing)
  })

  it('finds nothing where a long session is being deleted in slices', async () => {
    const { project, api, sessionId } = await projectInUse()
    const keep = `INSERT INTO erased_sessions (project_id, session_id, last_seq, erased_at) VALUES ($1, $2, 32, now())`
    await execute(service.databaseUrl, keep, [project.id, sessionId])
    await execute(
      service.databaseUrl,
      'DELETE FROM session_heads WHERE project_id = $1 AND session_id = $2',
      [project.id, sessionId],
    )
    await execute(service.databaseUrl, 'DELETE FROM sessions WHERE project_id = $1 AND id = $2', [
      project.id,
      sessionId,
    ])
    const { code, findings, projects } = await verify('--project', project.id)
    expect({ code, findings, sessions: projects[0]!.sessions }).toEqual({
      code: 0,
      findings: [],
      sessions: 2,
    })
    expectOk(await api.listSessions())
  })

  it('of a project that does not exist fails and says so', async () => {
    const result = await annals('--project', 'no-such-project')
    expect(result.code).toBe(3)
    expect(result.stderr).toContain('no-such-project')
  })
})

/** What somebody does to the rows of a session, and what verify must then name. $1 is the project, $2 the session. */
const IN_A_SESSION: Array<[string, string, string, string]> = [
  [
    'seq_gap',
    'a lost entry',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 3',
  ],
  [
    'seq_gap',
    'a lost beginning',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 1',
    'seq 2',
  ],
  [
    'created_at_decreases',
    'an entry that is too old',
    `UPDATE entries SET created_at = created_at - interval '1 hour' WHERE project_id = $1 AND session_id = $2 AND seq = 7`,
    'seq 7',
  ],
  [
    'updated_before_created',
    'a change before the beginning',
    `UPDATE entries SET updated_at = created_at - interval '1 s' WHERE project_id = $1 AND session_id = $2 AND seq = 7`,
    'seq 7',
  ],
  [
    'parent_wrong',
    'a message with another parent',
    'UPDATE entries SET parent_id = id WHERE project_id = $1 AND session_id = $2 AND seq = 4',
    'seq 4',
  ],
  [
    'parent_wrong',
    'an event with a parent',
    'UPDATE entries SET parent_id = id WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 2',
  ],
  [
    'entry_malformed',
    'an event without a type',
    'UPDATE entries SET type = NULL WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 2',
  ],
  [
    'entry_malformed',
    'an entry of no bytes',
    'UPDATE entries SET bytes = 0 WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 2',
  ],
  [
    'head_last_seq',
    'a head behind its log',
    'UPDATE session_heads SET last_seq = last_seq - 1 WHERE project_id = $1 AND session_id = $2',
    'last_seq',
  ],
  [
    'head_last_seq',
    'a lost end',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 32',
    'last_seq',
  ],
  [
    'head_total_tokens',
    'other tokens',
    'UPDATE session_heads SET total_tokens = total_tokens + 1 WHERE project_id = $1 AND session_id = $2',
    'total_tokens',
  ],
  [
    'head_last_message',
    'another last message',
    'UPDATE session_heads SET last_message_id = session_id WHERE project_id = $1 AND session_id = $2',
    'last_message_id',
  ],
  [
    'head_updated_at',
    'a head that is too old',
    `UPDATE session_heads SET updated_at = updated_at - interval '1 hour' WHERE project_id = $1 AND session_id = $2`,
    'updated_at',
  ],
  [
    'session_without_head',
    'a lost head',
    'DELETE FROM session_heads WHERE project_id = $1 AND session_id = $2',
    'session_heads',
  ],
  [
    'session_without_user',
    'a lost user',
    'DELETE FROM users WHERE project_id = $1 AND id = (SELECT user_id FROM sessions WHERE project_id = $1 AND id = $2)',
    'user_id',
  ],
  [
    'session_unlisted',
    'a lost term of its configs',
    'DELETE FROM list_terms WHERE project_id = $1 AND item_id = $2',
    'list_terms',
  ],
  [
    'learning_space_unlisted',
    'a lost term of its meta',
    'DELETE FROM list_terms WHERE project_id = $1 AND $2::uuid IS NOT NULL',
    'learning space',
  ],
  [
    'learning_space_without_user',
    'a lost user of a space',
    'DELETE FROM users WHERE project_id = $1 AND $2::uuid IS NOT NULL',
    'learning space',
  ],
  [
    'learning_space_times',
    'a space that is older than itself',
    `UPDATE learning_spaces SET updated_at = created_at - interval '1 s' WHERE project_id = $1 AND $2::uuid IS NOT NULL`,
    'learning space',
  ],
  [
    'head_without_session',
    'a lost session',
    'DELETE FROM sessions WHERE project_id = $1 AND id = $2',
    'sessions',
  ],
  [
    'key_without_owner',
    'a key of a lost session',
    'DELETE FROM sessions WHERE project_id = $1 AND id = $2',
    'key',
  ],
  [
    'key_seqs',
    'a key that stands for a lost entry',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'key',
  ],
  [
    'key_malformed',
    'a key that stands for nothing',
    'UPDATE idempotency_keys SET seqs = NULL WHERE project_id = $1 AND owner_id = $2',
    'key',
  ],
]

describe.skipIf(reasonForNoOwnDatabase())('annals verify of a database that is not', () => {
  beforeAll(async () => {
    // As a database is that somebody restored without them: what follows would be refused otherwise.
    const keys = await queryRows<{ name: string; table_name: string }>(
      service.databaseUrl,
      "SELECT conname AS name, conrelid::regclass::text AS table_name FROM pg_constraint WHERE contype = 'f'",
    )
    for (const { name, table_name } of keys)
      await execute(service.databaseUrl, `ALTER TABLE ${table_name} DROP CONSTRAINT ${name}`)
  })

  it.each(IN_A_SESSION)('names %s: %s', async (check, _what, statement, place) => {
    const { project, sessionId } = await projectInUse()
    await execute(service.databaseUrl, statement, [project.id, sessionId])
    const { code, sound, found, findings } = await verify('--project', project.id)
    expect({ code, sound }).toEqual({ code: 1, sound: false })
    expect(found[check], JSON.stringify(findings)).toBeGreaterThan(0)
    const ofSession = check.startsWith('learning_space') ? null : sessionId
    const finding = findings.find((one) => one.check === check && one.session_id === ofSession)!
    expect(finding.place).toContain(place)
    expect(finding.means).not.toBe('')
    expect(finding.todo).not.toBe('')
  })

  it('tells people where, what, and what to do', async () => {
    const { project, sessionId } = await projectInUse()
    const behind = 'UPDATE session_heads SET last_seq = 9 WHERE project_id = $1 AND session_id = $2'
    await execute(service.databaseUrl, behind, [project.id, sessionId])
    const { code, stdout } = await annals('--project', project.name)
    expect(code).toBe(1)
    expect(stdout).toContain(
      `project ${project.name}, session ${sessionId}, last_seq: the head says 9, the log ends at 32`,
    )
    expect(stdout).toContain('→ The log is right')
    expect(stdout).toContain('docs/operations.md')
  })

  it('shows a few of many like findings and counts the rest', async () => {
    const { project, sessionId } = await projectInUse()
    const backwards = `UPDATE entries SET created_at = created_at - seq * interval '1 s' WHERE project_id = $1 AND session_id = $2`
    await execute(service.databaseUrl, backwards, [project.id, sessionId])
    const { found, findings } = await verify('--project', project.id)
    expect(found.created_at_decreases).toBe(31)
    expect(findings.filter((one) => one.check === 'created_at_decreases')).toHaveLength(10)
  })

  it('finds entries, and tokens, of what does not exist at all', async () => {
    const { project, sessionId } = await projectInUse()
    await execute(service.databaseUrl, 'DELETE FROM session_heads WHERE project_id = $1', [project.id])
    await execute(service.databaseUrl, 'DELETE FROM sessions WHERE project_id = $1', [project.id])
    const ofProject = await verify('--project', project.id)
    expect(ofProject.found.entries_without_session).toBe(2)
    expect(ofProject.findings.map((one) => one.session_id)).toContain(sessionId)

    await execute(service.databaseUrl, 'DELETE FROM projects WHERE id = $1', [project.id])
    const ofAll = await verify()
    expect(ofAll.found).toMatchObject({ project_missing: 1, token_without_project: 1 })
    expect(ofAll.findings.map((one) => one.place)).toContain(`project ${project.id}`)
  })

  it('changes nothing, not even an old schema', async () => {
    await execute(service.databaseUrl, 'ALTER TABLE schema_migrations RENAME TO elsewhere')
    const result = await annals()
    await execute(service.databaseUrl, 'ALTER TABLE elsewhere RENAME TO schema_migrations')
    expect(result.code).toBe(1)
    expect(result.stderr).toContain('annals migrate')
  })
})
