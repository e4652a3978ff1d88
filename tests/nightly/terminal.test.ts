import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ANNALS_BIN } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'
import { createEmptyDatabase, reasonForNoOwnDatabase } from '../harness/test_database.ts'

/** The `script` of util-linux gives a command a terminal of its own; that of other systems takes other options. */
const hasScript = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux') ?? false

const service = useSharedService()
const children: ChildProcess[] = []
let directory: string
let token: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-terminal-'))
  token = (await service.newProject()).token
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Runs a command on a terminal; `screen()` is all that it wrote there so far. */
function onTerminal(args: string[], more: Record<string, string> = {}) {
  const { PATH = '' } = process.env
  const quoted = [process.execPath, ANNALS_BIN, ...args].map((arg) => `'${arg}'`).join(' ')
  const child = spawn('script', ['-qec', `stty cols 80; ${quoted}`, '/dev/null'], {
    env: { PATH, HOME: directory, TERM: 'xterm', SHELL: '/bin/sh', ANNALS_URL: service.node.url, ...more },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  children.push(child)
  let screen = ''
  child.stdout.on('data', (chunk) => {
    screen += chunk
  })
  const exited = once(child, 'close').then(([code]) => code as number)
  return { screen: () => screen, type: (keys: string) => child.stdin.write(keys), exited }
}

describe.runIf(hasScript)('on a terminal', () => {
  it.skipIf(reasonForNoOwnDatabase() !== undefined).each([
    ['keeps its key in sight: requests are logged only if asked for', {}, 0],
    ['logs each request with LOG_LEVEL', { LOG_LEVEL: 'info' }, 3],
  ] as const)('a first start %s', async (_what, more, logged) => {
    const database = await createEmptyDatabase()
    const serve = onTerminal(['serve'], { ...more, PORT: '0', DATABASE_URL: database.url, NO_COLOR: '1' })
    try {
      await vi.waitFor(() => expect(serve.screen()).toContain('Ctrl-C stops'), 30_000)
      const [, url] = /ready at (http:\S+)/.exec(serve.screen())!
      const [, key] = /API key: (sk-\S+)/.exec(serve.screen())!
      for (let n = 0; n < 3; n += 1)
        expect(
          (await fetch(`${url}/api/v1/session`, { headers: { authorization: `Bearer ${key}` } })).status,
        ).toBe(200)
      const requests = () => serve.screen().match(/"route":"\/api\/v1\/session"/g) ?? []
      await vi.waitFor(() => expect(requests()).toHaveLength(logged), 10_000)
      serve.type('\u0003')
      await serve.exited
      expect(requests()).toHaveLength(logged)
      const printed = serve
        .screen()
        .split('\n')
        .filter((line) => !line.startsWith('{'))
      expect(printed.length).toBeLessThan(24)
      expect(serve.screen()).toContain(`Console: ${url}/console`)
      expect(serve.screen()).toContain('Try it:  annals demo')
    } finally {
      await database.drop()
    }
  })

  it('a list is a table in colour, unless colour is not wanted', async () => {
    const api = await service.newClient({ token })
    const { id } = expectOk(await api.createSession({ user: 'lena', configs: { agent: 'coder' } }), 201)
    const coloured = onTerminal(['sessions', 'list'], { ANNALS_API_KEY: token })
    expect(await coloured.exited).toBe(0)
    expect(coloured.screen()).toContain(`\u001b[36m${id.slice(0, 13)}\u001b[39m  lena`)
    const plain = onTerminal(['sessions', 'list'], { ANNALS_API_KEY: token, NO_COLOR: '1' })
    expect(await plain.exited).toBe(0)
    expect(plain.screen()).toContain(`${id.slice(0, 13)}  lena`)
    expect(plain.screen()).not.toContain('\u001b[')
  })

  it('what does not fit on the terminal goes to a pager, and what fits does not', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const entries = Array.from({ length: 30 }, (_, n) => ({ kind: 'event', type: `step-${n}`, data: {} }))
    const { id } = expectOk(await api.createSession({}), 201)
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
    const env = { ANNALS_API_KEY: project.token, NO_COLOR: '1', ANNALS_PAGER: "sed 's/^/paged: /'" }
    const shown = async (args: string[], more = {}) => {
      const terminal = onTerminal(['show', id, ...args], { ...env, ...more })
      expect(await terminal.exited).toBe(0)
      return terminal.screen().split(/\r?\n/)
    }
    const long = await shown([])
    expect(long.filter((line) => /^paged: .*step-\d+/.test(line))).toHaveLength(30)
    expect(long.filter((line) => line !== '' && !line.startsWith('paged: '))).toEqual([])
    for (const [args, more] of [
      [['--last', '2'], {}],
      [[], { ANNALS_PAGER: '' }],
      [[], { ANNALS_PAGER: '/nowhere/pager' }],
    ] as const) {
      const lines = await shown([...args], more)
      expect(lines.join('\n')).toContain('step-29')
      expect(lines.filter((line) => line.startsWith('paged: '))).toEqual([])
    }
  })

  it('usage is a table beside the quotas and one by day, which fit', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const { id } = expectOk(await api.createSession({}), 201)
    for (let n = 0; n < 2; n += 1) expectOk(await api.appendEvent(id, { type: 'note', data: { n } }))
    const quota = { body: { max_sessions: 5 } }
    expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, quota))
    await execute(
      service.databaseUrl,
      "INSERT INTO usage_days (project_id, day, entries, bytes, model_tokens) VALUES ($1, (now() AT TIME ZONE 'UTC')::date - 3, 1234567, 9876543210, 1000000)",
      [project.id],
    )
    const usage = onTerminal(['usage'], { ANNALS_API_KEY: project.token, NO_COLOR: '1' })
    expect(await usage.exited).toBe(0)
    const lines = usage.screen().split(/\r?\n/)
    const cells = lines.map((line) => line.split(/ {2,}/))
    expect(cells[0]).toEqual(['what', 'used', 'quota'])
    expect(cells).toContainEqual(['sessions', '1', '5'])
    expect(cells).toContainEqual(['entries', '2', 'none'])
    const [titles, today, before] = cells.slice(cells.findIndex(([title]) => title === 'day'))
    expect(titles).toEqual(['day', 'sessions', 'entries', 'bytes', 'blob_bytes', 'model_tokens'])
    expect(today!.slice(0, 3)).toEqual([expect.stringMatching(/^\d{4}-\d\d-\d\d$/), '1', '2'])
    expect(before!.slice(1)).toEqual(['0', '1,234,567', '9,876,543,210', '0', '1,000,000'])
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80)
  })

  it('pruning shows a bar from the first session to the last', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    for (let n = 0; n < 3; n += 1) expectOk(await api.createSession({}), 201)
    for (const set of ['sessions SET created_at', 'session_heads SET updated_at'])
      await execute(
        service.databaseUrl,
        `UPDATE ${set} = now() - interval '100 days' WHERE project_id = $1`,
        [project.id],
      )
    const prune = ['prune', '--older-than', '90d', '--project', project.name]
    const looking = onTerminal([...prune, '--dry-run'], { DATABASE_URL: service.databaseUrl })
    expect(await looking.exited).toBe(0)
    expect(looking.screen()).toMatch(/Looking \[.+\] 100 % \| 3 of 3 sessions/)
    const pruning = onTerminal(prune, { DATABASE_URL: service.databaseUrl })
    expect(await pruning.exited).toBe(0)
    expect(pruning.screen()).toMatch(/Pruning \[.+\] 0 % \| 0 of 3 sessions/)
    expect(pruning.screen()).toMatch(/Pruning \[.+\] 100 % \| 3 of 3 sessions/)
    expect(pruning.screen()).toContain('Deleted 3 sessions with 0 entries')
  })

  it('login takes the key without showing it', async () => {
    const login = onTerminal(['login'])
    await vi.waitFor(() => expect(login.screen()).toContain('API key for'), 10_000)
    login.type(`${token}\r`)
    expect(await login.exited, login.screen()).toBe(0)
    expect(login.screen()).toContain('Stored the profile')
    expect(login.screen()).not.toContain(token)
    const list = onTerminal(['sessions', 'list'])
    expect(await list.exited, list.screen()).toBe(0)
  })

  it('erasing a user asks for the name, and does nothing if another is typed', async () => {
    const api = await service.newClient({ token })
    expectOk(await api.createSession({ user: 'omar' }), 201)
    const erase = (name: string) => {
      const command = onTerminal(['users', 'erase', 'omar'], { ANNALS_API_KEY: token })
      return vi
        .waitFor(() => expect(command.screen()).toContain('Type omar to confirm'), 10_000)
        .then(() => command.type(`${name}\r`))
        .then(() => command.exited)
    }
    expect(await erase('oscar')).toBe(1)
    expect(await erase('omar')).toBe(0)
    const again = onTerminal(['users', 'erase', 'omar'], { ANNALS_API_KEY: token })
    expect(await again.exited).toBe(3)
  })
})
