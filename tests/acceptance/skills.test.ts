import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { errorOf } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { skillMd, skillZip, uploadSkill, zipOf } from '../harness/skills.ts'
import { queryRows } from '../harness/sql.ts'

const service = useSharedService()
const annals = useTransfers(service)
let project: Project
let api: ApiClient

interface Skill {
  id: string
  name: string
  description: string
  source: string
  user_id: string | null
  meta: object
  file_index: { path: string; mime: string; bytes: number; sha256: string }[]
}
interface File {
  content: { type: string; raw: string } | null
  url: string | null
}

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const get = <T = Record<string, unknown>>(path: string) => api.request<T>('GET', `/api/v1${path}`)
const upload = (zip: Buffer, fields?: Record<string, string>, token = project.token) =>
  uploadSkill(service.node.url, token, zip, fields)
const dataOf = async (response: Response) => ((await response.json()) as { data: Skill }).data
const fileOf = (id: string, path: string) =>
  get<File>(`/agent_skills/${id}/file?file_path=${encodeURIComponent(path)}`)
const downloadOf = async (id: string) => {
  const url = `${service.secondNode.url}/api/v1/agent_skills/${id}/download_zip`
  const response = await fetch(url, { headers: { Authorization: `Bearer ${project.token}` } })
  return { type: response.headers.get('content-type'), zip: Buffer.from(await response.arrayBuffer()) }
}
/** Blobs that the project has. */
const blobsOf = async ({ id }: Project) =>
  Number(
    (
      await queryRows<{ n: string }>(
        service.databaseUrl,
        'SELECT count(*) AS n FROM blobs WHERE project_id = $1',
        [id],
      )
    )[0]!.n,
  )

