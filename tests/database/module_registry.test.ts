import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { writeExport } from '../../packages/archive/src/transfer/export_project.ts'
import { importExport } from '../../packages/archive/src/transfer/import_export.ts'
import { ExportReader } from '../../packages/archive/src/transfer/read_export.ts'
import { verifyDatabase } from '../../packages/archive/src/verify/verify_database.ts'
import { Erasure } from '../../packages/kits/src/lifecycle/erase/erasure.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { distributionSteps } from '../../packages/kits/src/postgres/citus/distribute.ts'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { createSession } from '../../packages/server/src/sessions/sessions.ts'
import { NOTES_MODULE } from '../fixtures/notes/module.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

const ROWS = 5_000

describe.skipIf(inject('testServer').mode === 'shared')('a module of its own', () => {
  let own: TestDatabase
  let database: DatabasePool
  const registry = registryOf([...MODULES, NOTES_MODULE])
  const { tables } = registry
  const erasure = new Erasure(tables)
  const signal = new AbortController().signal
  beforeAll(async () => {
    own = await createTestDatabase()
    await execute(own.url, readFileSync(new URL('../fixtures/notes/notes.sql', import.meta.url), 'utf8'))
    database = openDatabase({
      target: { connectionString: own.url },
      connections_max: 2,
      wait_ms_max: 30_000,
      statement_ms_max: 0,
    })
  })
  afterAll(async () => {
    await database.close()
    await own.drop()
  })

  /** A project with two users; each has a session with so many notes. */
  async function newProject(rows: number) {
    const id = randomUUID()
    await execute(own.url, 'INSERT INTO projects (id, name, created_at) VALUES ($1, $2, now())', [id, id])
    for (const user of rows > 0 ? ['ada', 'bob'] : []) {
      const request = { project_id: id, user, use_uuid: undefined, body: '{}', idempotency: undefined }
      const { json } = await createSession(database, request)
      await execute(
        own.url,
        `INSERT INTO notes SELECT $1::uuid, $2::uuid, n, 'note ' || n, jsonb_build_object('v', 1.50) FROM generate_series(1, $3::int) AS n`,
        [id, JSON.parse(json).id, rows],
      )
    }
    return { id, name: id }
  }
  const notesOf = (project: { id: string }) =>
    queryRows(
      own.url,
      'SELECT session_id, n, text, extra::text FROM notes WHERE project_id = $1 ORDER BY 1, 2',
      [project.id],
    )
  async function exported(project: { id: string; name: string }): Promise<Buffer> {
    const written: Buffer[] = []
    const write = async (bytes: Buffer) => void written.push(bytes)
    const output = { write, finish: async () => {}, abandon: async () => {} }
    const options = { tables, schema_version: 1, exported_at: 'now', signal, onProgress: () => {} }
    await writeExport(database, { project }, output, options)
    return Buffer.concat(written)
  }
  async function imported(file: Buffer, project_id: string) {
    const source = (async function* () {
      yield file
    })()
    const options = { tables, project_id, dry_run: false, signal, onProgress: () => {}, onConflict: () => {} }
    return importExport(database, new ExportReader(source, tables), options)
  }

  it('is erased with its session and its user in slices, and counted in the receipt', async () => {
    const project = await newProject(ROWS)
    expect(await erasure.eraseUser({ database, project_id: project.id }, 'ada')).toEqual({
      notes: ROWS,
      sessions: 1,
      entries: 0,
      learning_spaces: 0,
      blobs: 0,
      skills: 0,
      statements: 0,
      statement_cites: 0,
      revoked_statements: 0,
    })
    const [note] = await notesOf(project)
    const erased = await erasure.erase({ database, project_id: project.id }, 'session', [note!.session_id])
    expect(erased).toMatchObject({ sessions: 1, notes: ROWS })
    expect(await notesOf(project)).toEqual([])
    expect(
      await queryRows(own.url, 'SELECT 1 FROM erased_sessions WHERE project_id = $1', [project.id]),
    ).toEqual([])
    await erasure.eraseProject({ database, project_id: project.id })
  })

  it('is erased with its project, though a request under way refers to a blob while that is erased', async () => {
    const { id } = await newProject(3)
    const blob = [id, randomUUID(), 'a'.repeat(64)]
    await execute(
      own.url,
      'INSERT INTO blobs (project_id, id, sha256, bytes, created_at) VALUES ($1, $2, $3, 0, now())',
      blob,
    )
    let late: string | undefined
    const watched: DatabasePool = {
      ...database,
      query: async (statement, parameters) => {
        const rows = await database.query(statement, parameters)
        if (statement.name !== 'find_blobs_of_project' || late) return rows
        const request = {
          project_id: id,
          user: undefined,
          use_uuid: undefined,
          body: '{}',
          idempotency: undefined,
        }
        late = JSON.parse((await createSession(database, request)).json).id
        await execute(
          own.url,
          'INSERT INTO blob_references (project_id, owner_id, seq, sha256) VALUES ($1, $2, 1, $3)',
          [id, late!, blob[2]!],
        )
        return rows
      },
    }
    await erasure.eraseProject({ database: watched, project_id: id })
    expect(late).toBeDefined()
    for (const table of ['projects', 'sessions', 'blobs', 'blob_references'])
      expect(
        await queryRows(
          own.url,
          `SELECT 1 FROM ${table} WHERE ${table === 'projects' ? 'id' : 'project_id'} = $1`,
          [id],
        ),
        table,
      ).toEqual([])
  })

  it('comes through an export and an import whole, and a second import stores nothing', async () => {
    const project = await newProject(250)
    const file = await exported(project)
    const copy = await newProject(0)
    expect((await imported(file, copy.id)).tallies.notes).toEqual({ stored: 500, known: 0 })
    expect(await notesOf(copy)).toEqual(await notesOf(project))
    expect((await imported(file, copy.id)).tallies.notes).toEqual({ stored: 0, known: 500 })
  })

  it('is verified: rows without their session, and what the module itself looks for', async () => {
    const project = await newProject(3)
    const verify = async () => {
      const options = { registry, only: project, onMeasured: () => {}, onProgress: () => {} }
      return (await verifyDatabase(database, options)).found
    }
    expect(await verify()).toEqual({})
    await execute(own.url, "UPDATE notes SET text = '' WHERE project_id = $1 AND n = 2", [project.id])
    await execute(own.url, 'INSERT INTO notes VALUES ($1, $2, 1, $3)', [project.id, randomUUID(), 'lost'])
    expect(await verify()).toEqual({ note_empty: 2, note_without_session: 1 })
  })

  it('owns each table of the database once, and each of these is distributed, but for what is of the coordinator alone', async () => {
    const rows = await queryRows<{ name: string }>(
      own.url,
      "SELECT c.relname AS name FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1",
    )
    const names = rows.map(({ name }) => name).filter((name) => name !== 'schema_migrations')
    expect(registry.all_tables.map(({ name }) => name).sort()).toEqual(names)
    const steps = distributionSteps().filter(({ kind }) => kind === 'table')
    expect(steps.map(({ name }) => name).sort()).toEqual(
      names.filter(
        (name) => !['notes', 'admin_sessions', 'signing_keys', 'proof_destinations'].includes(name),
      ),
    )
  })

  it('is refused where it leaves an answer out, or is erased with what there is not', () => {
    const [notes] = NOTES_MODULE.tables
    const with_table = (change: object) => [
      ...MODULES,
      { ...NOTES_MODULE, tables: [{ ...notes!, ...change }] },
    ]
    expect(() => registryOf(with_table({ exported: undefined }))).toThrow(
      'Table notes of module notes does not say its exported.',
    )
    expect(() => registryOf(with_table({ erased_with: 'moon' }))).toThrow('erased with a moon')
  })
})
