import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'
import { DAMAGES } from '../harness/session_damages.ts'
import { mixedEntries, newSessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'
import { type Verified, verifyDatabase } from '../harness/verification.ts'

const service = useService()

const annals = (...args: string[]) => runCommand(['verify', ...args], { DATABASE_URL: service.databaseUrl })

const verify = (...args: string[]) => verifyDatabase(service.databaseUrl, ...args)

/** A project with all that a project can have: users, sessions with logs, a copy, keys, patched meta, spaces. */
async function projectInUse(): Promise<{ project: Project; api: ApiClient; sessionId: string }> {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = await newSessionLog(api, { user: 'alice', configs: { agent: 'verify' } })
  expectOk(await log.batch(mixedEntries(30), { headers: { 'Idempotency-Key': randomUUID() } }), 201)
  const message = expectOk(await log.add({ role: 'user', content: 'last' }), 201)
  expectOk(await log.patchMeta(message.id, { seen: true }))
  expectOk(await log.addEvent())
  expectOk(await log.copy({ headers: { 'Idempotency-Key': randomUUID() } }))
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
        session_inbox: 0,
        session_reads: 0,
        session_requests: 0,
        sessions: 3,
        entries: 64,
        messages: 22,
        events: 42,
        tokens: expect.any(Number),
        bytes: expect.any(Number),
        learning_spaces: 1,
        blobs: 0,
        webhooks: 0,
        skill_files: 0,
        skills: 0,
        space_skills: 0,
        space_policies: 0,
        space_sessions: 0,
        statements: 0,
        statement_cites: 0,
        statement_feedback: 0,
        skill_versions: 0,
        learning_calls: 0,
        idempotency_keys: 2,
        findings: 0,
      },
    ])
    const forPeople = await annals('--project', project.id)
    expect(forPeople.stdout).toContain('64 entries of 3 sessions')
    expect(forPeople.stdout).toContain('nothing is wrong')
  })

  it('finds nothing while sessions are written, copied and deleted', async () => {
    const { project, api, sessionId } = await projectInUse()
    let done = false
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let index = 0; !done; index++) {
        const log = await newSessionLog(api, { user: `user ${writer}` })
        const headers = { 'Idempotency-Key': randomUUID() }
        expectOk(await log.batch(mixedEntries(5), { headers }), 201)
        const { new_session_id } = expectOk(await log.copy())
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

  describe('names, of many projects,', () => {
    const damaged: Array<{ project: Project; sessionId: string }> = []
    let verified: Verified
    beforeAll(async () => {
      for (const [, , statement] of DAMAGES) {
        const { project, sessionId } = await projectInUse()
        await execute(service.databaseUrl, statement, [project.id, sessionId])
        damaged.push({ project, sessionId })
      }
      verified = await verify()
    })

    it.each(DAMAGES.map(([check, what, , place], index) => ({ check, what, place, index })))(
      '$check: $what',
      ({ check, place, index }) => {
        const { project, sessionId } = damaged[index]!
        expect({ code: verified.code, sound: verified.sound }).toEqual({ code: 1, sound: false })
        const findings = verified.findings.filter((one) => one.project_id === project.id)
        const ofSession = /^(learning_space|blob|list_term|consumer|feedback|statement|skill)/.test(check)
          ? null
          : sessionId
        const finding = findings.find((one) => one.check === check && one.session_id === ofSession)
        expect(finding, JSON.stringify(findings)).toBeDefined()
        expect(finding!.place).toContain(place)
        expect(finding!.means).not.toBe('')
        expect(finding!.todo).not.toBe('')
      },
    )
  })

  it.each([
    ['session_activity_behind', `DELETE FROM session_activity WHERE project_id = $1 AND session_id = $2`],
    [
      'session_activity_behind',
      `UPDATE session_heads SET updated_at = updated_at + interval '1 hour' WHERE project_id = $1 AND session_id = $2`,
    ],
    ['activity_unlisted', 'DELETE FROM activity_terms WHERE project_id = $1 AND session_id = $2'],
    ['activity_term_stray', 'DELETE FROM session_activity WHERE project_id = $1 AND session_id = $2'],
    ['activity_without_session', 'DELETE FROM sessions WHERE project_id = $1 AND id = $2'],
    [
      'activity_without_consumer',
      'DELETE FROM project_consumers WHERE project_id = $1 AND $2::uuid IS NOT NULL',
    ],
  ])('names %s in the order by last activity: %s', async (check, statement) => {
    const { project, api, sessionId } = await projectInUse()
    const sql = (text: string) => queryRows(service.databaseUrl, text, [project.id])
    await vi.waitFor(async () => expectOk(await api.listSessions({ order_by: 'last_activity' })), 20_000)
    await vi.waitFor(async () => {
      expect(await sql('SELECT FROM change_marks WHERE project_id = $1')).toEqual([])
      expect(await sql('SELECT FROM session_activity WHERE project_id = $1')).toHaveLength(3)
    }, 20_000)
    // As it is when all nodes have heard of it: what they had written before then is seen.
    await execute(
      service.databaseUrl,
      `UPDATE project_consumers SET scan_at = now() + interval '1 day' WHERE project_id = $1`,
      [project.id],
    )
    expect((await verify('--project', project.id)).findings).toEqual([])
    await execute(service.databaseUrl, statement, [project.id, sessionId])
    const { found, findings } = await verify('--project', project.id)
    expect(found[check], JSON.stringify(findings)).toBeGreaterThan(0)
    expect(findings.find((one) => one.check === check)!.session_id).not.toBeNull()
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
