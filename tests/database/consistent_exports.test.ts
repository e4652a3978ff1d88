import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { onSnapshot, writeExport } from '../../packages/archive/src/transfer/export_project.ts'
import { importExport } from '../../packages/archive/src/transfer/import_export.ts'
import { ExportReader } from '../../packages/archive/src/transfer/read_export.ts'
import { verifyDatabase } from '../../packages/archive/src/verify/verify_database.ts'
import { Erasure } from '../../packages/kits/src/lifecycle/erase/erasure.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { CHUNK_BYTES, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { insertLargeLog } from '../harness/exports.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { skillZip, uploadSkill } from '../harness/skills.ts'
import { execute, queryRows } from '../harness/sql.ts'

/* Exports, and what is left of them when others delete meanwhile: they are restored into another project and verified. */

const service = useSharedService()
const registry = registryOf(MODULES)
const { tables } = registry
const erasure = new Erasure(tables)
const { signal } = new AbortController()
const none = () => {}
let database: DatabasePool

beforeAll(() => {
  const limits = { connections_max: 4, wait_ms_max: 30_000, statement_ms_max: 0 }
  database = openDatabase({ target: { connectionString: service.databaseUrl }, ...limits })
})
afterAll(() => database.close())

/** The export of a project; `meanwhile` runs when its first line is written. */
async function exported(
  project: Project,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<Buffer> {
  const written: Buffer[] = []
  const write = async (bytes: Buffer) => {
    if (written.push(bytes) === 1) await meanwhile()
  }
  const options = { tables, schema_version: 1, exported_at: 'now', signal, onProgress: none }
  await onSnapshot(database, project.id, tables, (snapshot) =>
    writeExport(snapshot, { project }, { write }, options),
  )
  return Buffer.concat(written)
}

async function imported(file: Buffer) {
  const project = await service.newProject()
  const conflicts: string[] = []
  const source = (async function* () {
    yield file
  })()
  const { tallies } = await importExport(database, new ExportReader(source, tables), {
    tables,
    project_id: project.id,
    dry_run: false,
    signal,
    onProgress: none,
    onConflict: ({ kind, id, reason }) => conflicts.push(`${kind} ${id}: ${reason}`),
  })
  return { project, tallies, conflicts }
}

async function findingsIn({ id, name }: Project): Promise<string[]> {
  const options = { registry, only: { id, name }, onMeasured: none, onProgress: none }
  const { findings } = await verifyDatabase(database, options)
  return findings.map(({ check, place }) => `${check}: ${place}`)
}

const reference = (bytes: Buffer) => ({ file: { annals_blob: sha256Of(bytes), media_type: 'image/png' } })

const isCluster = inject('testServer').mode === 'shared'

describe('an export', () => {
  it('is sound though all that it has is deleted while it is written', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const bytes = newBytes(2 * CHUNK_BYTES + 1)
    expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
    const parent = await newSessionLog(api, {})
    const child = await newSessionLog(api, { user: 'ada', parent: parent.id })
    expectOk(await child.addEvent('note', reference(bytes)))
    const zip = skillZip('refunds', { 'own.md': 'Ask first.' })
    expect((await uploadSkill(service.node.url, project.token, zip)).status).toBe(201)
    const tenant = { database, project_id: project.id }
    const skills = await queryRows<{ id: string }>(
      service.databaseUrl,
      'SELECT id FROM skills WHERE project_id = $1',
      [project.id],
    )
    const file = await exported(project, async () => {
      await erasure.erase(tenant, 'session', [parent.id, child.id])
      await erasure.erase(
        tenant,
        'skill',
        skills.map(({ id }) => id),
      )
      await erasure.eraseUser(tenant, 'ada')
    })
    const copy = await imported(file)
    expect(copy.conflicts).toEqual([])
    // On a cluster, the machine that has the project is seen as it is when that is first asked, which may be later.
    if (!isCluster)
      expect(copy.tallies).toMatchObject({
        sessions: { stored: 2 },
        skills: { stored: 1 },
        users: { stored: 1 },
      })
    expect(await findingsIn(copy.project)).toEqual([])
  })

  it('of a project in which a session is being deleted leaves nothing of it where it is imported', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const parent = await insertLargeLog(service.databaseUrl, project.id, 2_500, 20)
    const child = await newSessionLog(api, { user: 'ada', parent })
    expectOk(await child.addEvent('note', { n: 1 }))
    const stop = () => {
      throw new Error('killed')
    }
    const erased = erasure.erase({ database, project_id: project.id }, 'session', [parent], { onStep: stop })
    await expect(erased).rejects.toThrow('killed')
    const copy = await imported(await exported(project))
    expect(await findingsIn(copy.project)).toEqual([])
    for (const table of ['sessions', 'session_heads', 'entries', 'erased_sessions'])
      expect(
        await queryRows(service.databaseUrl, `SELECT 1 FROM ${table} WHERE project_id = $1`, [
          copy.project.id,
        ]),
      ).toEqual([])
    // What was left is finished here as well.
    await erasure.eraseAllRemains({ database, project_id: project.id })
  })

  it.each([
    ['are not there', 'DELETE FROM blob_chunks WHERE project_id = $1 AND n = 1'],
    ['are others', "UPDATE blob_chunks SET data = '?' WHERE project_id = $1 AND n = 1"],
  ])('of a blob whose bytes %s says so, and the rest is imported', async (_how, damage) => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const log = await newSessionLog(api, {})
    const [lost, kept] = [newBytes(CHUNK_BYTES + 1), newBytes(10)]
    for (const bytes of [lost, kept]) {
      expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
      expectOk(await log.addEvent('note', reference(bytes)))
    }
    await execute(service.databaseUrl, damage, [project.id])
    const copy = await imported(await exported(project))
    expect(copy.conflicts).toEqual([
      expect.stringMatching(
        `^blob ${sha256Of(lost)}: line \\d+: its bytes were lost before the file was written`,
      ),
    ])
    expect(copy.tallies).toMatchObject({ entries: { stored: 2 }, blobs: { stored: 1, known: 0 } })
    expect(await findingsIn(copy.project)).toEqual(['blob_unreferenced: seq 1'])
  })
})

it('a verification finds an entry, and input to come, that name a blob in a project that has none', async () => {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = await newSessionLog(api)
  const bytes = newBytes(10)
  expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
  expectOk(await log.addEvent('note', reference(bytes)))
  const body = { mode: 'queue', kind: 'event', type: 'go', data: reference(bytes) }
  const input = await api.request<{ id: string }>('POST', `/api/v1/session/${log.id}/inbox`, { body })
  const { id } = expectOk(input, 201)
  expect(await findingsIn(project)).toEqual([])
  for (const table of ['blob_references', 'blobs'])
    await execute(service.databaseUrl, `DELETE FROM ${table} WHERE project_id = $1`, [project.id])
  expect((await findingsIn(project)).sort()).toEqual([
    'blob_unreferenced: seq 1',
    `input_blob_unreferenced: input ${id}`,
  ])
})
