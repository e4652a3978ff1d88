import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { runAnnals } from '../harness/annals_process.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { runCommand } from '../harness/command_process.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const { annals, values } = useClientCommands(service)

describe('a session id on the command line', () => {
  it('may be the beginning of one that no other session has', async () => {
    const create = (id: string) => values('sessions', 'create', '--id', id)
    const id = `abcd1${randomUUID().slice(5)}`
    await create(id)
    const [entry] = await values('append', 'ABCD1', '--type', 'note', '--data', '{}')
    expect(entry).toMatchObject({ session_id: id, seq: 1 })
    expect(await annals(['append', 'abcd2', '--type', 'note', '--data', '{}'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('begins with abcd2'),
    })
    const other = `abcd1${randomUUID().slice(5)}`
    await create(other)
    const { code, stderr } = await annals(['show', 'abcd1'])
    expect(code).toBe(2)
    for (const one of [id, other]) expect(stderr).toContain(one)
    expect((await annals(['show', 'abc'])).code).toBe(2)
  })

  it('names some of the sessions that it may mean, and says that there are more', async () => {
    const ids = Array.from({ length: 6 }, (_, index) => `fedc${index}${randomUUID().slice(5)}`)
    for (const id of ids) await values('sessions', 'create', '--id', id)
    const { code, stderr } = await annals(['show', 'fedc'])
    expect(code).toBe(2)
    for (const id of ids.slice(0, 5)) expect(stderr).toContain(id)
    expect(stderr).not.toContain(ids[5])
    expect(stderr).toContain('and more')
  })
})

describe('--fields', () => {
  it('prints the named fields, also of nested objects, and null for what is not there; a field that nothing has is refused', async () => {
    const [session] = await values('sessions', 'create', '--user', 'fields', '--configs', 'agent=a')
    const args = [
      'sessions',
      'list',
      '--user',
      'fields',
      '--fields',
      'id,configs.agent,configs.env,parent_id',
    ]
    expect(await values(...args)).toEqual([
      { id: session!.id, 'configs.agent': 'a', 'configs.env': null, parent_id: null },
    ])
    const refused = await annals([...args.slice(0, -1), 'id,usr,toString'])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(/There is no field "usr"\. There are: id, /)
    expect(await values(...args.slice(0, -1), 'title,outcome,entries,tokens')).toEqual([
      { title: null, outcome: null, entries: 0, tokens: 0 },
    ])
    expect(await values('whoami')).toMatchObject([{ scopes: ['read', 'write'] }])
  })
})

describe('annals', () => {
  it('without a command, helps and says how to get started', async () => {
    const { code, stdout } = await runAnnals([], {})
    expect(code).toBe(0)
    expect(stdout).toMatch(/Usage[\s\S]*annals serve[\s\S]*annals demo/)
  })

  it.each([
    ['sess', 'annals sessions'],
    ['start', 'annals serve'],
    ['ls', 'annals sessions list'],
    ['shwo', 'show'],
  ])('suggests what "%s" may mean', async (word, meant) => {
    const { code, stderr } = await runCommand([word])
    expect(code).toBe(2)
    expect(stderr).toMatch(/did you mean/i)
    expect(stderr).toContain(meant)
  })

  it('says its version by the shortest name, and where help is after a mistake', async () => {
    const [short, long] = await Promise.all([runCommand(['-v']), runCommand(['--version'])])
    expect(short).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\s*$/) })
    expect(long.stdout).toBe(short.stdout)
    const { code, stderr } = await runCommand(['tools', '--limt', '3'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/\(see `(?:npx )?annals tools --help`\)/)
  })

  it('sorts a list by what is asked for', async () => {
    const user = 'sorted'
    const [older] = await values('sessions', 'create', '--user', user)
    const [newer] = await values('sessions', 'create', '--user', user)
    // The order is that of whole seconds.
    await new Promise((passed) => setTimeout(passed, 1_100))
    await values('append', String(older!.id), '--type', 'note', '--data', '{}')
    const ids = async (sort: string) =>
      (await values('sessions', 'list', '--user', user, '--sort', sort)).map(({ id }) => id)
    expect(await ids('created-at')).toEqual([newer!.id, older!.id])
    await expect.poll(() => ids('last-activity'), { timeout: 30_000 }).toEqual([older!.id, newer!.id])
  })

  it('creates an API key of the only project, which the service accepts', async () => {
    const alone = await runCommand(['key'], { DATABASE_URL: service.databaseUrl, LOG_LEVEL: 'silent' })
    // The shared service has a project for each test.
    expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('--project') })
    const { stdout, stderr } = await runCommand(['key', '--project', 'default'], {
      DATABASE_URL: service.databaseUrl,
    })
    const key = /^API key: (sk-\S+)$/m.exec(stdout)?.[1]
    expect(stderr).toContain('shown only this once')
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`${service.node.url}/api/v1/session`, { headers })).status).toBe(200)
  })
})