describe('a skill that somebody wrote', () => {
  it('is stored with its files, listed, read file by file, and comes back as a zip of the same skill', async () => {
    const picture = randomBytes(300_000)
    const files = {
      'scripts/run.py': 'print("é")\n',
      'data/a.json': '{"a":1}',
      'table.csv': 'a,b\n',
      'art/logo.png': picture,
      LICENSE: 'MIT\n',
    }
    const meta = '{"n":12345678901234567890}'
    const stored = await upload(skillZip('fill-forms', files), { user: 'ada', meta })
    expect(stored.status).toBe(201)
    const skill = await dataOf(stored)
    expect(skill).toMatchObject({
      name: 'fill-forms',
      description: 'What fill-forms is for.',
      source: 'written',
    })
    expect(skill.file_index.map(({ path, mime, bytes }) => [path, mime, bytes])).toEqual([
      ['LICENSE', 'text/plain', 4],
      ['SKILL.md', 'text/markdown', Buffer.byteLength(skillMd('fill-forms'))],
      ['art/logo.png', 'image/png', picture.length],
      ['data/a.json', 'application/json', 7],
      ['scripts/run.py', 'text/plain', 12],
      ['table.csv', 'text/csv', 4],
    ])
    expect(expectOk(await get<Skill>(`/agent_skills/${skill.id}`))).toEqual(skill)
    expect(JSON.stringify(skill)).toContain('fill-forms')
    const raw = await fetch(`${service.node.url}/api/v1/agent_skills/${skill.id}`, {
      headers: { Authorization: `Bearer ${project.token}` },
    })
    expect(await raw.text()).toContain('12345678901234567890')
    const of_ada = expectOk(await get<Page<Skill>>('/agent_skills?user=ada&limit=100')).items
    expect(of_ada.map(({ id }) => id)).toEqual([skill.id])
    expect(expectOk(await get<Page<Skill>>('/agent_skills?user=nobody')).items).toEqual([])

    const contents = await Promise.all(Object.keys(files).map((path) => fileOf(skill.id, path)))
    expect(contents.map((file) => expectOk(file).content)).toEqual([
      { type: 'code', raw: files['scripts/run.py'] },
      { type: 'json', raw: files['data/a.json'] },
      { type: 'csv', raw: files['table.csv'] },
      null,
      { type: 'text', raw: files.LICENSE },
    ])
    const urls = contents.map((file) => expectOk(file).url)
    expect(urls.map((url) => url !== null)).toEqual([false, false, false, true, false])
    const bytes = await fetch(urls[3]!.replace(service.node.url, service.secondNode.url))
    expect(Buffer.from(await bytes.arrayBuffer()).equals(picture)).toBe(true)
    const { type, zip } = await downloadOf(skill.id)
    expect(type).toBe('application/zip')
    const again = await upload(zip, { user: 'ada', meta })
    expect([again.status, (await dataOf(again)).id]).toEqual([200, skill.id])
    expectOk(await get(`/user/ada/resources`))
  })

  it('may be in the only folder of the zip, as macOS and Git make it', async () => {
    const zip = zipOf([
      { path: 'my-skill/', content: '', method: 0 },
      {
        path: 'my-skill/skill.md',
        content: `\uFEFF${skillMd('my-skill', 'metadata:\n  version: "1.0"\n').replaceAll('\n', '\r\n')}`,
      },
      { path: '__MACOSX/my-skill/._skill.md', content: 'x' },
      { path: 'my-skill/.DS_Store', content: 'x' },
      { path: 'my-skill/docs/a.md', content: 'a' },
    ])
    const skill = await dataOf(await upload(zip))
    expect(skill.file_index.map(({ path }) => path)).toEqual(['docs/a.md', 'skill.md'])
  })

  it('is stored once, however often and at once it is sent; another one of its name and owner is refused', async () => {
    const zip = skillZip('once', { 'a.bin': randomBytes(1_000) })
    const sent = await Promise.all([1, 2, 3, 4].map(() => upload(zip, { user: 'bob' })))
    const ids = new Set((await Promise.all(sent.map(dataOf))).map(({ id }) => id))
    expect(ids.size).toBe(1)
    expect(sent.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 201])
    for (const [fields, files] of [
      [{ user: 'bob', meta: '{"a":1}' }, {}],
      [{ user: 'bob' }, { 'b.md': 'b' }],
    ] as const)
      expect(await errorOf(await upload(skillZip('once', files), fields))).toMatchObject({
        status: 409,
        error: 'skill_exists',
      })
    expect((await upload(skillZip('once'))).status).toBe(201)
  })

  it('is deleted with its bytes, and with its user; then others keep what they share', async () => {
    const own = await service.newProject()
    const shared = Buffer.concat([Buffer.from([0xff]), randomBytes(9)])
    const one = await dataOf(await upload(skillZip('one', { 'a.bin': shared }), { user: 'eve' }, own.token))
    const two = await dataOf(await upload(skillZip('two', { 'a.bin': shared }), {}, own.token))
    expect(await blobsOf(own)).toBe(3)
    const client = await service.newClient({ token: own.token })
    const { url } = expectOk(
      await client.request<File>('GET', `/api/v1/agent_skills/${one.id}/file?file_path=a.bin`),
    )
    expect((await fetch(url!)).status).toBe(200)
    const receipt = expectOk(
      await client.request<{ deleted: Record<string, number> }>('DELETE', '/api/v1/user/eve'),
    )
    expect(receipt.deleted).toMatchObject({ skills: 1, blobs: 1 })
    expect((await fetch(url!)).status).toBe(404)
    expectError(await client.request('GET', `/api/v1/agent_skills/${one.id}`), 404, 'skill_not_found')
    expect(await blobsOf(own)).toBe(2)
    expectOk(await client.request('DELETE', `/api/v1/agent_skills/${two.id}`))
    expectError(await client.request('DELETE', `/api/v1/agent_skills/${two.id}`), 404, 'skill_not_found')
    expect(await blobsOf(own)).toBe(0)
  })

  it('counts in the quota of blobs, and nobody else reaches it', async () => {
    const own = await service.newProject()
    await service
      .adminClient()
      .request('PATCH', `/admin/v1/projects/${own.id}`, { body: { max_blob_bytes: 1_000 } })
    expect(
      await errorOf(await upload(skillZip('large', { 'a.bin': randomBytes(2_000) }), {}, own.token)),
    ).toMatchObject({ status: 403, error: 'quota_exceeded' })
    const skill = await dataOf(await upload(skillZip('secret')))
    const other = await service.newClient({ token: own.token })
    for (const path of ['', '/file?file_path=SKILL.md', '/download_zip'])
      expectError(
        await other.request('GET', `/api/v1/agent_skills/${skill.id}${path}`),
        404,
        'skill_not_found',
      )
    expectError(await other.request('DELETE', `/api/v1/agent_skills/${skill.id}`), 404, 'skill_not_found')
    expectError(await fileOf(skill.id, '../SKILL.md'), 404, 'skill_file_not_found')
  })

  it('whose bytes go away while it is downloaded ends that download, and nothing else', async () => {
    const own = await service.newProject()
    const zip = skillZip('fading', { 'z.bin': randomBytes(50_000) })
    const { id, file_index } = await dataOf(await upload(zip, undefined, own.token))
    const { sha256 } = file_index.find(({ path }) => path === 'z.bin')!
    await queryRows(
      service.databaseUrl,
      `DELETE FROM blob_chunks c USING blobs b WHERE b.project_id = $1 AND b.sha256 = $2
         AND c.project_id = $1 AND c.blob_id = b.id`,
      [own.id, sha256],
    )
    const headers = { Authorization: `Bearer ${own.token}` }
    const url = `${service.node.url}/api/v1/agent_skills/${id}`
    const download = await fetch(`${url}/download_zip`, { headers })
    await expect(download.arrayBuffer()).rejects.toThrow('terminated')
    expect(await fetch(url, { headers })).toMatchObject({ status: 200 })
  })

  it('comes back as a zip, whatever the clock said when it was stored', async () => {
    const { id } = await dataOf(await upload(skillZip('timeless')))
    const before = downloadOf(id)
    expect((await before).zip.length).toBeGreaterThan(100)
    for (const year of ['0001', '1969', '9999']) {
      await queryRows(service.databaseUrl, 'UPDATE skills SET created_at = $1 WHERE id = $2', [
        `${year}-06-01T00:00:00Z`,
        id,
      ])
      expect((await downloadOf(id)).zip.length, year).toBe((await before).zip.length)
    }
  })

  it('survives an export and an import, and a verification finds it whole', async () => {
    const from = await service.newProject()
    const skill = await dataOf(
      await upload(skillZip('moved', { 'a.bin': randomBytes(5_000) }), { user: 'zoe' }, from.token),
    )
    const client = await service.newClient({ token: from.token })
    const space = expectOk(await client.createLearningSpace({ user: 'zoe' }), 201).id
    expectOk(
      await client.request('POST', `/api/v1/learning_spaces/${space}/skills`, {
        body: { skill_id: skill.id },
      }),
      201,
    )
    for (const scope of [[], ['--user', 'zoe']]) {
      const { path } = await annals.export(from.id, ...scope)
      const to = await service.newProject()
      await annals.import(path, to.id)
      const verified = await annals.run('verify', '--project', to.id)
      expect(verified.code, verified.stdout).toBe(0)
      const there = await service.newClient({ token: to.token })
      const restored = expectOk(
        await there.request<Skill[]>('GET', `/api/v1/learning_spaces/${space}/skills`),
      )
      expect(restored.map(({ id, file_index }) => ({ id, file_index }))).toEqual([
        { id: skill.id, file_index: skill.file_index },
      ])
    }
  })
})
