import { expect, it } from 'vitest'
import { honest } from '../../lab/model_scripts.ts'
import { runCommand } from '../harness/command_process.ts'
import { learnerOf, user, useScriptedModels } from '../harness/model_project.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const newModel = useScriptedModels()

it('a project is given a model, its key and its quota by the command line, learns with it, and is given the service’s again', async () => {
  const project = await service.newProject()
  const model = await newModel(honest)
  const set = async (options: string[], input?: string) =>
    runCommand(['project', 'set', project.name, ...options], { DATABASE_URL: service.databaseUrl }, input)
  const given = ['--model', 'scripted', '--model-url', model.url, '--max-model-tokens', '50000', '--json']
  const { code, stdout, stderr } = await set([...given, '--model-key'], 'secret-key-of-test\n')
  expect(code, stderr).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    model: { url: model.url, name: 'scripted' },
    max_model_tokens_per_day: 50_000,
  })
  expect(stdout + stderr).not.toContain('secret-key-of-test')
  const api = await service.newClient({ token: project.token })
  const { newSpace, addRun, reflected } = learnerOf(service.databaseUrl, api, project.id)
  const space = await newSpace('suggest')
  await reflected(space, await addRun(space, 'ada', [user('Hello?')], { reward: 1 }))
  expect(model.asked[0]!.key).toBe('secret-key-of-test')
  for (const wrong of [['--model', 'm'], ['--model-key'], ['--model', 'm', '--model-url', 'ftp://a']])
    expect((await set(wrong, 'k')).code).toBe(2)
  const without = await set(['--model', 'none', '--max-model-tokens', 'none', '--json'])
  expect(JSON.parse(without.stdout)).toMatchObject({ model: null, max_model_tokens_per_day: null })
})

it('a project is given the length of a context from which on it is summarised, and none again', async () => {
  const project = await service.newProject()
  const set = (tokens: string) =>
    runCommand(['project', 'set', project.name, '--auto-compact-tokens', tokens], {
      DATABASE_URL: service.databaseUrl,
    })
  expect((await set('100000')).stdout).toMatch(/^auto_compact_tokens +100000$/m)
  expect(await set('3999')).toMatchObject({ code: 2, stderr: expect.stringContaining('from 4000') })
  expect((await set('none')).stdout).not.toContain('auto_compact_tokens')
})

it('a project is given words for outcomes, and the command prints what is set, one setting on a line', async () => {
  const project = await service.newProject()
  const set = (outcomes: string) =>
    runCommand(['project', 'set', project.name, '--outcomes', outcomes], {
      DATABASE_URL: service.databaseUrl,
    })
  const { stdout } = await set('submitted=passed,gave up=failed')
  expect(stdout).toMatch(/^name +\S+\nid +\S+\ncreated_at +\S+\noutcomes +gave up=failed submitted=passed$/)
  for (const wrong of ['submitted', 'submitted=good', `${'x'.repeat(41)}=passed`])
    expect(await set(wrong)).toMatchObject({ code: 2, stderr: expect.stringContaining('--outcomes') })
  expect((await set('none')).stdout).not.toContain('outcomes')
})
