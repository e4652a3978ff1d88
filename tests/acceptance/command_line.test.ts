import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { runAnnals } from '../harness/annals_process.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectError, expectOk, UUID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

interface Created {
  project: { id: string; name: string }
  token: string
}

const service = useSharedService()
let name: string
let created: Created

const annals = (...args: string[]) => runCommand(args, { DATABASE_URL: service.databaseUrl })
async function json<T>(...args: string[]): Promise<T> {
  const result = await annals(...args, '--json')
  expect(result.code, result.stderr).toBe(0)
  return JSON.parse(result.stdout) as T
}

beforeAll(async () => {
  name = `cli-${randomBytes(8).toString('hex')}`
  created = await json<Created>('project', 'create', name)
})

describe('annals project', () => {
  it('create makes a project whose token opens it at a running service', async () => {
    expect(created).toMatchObject({ project: { id: expect.stringMatching(UUID), name } })
    const api = await service.newClient({ token: created.token })
    expect(expectOk(await api.createSession({}), 201).project_id).toBe(created.project.id)
  })

  it('create of a name that is there fails and says so', async () => {
    const result = await annals('project', 'create', name)
    expect(result.code).not.toBe(0)
    expect(result.stderr).toContain(name)
    expect(result.stderr).not.toMatch(/^\s+at /m)
  })

  it('create shows no escape sequence of a name to the terminal', async () => {
    const { stdout } = await annals('project', 'create', `${name} \u001b[31mred`)
    expect(stdout).toContain(`Created project ${name} \\u001b[31mred (`)
  })

  it('list shows it, for people and as JSON, without the token', async () => {
    const forPeople = await annals('project', 'list')
    expect(forPeople.code).toBe(0)
    expect(forPeople.stdout).toContain(name)
    const asJson = await annals('project', 'list', '--json')
    expect(asJson.stdout).toContain(created.project.id)
    expect(JSON.parse(asJson.stdout)).toBeTypeOf('object')
    expect(forPeople.stdout + asJson.stdout).not.toContain(created.token)
  })
})

describe('annals token', () => {
  it('create, list and revoke tokens', async () => {
    const args = [
      '--project',
      name,
      '--name',
      'reader',
      '--scopes',
      'read',
      '--expires-at',
      '2999-01-01T00:00:00Z',
    ]
    const { id, token } = await json<{ id: string; token: string }>('token', 'create', ...args)
    const reader = await service.newClient({ token })
    expectOk(await reader.listSessions())
    expectError(await reader.createSession({}), 403, 'insufficient_scope')

    const list = await annals('token', 'list', '--project', created.project.id, '--json')
    expect(list.stdout).toContain(id)
    expect(list.stdout).toContain('reader')
    expect(list.stdout).not.toContain(token)

    expect((await annals('token', 'revoke', '--project', name, id)).code).toBe(0)
    await vi.waitFor(async () => expectError(await reader.listSessions(), 401, 'unauthorized'), 5_000)
    expectOk(await (await service.newClient({ token: created.token })).listSessions())
  })

  it.each<[string, () => string[], string]>([
    [
      'create for an unknown project',
      () => ['create', '--project', 'no-such-project', '--name', 'x'],
      'no-such-project',
    ],
    ['list of an unknown project', () => ['list', '--project', 'no-such-project'], 'no-such-project'],
    ['create without a name', () => ['create', '--project', name], '--name'],
    [
      'create with an unknown scope',
      () => ['create', '--project', name, '--name', 'x', '--scopes', 'root'],
      'scope',
    ],
    [
      'create with an expiry that is no time',
      () => ['create', '--project', name, '--name', 'x', '--expires-at', 'tomorrow'],
      'expires-at',
    ],
    [
      'revoke of an unknown token',
      () => ['revoke', '--project', name, '01890a5d-ac96-774b-bcce-b302099a8057'],
      'token',
    ],
    ['revoke of an id that is none', () => ['revoke', '--project', name, 'x'], 'token'],
  ])('%s fails and says why', async (_case, args, word) => {
    const result = await annals('token', ...args())
    expect(result.code).toBeGreaterThan(0)
    expect(result.stderr).toContain(word)
    expect(result.stderr).not.toMatch(/^\s+at /m)
  })
})

describe('annals --help', () => {
  it.each<[string[], RegExp]>([
    [[], /serve[\s\S]*migrate|migrate[\s\S]*serve/],
    [['serve'], /DATABASE_URL[\s\S]*ANNALS_BODY_BYTES_MAX/],
    [['migrate'], /DATABASE_URL|database/i],
    [['project'], /create[\s\S]*list/],
    [['project', 'create'], /name/i],
    [['project', 'list'], /--json/],
    [['token'], /create[\s\S]*list[\s\S]*revoke/],
    [['token', 'create'], /--project[\s\S]*--name|--name[\s\S]*--project/],
    [['token', 'list'], /--project/],
    [['token', 'revoke'], /--project/],
  ])('explains annals %s', async (command, expected) => {
    const result = await runCommand([...command, '--help'])
    expect(result.code).toBe(0)
    expect(result.stdout).toMatch(/Usage/i)
    expect(result.stdout).toMatch(expected)
  })
})

describe('annals with input that does not fit', () => {
  it.each<[string[], Record<string, string>, string]>([
    [['serve'], { PORT: 'eighty' }, 'PORT'],
    [['serve'], { PORT: '65536' }, 'PORT'],
    [['serve'], { PORT: '-1' }, 'PORT'],
    [['serve'], { DATABASE_URL: 'mysql://localhost/x' }, 'DATABASE_URL'],
    [['serve'], { ANNALS_BODY_BYTES_MAX: '1 MiB' }, 'ANNALS_BODY_BYTES_MAX'],
    [['serve'], { ANNALS_API_KEY: 'short' }, 'ANNALS_API_KEY'],
    [['serve'], { ANNALS_ADMIN_TOKEN: 'short' }, 'ANNALS_ADMIN_TOKEN'],
    [['serve'], { LOG_LEVEL: 'loud' }, 'LOG_LEVEL'],
    [['migrate'], { DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' }, 'DATABASE_URL'],
    [['serve'], { DATABASE_URL: 'postgresql://nobody:s3cret-word@127.0.0.1:1/none' }, 'DATABASE_URL'],
    [['no-such-command'], {}, 'no-such-command'],
    [['serve'], { DATABASE_URL: 'postgresql://nobody:s3cret-word/x@127.0.0.1:1/none' }, 'DATABASE_URL'],
    [['project', 'create'], {}, 'name'],
    [['project', 'create', ''], {}, 'name'],
    [['token', 'create', '--name', ''], {}, 'name'],
    [['console', '--url', 'x y'], {}, '--url'],
    [['restore', tmpdir()], {}, 'it is a directory'],
  ])('%s with %o fails with a sentence, not a stack', async (args, env, word) => {
    // What ends a service that starts is for its own process to show.
    const run = args[0] === 'serve' ? runAnnals : runCommand
    const result = await run(args, { DATABASE_URL: service.databaseUrl, ...env })
    expect(result.code).toBeGreaterThan(0)
    expect(result.code).not.toBe(70)
    expect(result.stderr).toContain(word)
    expect(result.stderr).not.toMatch(/^\s+at /m)
    expect(result.stdout + result.stderr).not.toMatch(/s3cret-word|: short/)
  })
})
