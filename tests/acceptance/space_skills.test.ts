import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { skillZip, uploadSkill } from '../harness/skills.ts'

const service = useSharedService()
let project: Project
let api: ApiClient

interface Skill {
  id: string
  name: string
  description: string
  source: string
}
interface File {
  content: { raw: string } | null
}

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const get = <T = Record<string, unknown>>(path: string) => api.request<T>('GET', `/api/v1${path}`)
const send = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  api.request<T>(method, `/api/v1${path}`, body === undefined ? {} : { body })
const upload = (zip: Buffer, fields?: Record<string, string>) =>
  uploadSkill(service.node.url, project.token, zip, fields)
const dataOf = async (response: Response) => ((await response.json()) as { data: Skill }).data

describe('the skills of a learning space', () => {
  it('are included once, listed whole and excluded; a user’s space takes no other user’s', async () => {
    const skill = await dataOf(await upload(skillZip('included'), { user: 'cy' }))
    const space = expectOk(await api.createLearningSpace({ user: 'cy' }), 201).id
    const path = `/learning_spaces/${space}/skills`
    const record = expectOk(await send('POST', path, { skill_id: skill.id }), 201)
    expect(record).toMatchObject({ learning_space_id: space, skill_id: skill.id })
    expect(expectOk(await send('POST', path, { skill_id: skill.id }))).toEqual(record)
    expect(expectOk(await get<Skill[]>(path))).toEqual([skill])
    const others = expectOk(await api.createLearningSpace({ user: 'di' }), 201).id
    expectError(
      await send('POST', `/learning_spaces/${others}/skills`, { skill_id: skill.id }),
      409,
      'user_mismatch',
    )
    expectError(await send('POST', path, { skill_id: NOBODYS_ID }), 404, 'skill_not_found')
    expectError(
      await send('POST', `/learning_spaces/${NOBODYS_ID}/skills`, { skill_id: skill.id }),
      404,
      'learning_space_not_found',
    )
    for (let times = 0; times < 2; times++) expectOk(await send('DELETE', `${path}/${skill.id}`))
    expect(expectOk(await get<Skill[]>(path))).toEqual([])
    expectOk(await send('POST', path, { skill_id: skill.id }), 201)
    expectOk(await send('DELETE', `/agent_skills/${skill.id}`))
    expect(expectOk(await get<Skill[]>(path))).toEqual([])
  })

  it('are also those that it has learnt, once a statement is active: SKILL.md is made from these when it is read', async () => {
    const space = expectOk(await api.createLearningSpace({}), 201).id
    const path = `/learning_spaces/${space}/skills`
    const said = { text: 'Certificates cannot pay for changes.', skill: 'booking' }
    const statement = expectOk(
      await send<{ id: string }>('POST', `/learning_spaces/${space}/statements`, said),
      201,
    )
    const [skill] = expectOk(await get<Skill[]>(path))
    expect(skill).toMatchObject({ name: 'booking', source: 'learnt', learning_space_id: space })
    const listed = expectOk(await get<Page<Skill>>('/agent_skills?limit=200')).items.map(({ id }) => id)
    expect(listed).toContain(skill!.id)
    const raw = expectOk(await get<File>(`/agent_skills/${skill!.id}/file?file_path=SKILL.md`)).content!.raw
    expect(raw).toContain('name: booking')
    expect(raw).toContain(said.text)
    const url = `${service.secondNode.url}/api/v1/agent_skills/${skill!.id}/download_zip`
    const downloaded = await fetch(url, { headers: { Authorization: `Bearer ${project.token}` } })
    const zip = Buffer.from(await downloaded.arrayBuffer())
    expect((await dataOf(await upload(zip, { user: 'reader' }))).description).toBe(skill!.description)
    for (const refused of [
      send('POST', path, { skill_id: skill!.id }),
      send('DELETE', `${path}/${skill!.id}`),
      send('DELETE', `/agent_skills/${skill!.id}`),
    ])
      expectError(await refused, 409, 'skill_is_learnt')
    expectOk(await send('PATCH', `/statements/${statement.id}`, { state: 'retired' }))
    expect(expectOk(await get<Skill[]>(path))).toEqual([])
  })
})
