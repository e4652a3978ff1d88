import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { BackupFile } from '../../packages/archive/src/backup/backup_file.ts'
import { openBackup, restoreBackup } from '../../packages/archive/src/backup/restore_backup.ts'
import { writeBackup } from '../../packages/archive/src/backup/write_backup.ts'
import { Erasure } from '../../packages/kits/src/lifecycle/erase/erasure.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { createProject, listNamedProjects } from '../../packages/server/src/projects/projects.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

const registry = registryOf(MODULES)
let directory: string
const opened: Array<{ own: TestDatabase; database: DatabasePool }> = []

async function newDatabase(): Promise<DatabasePool> {
  const own = await createTestDatabase()
  const database = openDatabase({
    target: { connectionString: own.url },
    connections_max: 2,
    wait_ms_max: 30_000,
    statement_ms_max: 0,
  })
  opened.push({ own, database })
  return database
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-backup-'))
})
afterAll(async () => {
  for (const { own, database } of opened) {
    await database.close()
    await own.drop()
  }
  await rm(directory, { recursive: true })
})

it.skipIf(inject('testServer').mode === 'shared')(
  'can be restored, though a project was erased and another created while it was written',
  async () => {
    const source = await newDatabase()
    for (const name of ['erased', 'kept']) await createProject(source, 'test', name)
    const [erased] = await listNamedProjects(source)
    const path = join(directory, 'annals.backup')
    const header = { annals_backup: 1, what: 'database', annals_version: '', schema_version: 1 } as const
    const file = await BackupFile.open(path, { ...header, begun_at: new Date().toISOString() }, () => true)
    let looks = 0
    const projects = async () => {
      // Its section is written by then.
      if (++looks === 2)
        await new Erasure(registry.tables).eraseProject({ database: source, project_id: erased!.id })
      return listNamedProjects(source)
    }
    const watched: DatabasePool = {
      ...source,
      query: async (statement, parameters) => {
        const rows = await source.query(statement, parameters)
        // Its row is behind what was read, and its key before it.
        if (statement.name === 'back_up_projects') await createProject(source, 'test', `new ${randomUUID()}`)
        return rows
      },
    }
    const signal = new AbortController().signal
    const none = () => {}
    await writeBackup(watched, file, { registry, projects, only_id: undefined, signal, onProgress: none })
    const target = await newDatabase()
    const options = { registry, signal, onProgress: none, onConflict: none }
    const restored = await restoreBackup(target, await openBackup(path, 1), options)
    expect(restored.size).toBe(1)
    expect((await listNamedProjects(target)).map(({ name }) => name)).toEqual(['kept'])
  },
)
