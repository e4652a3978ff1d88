import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { ANNALS_BIN } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Exported, useTransfers } from '../harness/exports.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'

const service = useSharedService()
const annals = useTransfers(service)
let source: Project
let api: ApiClient
let sessions: string[]
let exported: Exported

const append = async (client: ApiClient, session: string, n: number) =>
  expectOk(await client.appendEvent(session, { type: 'tick', data: { n } }))

beforeAll(async () => {
  source = await service.newProject()
  api = await service.newClient({ token: source.token })
  sessions = []
  for (const user of ['a', 'b']) {
    const { id } = expectOk(await api.createSession({ user }), 201)
    sessions.push(id)
    for (const n of [1, 2, 3]) await append(api, id, n)
  }
  expectOk(await api.createLearningSpace({ user: 'a', meta: {} }), 201)
  exported = await annals.export(source.name)
})

/** What an import of the bytes into a new project says; nothing of them may be stored. */
async function expectRefused(bytes: Buffer): Promise<string> {
  const path = annals.newPath()
  await writeFile(path, bytes)
  const target = await service.newProject()
  const result = await annals.run('import', path, '--project', target.name)
  expect(result.code).toBe(1)
  expect((await annals.export(target.name)).body).toEqual([])
  return result.stderr
}

describe('a file that is not as it was written is refused, and nothing of it is stored:', () => {
  it('cut off', async () => {
    const bytes = await readFile(exported.path)
    expect(await expectRefused(bytes.subarray(0, bytes.lastIndexOf('{"kind":"end"')))).toContain(
      'it was cut off',
    )
    expect(await expectRefused(bytes.subarray(0, bytes.length >> 1))).toMatch(/^annals: Line \d+: /)
  })

  it('with another digit', async () => {
    const bytes = await readFile(exported.path)
    const at = bytes.lastIndexOf('"n": 3')
    bytes[at + 5] = '4'.charCodeAt(0)
    expect(await expectRefused(bytes)).toContain('the checksum does not match')
  })

  it('that is none', async () => {
    expect(await expectRefused(Buffer.from('{"a":1}\n'))).toContain('Line 1: this is not the header')
    const result = await annals.run('import', annals.newPath(), '--project', source.name)
    expect(result.stderr).toMatch(/^annals: .* cannot be read \(ENOENT/)
  })
})

it('a circle of parents that closes only with what is here already is refused', async () => {
  const from = await service.newProject()
  const client = await service.newClient({ token: from.token })
  const [above, below] = ['a', 'b'].map(() => randomUUID())
  expectOk(await client.createSession({ use_uuid: above, user: 'a' }), 201)
  expectOk(await client.createSession({ use_uuid: below, user: 'b', parent: above }), 201)
  const first = await annals.export(from.name, '--user', 'b')
  const turn = 'UPDATE sessions SET parent_id = $3 WHERE project_id = $1 AND id = $2'
  await execute(service.databaseUrl, turn, [from.id, below, null])
  await execute(service.databaseUrl, turn, [from.id, above, below])
  const second = await annals.export(from.name, '--user', 'a')
  const target = await service.newProject()
  // Each file by itself may be imported, in any order.
  for (const file of [second, first]) await annals.import(file.path, (await service.newProject()).name)
  await annals.import(first.path, target.name)
  const before = (await annals.export(target.name)).body
  for (const options of [[], ['--dry-run']]) {
    const { code, stderr } = await annals.run('import', second.path, '--project', target.name, ...options)
    expect(stderr).toMatch(/Line \d+: parent_id must not be a session that stands below it in the database/)
    expect(code).toBe(1)
  }
  expect((await annals.export(target.name)).body).toEqual(before)
})

describe('a session that is here already', () => {
  let target: Project
  let copy: ApiClient

  beforeAll(async () => {
    target = await service.newProject()
    copy = await service.newClient({ token: target.token })
    await annals.import(exported.path, target.name)
  })

  it('and grew here is left alone', async () => {
    await append(copy, sessions[0]!, 100)
    const before = (await annals.export(target.name)).body
    expect(await annals.import(exported.path, target.name)).toContain('Imported 0 sessions, 0 entries.')
    expect((await annals.export(target.name)).body).toEqual(before)
  })

  it('gets what its export has more, and is a conflict where that differs', async () => {
    for (const id of sessions) await append(api, id, 4)
    const grown = await annals.export(source.name)
    const before = await annals.export(target.name, '--session', sessions[0]!)
    for (const args of [['--dry-run'], []]) {
      const result = await annals.run('import', grown.path, '--project', target.name, ...args)
      expect(result.code).toBe(1)
      expect(result.stderr).toContain(`conflict: session ${sessions[0]}: it has another entry at seq 4.`)
      expect(result.stderr).not.toContain(sessions[1])
      expect(result.stdout).toMatch(/mport(ed)? 0 sessions, 1 entry\./)
    }
    expect((await annals.export(target.name, '--session', sessions[0]!)).body).toEqual(before.body)
    const [there, here] = [source, target].map(({ name }) => annals.export(name, '--session', sessions[1]!))
    expect((await here!).body).toEqual((await there!).body)
  })

  it('but was made otherwise is a conflict', async () => {
    const other = await service.newProject()
    const there = await service.newClient({ token: other.token })
    expectOk(await there.createSession({ use_uuid: sessions[0] }), 201)
    const result = await annals.run('import', exported.path, '--project', other.name)
    expect(result.code).toBe(1)
    expect(result.stderr).toContain(`conflict: session ${sessions[0]}: it was created at another time`)
    expect(result.stdout).toMatch(/Imported 2 users, 1 learning space, 1 session, 3 entries\./)
    expect(expectOk(await there.listEvents(sessions[0]!)).items).toEqual([])
  })
})

describe('through pipes', () => {
  const child = (args: string[], stdin: number | 'ignore') =>
    spawn(process.execPath, [ANNALS_BIN, ...args], {
      env: { ...process.env, DATABASE_URL: service.databaseUrl },
      stdio: [stdin, 'pipe', 'pipe'],
    })

  it('an import reads stdin, and tells of a bad checksum at the end', async () => {
    const target = await service.newProject()
    const changed = annals.newPath()
    await writeFile(changed, (await readFile(exported.path, 'utf8')).replace('"n": 3', '"n": 5'))
    const codes: Array<number | null> = []
    for (const path of [exported.path, changed]) {
      const file = await open(path)
      const importing = child(['import', '-', '--project', target.name], file.fd)
      importing.stdout!.resume()
      importing.stderr!.resume()
      codes.push((await once(importing, 'close'))[0] as number | null)
      await file.close()
    }
    expect(codes).toEqual([0, 1])
    expect((await annals.export(target.name)).body).toEqual(exported.body)
  })

  it('an export ends quietly when its reader has seen enough', async () => {
    const exporting = child(['export', '--project', source.name], 'ignore')
    let stderr = ''
    exporting.stderr!.on('data', (data) => {
      stderr += data
    })
    exporting.stdout!.destroy()
    const [code] = await once(exporting, 'close')
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
  })
})
