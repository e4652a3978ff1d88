import { beforeAll, describe, expect, it } from 'vitest'
import { CHUNK_BYTES, getBlob, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { execute } from '../harness/sql.ts'
import { verifyDatabase } from '../harness/verification.ts'

const service = useSharedService()
const annals = useTransfers(service)

const alices = newBytes(2 * CHUNK_BYTES + 3)
const bobs = newBytes(10)
const unused = newBytes(20)
let project: Project
let alice: SessionLog

const reference = (bytes: Buffer) => ({ file: { annals_blob: sha256Of(bytes), media_type: 'image/png' } })

const statusesIn = (token: string) =>
  Promise.all(
    [alices, bobs, unused].map(
      async (bytes) => (await getBlob(service.node.url, token, sha256Of(bytes), { method: 'HEAD' })).status,
    ),
  )

beforeAll(async () => {
  project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  for (const bytes of [alices, bobs, unused, Buffer.alloc(0)])
    expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
  alice = await newSessionLog(api, { user: 'alice' })
  expectOk(await alice.addEvent('note', reference(alices)))
  const bob = await newSessionLog(api, { user: 'bob' })
  expectOk(await bob.addEvent('note', reference(bobs)))
})

describe('an export', () => {
  it('has the blobs and what refers to them; an import restores both, and once', async () => {
    const { path, body } = await annals.export(project.name)
    const copy = await service.newProject()
    await annals.import(path, copy.name)
    expect((await annals.export(copy.name)).body.sort()).toEqual(body.sort())
    await annals.import(path, copy.name)
    expect(await statusesIn(copy.token)).toEqual([200, 200, 200])
    const read = await getBlob(service.node.url, copy.token, sha256Of(alices))
    expect(Buffer.from(await read.arrayBuffer()).equals(alices)).toBe(true)
    expect((await annals.export(copy.name)).body.sort()).toEqual(body.sort())
    expect((await verify(copy)).findings).toEqual([])
    const api = await service.newClient({ token: copy.token })
    expectOk(await api.request('DELETE', '/api/v1/user/alice'))
    expect(await statusesIn(copy.token)).toEqual([404, 200, 200])
  })

  it.each([
    ['--user', () => 'alice'],
    ['--session', () => alice.id],
  ])('of one (%s) has the blobs that it refers to and no others', async (option, value) => {
    const { path } = await annals.export(project.name, option, value())
    const copy = await service.newProject()
    await annals.import(path, copy.name)
    expect(await statusesIn(copy.token)).toEqual([200, 404, 404])
  })

  it('keeps a blob that the target has already', async () => {
    const { path } = await annals.export(project.name)
    const copy = await service.newProject()
    expect((await putBlob(service.node.url, copy.token, alices)).status).toBe(201)
    expect(await annals.import(path, copy.name)).toMatch(/blobs/)
    expect((await verify(copy)).findings).toEqual([])
    expect(await statusesIn(copy.token)).toEqual([200, 200, 200])
  })
})

const verify = ({ id }: Project) => verifyDatabase(service.databaseUrl, '--project', id)

describe('annals verify', () => {
  it('finds a blob whose bytes are not those of its hash, and one that is kept for no entry', async () => {
    const damaged = await service.newProject()
    const bytes = newBytes(CHUNK_BYTES + 1)
    expect((await putBlob(service.node.url, damaged.token, bytes)).status).toBe(201)
    const log = await newSessionLog(await service.newClient({ token: damaged.token }))
    expectOk(await log.addEvent('note', reference(bytes)))
    expect((await verify(damaged)).findings).toEqual([])
    await execute(service.databaseUrl, 'UPDATE blob_chunks SET data = $2 WHERE project_id = $1 AND n = 1', [
      damaged.id,
      Buffer.from('?'),
    ])
    await execute(service.databaseUrl, 'UPDATE blob_references SET seq = 9 WHERE project_id = $1', [
      damaged.id,
    ])
    const checks = (await verify(damaged)).findings.map(({ check }) => check)
    expect(checks.sort()).toEqual(['blob_bytes', 'blob_reference_without_entry', 'blob_unreferenced'])
  })

  it('finds an entry whose reference is gone, and a reference whose entry names another blob', async () => {
    const damaged = await service.newProject()
    const log = await newSessionLog(await service.newClient({ token: damaged.token }))
    const [one, other] = [newBytes(10), newBytes(10)]
    for (const bytes of [one, other])
      expect((await putBlob(service.node.url, damaged.token, bytes)).status).toBe(201)
    expectOk(await log.addEvent('note', { files: [[{ more: reference(one) }]] }))
    expectOk(await log.addEvent('note', { annals_blob_of: 'nothing' }))
    expect((await verify(damaged)).findings).toEqual([])
    await execute(service.databaseUrl, 'UPDATE blob_references SET sha256 = $2 WHERE project_id = $1', [
      damaged.id,
      sha256Of(other),
    ])
    const found = (await verify(damaged)).findings.map(({ check, place }) => `${check}: ${place}`)
    expect(found.sort()).toEqual(['blob_reference_without_entry: seq 1', 'blob_unreferenced: seq 1'])
  })
})
