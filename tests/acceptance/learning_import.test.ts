import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { expect, it, vi } from 'vitest'
import { gullible, honest } from '../../lab/model_scripts.ts'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { agent, calls, learnerOf, planted, result, useModelProjects, user } from '../harness/model_project.ts'
import { useSharedService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'

const service = useSharedService()
const transfers = useTransfers(service)
const newModelProject = useModelProjects(service)

const post = (api: ApiClient, path: string, body: unknown) => api.request('POST', `/api/v1${path}`, { body })

async function callFailing(api: ApiClient, session: string, tool: string) {
  const entries = [calls(tool, {}, tool), result(`Error: ${tool} is closed`, tool)]
  const body = { entries: entries.map((blob) => ({ kind: 'message', blob })) }
  expectOk(await post(api, `/session/${session}/entries`, body), 201)
}

async function learnt(api: ApiClient, space: string, session: string, seq: number) {
  await vi.waitFor(async () => {
    const path = `/api/v1/learning_spaces/${space}/sessions/${session}`
    expect(expectOk(await api.request('GET', path))).toMatchObject({ status: 'completed', learnt_seq: seq })
  }, 60_000)
}

it('a project that was imported goes on learning, from what was being read as from what is appended', async () => {
  const [project, copy] = [await service.newProject(), await service.newProject()]
  const api = await service.newClient({ token: project.token })
  const space = expectOk(await api.createLearningSpace({}), 201).id
  const session = expectOk(await api.createSession({}), 201).id
  await callFailing(api, session, 'book_flight')
  expectOk(await post(api, `/learning_spaces/${space}/learn`, { session_id: session }), 201)
  await learnt(api, space, session, 2)
  await execute(
    service.databaseUrl,
    "UPDATE space_sessions SET status = 'distilling', due_at = now() + interval '1 day' WHERE project_id = $1",
    [project.id],
  )
  const { path } = await transfers.export(project.name)
  await transfers.import(path, copy.name)
  const target = await service.newClient({ token: copy.token })
  await learnt(target, space, session, 2)
  await callFailing(target, session, 'cancel_flight')
  await learnt(target, space, session, 4)
  const statements = expectOk(
    await target.request<Page<{ text: string }>>('GET', `/api/v1/learning_spaces/${space}/statements`),
  )
  expect(statements.items.map(({ text }) => text).join()).toMatch(
    /book_flight.*cancel_flight|cancel_flight.*book_flight/,
  )
}, 360_000)

it('goes on learning from a session for as long as there is the space, whenever somebody last gave it one', async () => {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const space = expectOk(await api.createLearningSpace({}), 201).id
  const session = expectOk(await api.createSession({}), 201).id
  expectOk(await post(api, `/learning_spaces/${space}/learn`, { session_id: session }), 201)
  const wanted = await queryRows(
    service.databaseUrl,
    "SELECT consumer, used_at = 'infinity' AS for_good FROM project_consumers WHERE project_id = $1",
    [project.id],
  )
  expect(wanted).toEqual([{ consumer: 'learning', for_good: true }])
})

it('the ledger comes along: what was used stays known, and no input that was answered is sent again', async () => {
  const learner = await newModelProject(honest)
  const { api, model, project } = learner
  const space = await learner.newSpace('suggest')
  const session = await learner.reflected(space, await learner.addRun(space, 'ada', [user('Hello?')]))
  const { path } = await transfers.export(project.name)
  const copy = await service.newProject()
  const body = { model: { url: model.url, name: 'scripted' } }
  expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${copy.id}`, { body }))
  await transfers.import(path, copy.name)
  const ledger = ({ id }: { id: string }) =>
    queryRows(
      service.databaseUrl,
      'SELECT to_jsonb(c) - $2::text AS call FROM learning_calls c WHERE c.project_id = $1',
      [id, 'project_id'],
    )
  const [call, ...others] = await ledger(project)
  expect([call!.call, others]).toMatchObject([{ step: 'reflect', status: 'applied', attempts: 1 }, []])
  expect(await ledger(copy)).toEqual([call])
  const target = await service.newClient({ token: copy.token })
  const usage = `/api/v1/learning_spaces/${space}/usage`
  expect(expectOk(await target.request('GET', usage))).toEqual(expectOk(await api.request('GET', usage)))
  await execute(
    service.databaseUrl,
    'UPDATE space_sessions SET reflected_seq = 0 WHERE project_id = $1 AND session_id = $2',
    [copy.id, session],
  )
  const again = await post(target, `/learning_spaces/${space}/learn`, { session_id: session, now: true })
  expectOk(again, 201)
  await learnerOf(service.databaseUrl, target, copy.id).reflected(space, session)
  expect(model.asked).toHaveLength(1)
  const verified = await transfers.run('verify', '--project', copy.name)
  expect(verified.code, verified.stdout).toBe(0)
})

it('reads what an older version exported, which did not say what a statement was worded from: the ledger does', async () => {
  const { newSpace, addRun, reflected, project } = await newModelProject(gullible)
  const space = await newSpace('suggest')
  const cites = [{ run: 'A', seq: 1, quote: 'I looked it up' }]
  const statement = { kind: 'fact', text: 'Refunds of basic fares need an insurance.', tool: null, cites }
  const session = await addRun(space, 'ada', [agent('I looked it up'), user(planted(statement))])
  await reflected(space, session)
  const { lines } = await transfers.export(project.name)
  const older = lines.slice(0, -1).map((line) => `${line.replace(/"origins":\{[^}]*\},/, '')}\n`)
  expect(older.join('')).not.toContain('origins')
  const sha256 = createHash('sha256').update(older.join('')).digest('hex')
  const path = transfers.newPath()
  await writeFile(path, [...older, `${JSON.stringify({ kind: 'end', lines: older.length, sha256 })}\n`])
  const copy = await service.newProject()
  await transfers.import(path, copy.name)
  const origins = 'SELECT origins FROM statements WHERE project_id = $1'
  expect(await queryRows(service.databaseUrl, origins, [copy.id])).toEqual([{ origins: { [session]: true } }])
})

it('a call of a tool is counted once for each space, wherever they are, and what is no count is left out', async () => {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const session = expectOk(await api.createSession({}), 201).id
  const newSpace = async () => {
    const space = expectOk(await api.createLearningSpace({}), 201).id
    expectOk(await post(api, `/learning_spaces/${space}/learn`, { session_id: session }), 201)
    return space
  }
  for (let count = 0; count < 3; count++) await callFailing(api, session, 'book_flight')
  const first = await newSpace()
  await learnt(api, first, session, 6)
  const moved = `UPDATE space_sessions SET learnt_seq = 2, tools = '{"book_flight":1,"x":"y"}' WHERE project_id = $1`
  await execute(service.databaseUrl, moved, [project.id])
  const second = await newSpace()
  for (const space of [first, second]) await learnt(api, space, session, 6)
  const tools = 'SELECT tools FROM space_sessions WHERE project_id = $1'
  expect(await queryRows(service.databaseUrl, tools, [project.id])).toEqual(
    [first, second].map(() => ({ tools: { book_flight: 3 } })),
  )
})
