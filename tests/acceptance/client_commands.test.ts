import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Finished, runAnnals, startAnnals } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { cuttingProxy } from '../harness/cutting_proxy.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'

const service = useService()
let directory: string
let token: string
let api: ApiClient
let env: Record<string, string>

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-commands-'))
  token = (await service.newProject()).token
  api = await service.newClient({ token })
  env = { ANNALS_URL: service.node.url, ANNALS_TOKEN: token, XDG_CONFIG_HOME: directory, TZ: 'UTC' }
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const annals = (args: string[], more: Record<string, string> = {}, input?: string): Promise<Finished> =>
  runAnnals(args, { ...env, ...more }, input)

/** What a command printed, one JSON value a line. */
async function values<T = Record<string, unknown>>(...args: string[]): Promise<T[]> {
  const { code, stdout, stderr } = await annals(args)
  expect(code, stderr).toBe(0)
  return stdout === '' ? [] : stdout.split('\n').map((line) => JSON.parse(line) as T)
}

async function newSession(body: object = {}): Promise<string> {
  return expectOk(await api.createSession(body), 201).id
}

describe('annals sessions', () => {
  it('lists as JSON lines into a pipe, the newest first, by user and by configs', async () => {
    const [first] = await values('sessions', 'create', '--user', 'lists', '--configs', 'agent=a,stage=2')
    const [second] = await values('sessions', 'create', '--user', 'lists', '--configs', '{"agent":"b"}')
    expect(first).toMatchObject({ configs: { agent: 'a', stage: 2 } })
    const ids = (sessions: Record<string, unknown>[]) => sessions.map(({ id }) => id)
    expect(ids(await values('sessions', 'list', '--user', 'lists'))).toEqual([second!.id, first!.id])
    expect(ids(await values('sessions', 'list', '--user', 'lists', '--oldest-first'))).toEqual([
      first!.id,
      second!.id,
    ])
    expect(ids(await values('sessions', 'list', '--user', 'lists', '--configs', '{"stage":2}'))).toEqual([
      first!.id,
    ])
    for (const more of [[], ['--user', 'lists']])
      expect(await values('sessions', 'list', '--all', ...more)).toContainEqual({ ...first, user: 'lists' })
  })

  it('is empty for a user whom nobody knows, with code 0, and tells a person so', async () => {
    const args = ['sessions', 'list', '--user', 'nobody']
    expect(await annals(args)).toMatchObject({ code: 0, stdout: '', stderr: '' })
    const forPeople = await annals([...args, '--no-json'])
    expect(forPeople).toMatchObject({ code: 0, stdout: '' })
    expect(forPeople.stderr).toContain('No user is called nobody')
  })

  it('goes on where a list was ended', async () => {
    for (let count = 0; count < 3; count++) await newSession({ user: 'goes on' })
    const query = { user: 'goes on', time_desc: 'true', limit: 2 }
    const { next_cursor } = expectOk(await api.listSessions(query))
    const all = await values('sessions', 'list', '--user', 'goes on', '--all')
    const rest = ['sessions', 'list', '--user', 'goes on', '--all', '--cursor', next_cursor]
    expect(await values(...rest)).toEqual(all.slice(2))
  })

  it('walks as many pages as are asked for', async () => {
    for (let count = 0; count < 5; count++) await newSession({ user: 'pages' })
    expect(await values('sessions', 'list', '--user', 'pages', '--limit', '3')).toHaveLength(3)
    expect(await values('sessions', 'list', '--user', 'pages', '--all')).toHaveLength(5)
  })

  it('lists as a table for people, no line wider than the terminal, and says that there is more', async () => {
    for (const configs of [{ long: 'x'.repeat(300) }, { 会话: '長い'.repeat(60) }])
      await newSession({ user: 'tables', configs })
    const args = ['sessions', 'list', '--user', 'tables', '--no-json']
    const { stdout } = await annals(args, { COLUMNS: '80' })
    const [title, ...rows] = stdout.split('\n')
    expect(title).toMatch(/^session +user +created +configs$/)
    expect(rows).toHaveLength(2)
    expect(rows[0]).toMatch(/^[0-9a-f-]{36} {2}tables {2}now/)
    const wide = (line: string) => [...line].reduce((sum, c) => sum + (c > '\u2e80' ? 2 : 1), 0)
    expect(rows.map(wide).every((width) => width <= 80)).toBe(true)
    expect((await annals([...args, '--limit', '1'])).stderr).toContain('There are more')
  })

  it('deletes a session only if told so', async () => {
    const id = await newSession()
    const refused = await annals(['sessions', 'delete', id])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expectOk(await api.getSession(id))
    expect((await annals(['sessions', 'delete', id, '--yes'])).code).toBe(0)
    expect((await annals(['show', id])).code).toBe(3)
  })
})

describe('annals append', () => {
  it('appends an event and a message, from the command line, a file and stdin', async () => {
    const id = await newSession()
    const path = join(directory, 'message.json')
    await writeFile(path, '{"role":"user","content":"Hallo"}')
    const inline = await annals(['append', id, '--type', 'note', '--data', '{"n":1}'])
    expect(JSON.parse(inline.stdout)).toMatchObject({ seq: 1, type: 'note', data: { n: 1 } })
    expect((await annals(['append', id, '--format', 'openai', '--data', `@${path}`])).code).toBe(0)
    expect((await annals(['append', id, '--type', 'note', '--data', '-'], {}, '{"n":3}')).code).toBe(0)
    const items = await values('show', id)
    expect(items.map(({ kind, seq }) => [kind, seq])).toEqual([
      ['event', 1],
      ['message', 2],
      ['event', 3],
    ])
  })

  it('keeps every digit there and back', async () => {
    const id = await newSession()
    const data = '{"number":12345678901234567890.123456789012345678901}'
    await annals(['append', id, '--type', 'order', '--data', data])
    expect((await annals(['show', id])).stdout).toContain('12345678901234567890.123456789012345678901')
  })

  it('stores once what is appended twice with one key', async () => {
    const id = await newSession()
    const args = ['append', id, '--type', 'note', '--data', '{}', '--idempotency-key', 'k-1']
    expect((await annals(args)).stdout).toBe((await annals(args)).stdout)
    expect(await values('show', id)).toHaveLength(1)
  })

  it('says that nothing was stored where nobody listens, and how to repeat what may have been stored', async () => {
    const id = await newSession()
    const args = ['append', id, '--type', 'note', '--data', `{"text":"it's"}`]
    const closed = await cuttingProxy(service.node.url)
    await closed.close()
    const away = await annals(args, { ANNALS_URL: closed.url })
    expect(away).toMatchObject({ code: 5, stderr: expect.stringContaining('Nothing was stored') })
    const proxy = await cuttingProxy(service.node.url)
    try {
      proxy.script.push(...Array<'lose_answer'>(6).fill('lose_answer'))
      const lost = await annals(args, { ANNALS_URL: proxy.url })
      expect(lost).toMatchObject({ code: 5, stderr: expect.stringContaining('It was not confirmed') })
      const again = `annals append ${id} --type note --data '{"text":"it'\\''s"}' --idempotency-key `
      expect(lost.stderr).toContain(`\n${again}`)
      const key = lost.stderr.split(again)[1]!
      expect((await annals([...args, '--idempotency-key', key])).code).toBe(0)
    } finally {
      await proxy.close()
    }
    expect(await values('show', id)).toHaveLength(1)
  }, 60_000)

  it('appends on a condition, and says by its code that it does not hold', async () => {
    const id = await newSession()
    const args = ['append', id, '--type', 'note', '--data', '{}', '--if-match', '0']
    expect((await annals(args)).code).toBe(0)
    expect(await annals(args)).toMatchObject({ code: 6, stderr: expect.stringContaining('1') })
  })
})

describe('annals show', () => {
  it('says whether it is the user or the filter that nothing fits', async () => {
    await newSession({ user: 'raj', configs: { outcome: 'solved' } })
    const failed = ['--configs', 'outcome=failed']
    for (const [args, sentence] of [
      [['--user', 'nobody', ...failed], 'No user is called nobody: see `annals users list`'],
      [['--user', 'RA', ...failed], 'No user is called RA: is it raj?'],
      [
        ['--user', 'raj', ...failed],
        'raj has 1 session, and none has configs that contain {"outcome":"failed"}',
      ],
      [['--user', 'raj', ...failed], 'annals sessions list --user raj'],
      [['--configs', 'outcome=odd'], 'No session has configs that contain {"outcome":"odd"}'],
    ] as [string[], string][]) {
      const refused = await annals(['show', ...args])
      expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining(sentence) })
    }
  })
})

describe('annals tail', () => {
  it('gives the last entries and then each new one, across a service that restarts, and says how to go on', async () => {
    const node = await service.startNode()
    const id = await newSession()
    for (const n of [1, 2, 3]) await api.appendEvent(id, { type: 'tick', data: { n } })
    const tail = startAnnals(['tail', id, '--last', '2'], { ...env, ANNALS_URL: node.url })
    const seqs = () => tail.lines.map((line) => (JSON.parse(line) as { seq: number }).seq)
    await vi.waitFor(() => expect(seqs()).toEqual([2, 3]), 10_000)
    await api.appendEvent(id, { type: 'tick', data: { n: 4 } })
    await vi.waitFor(() => expect(seqs()).toEqual([2, 3, 4]), 10_000)
    await node.stop()
    await vi.waitFor(() => expect(tail.logLines.join()).toContain('trying again'), 10_000)
    await api.appendEvent(id, { type: 'tick', data: { n: 5 } })
    await service.startNode({ PORT: new URL(node.url).port })
    await vi.waitFor(() => expect(seqs()).toEqual([2, 3, 4, 5]), 20_000)
    tail.child.kill('SIGINT')
    const { code, stderr } = await tail.exited
    expect(code).toBe(130)
    expect(stderr).toContain(`annals tail ${id} --after 5`)
  }, 60_000)

  it('begins where it is told to, with what it is told to', async () => {
    const id = await newSession()
    for (const type of ['a', 'b', 'a']) await api.appendEvent(id, { type, data: {} })
    for (const [args, expected] of [
      [
        ['--after', '1'],
        [2, 3],
      ],
      [
        ['--since', '5m'],
        [1, 2, 3],
      ],
      [
        ['--type', 'a'],
        [1, 3],
      ],
    ] as [string[], number[]][]) {
      const tail = startAnnals(['tail', id, ...args], env)
      await vi.waitFor(() => {
        expect(tail.lines.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual(expected)
      }, 10_000)
      tail.child.kill('SIGTERM')
      expect((await tail.exited).code).toBe(130)
    }
  }, 60_000)
})

describe('annals spaces and annals users', () => {
  it('create, list, show and delete learning spaces', async () => {
    const [made] = await values('spaces', 'create', '--user', 'pupil', '--meta', 'topic=refunds')
    const id = made!.id as string
    expect(await values('spaces', 'list', '--meta', '{"topic":"refunds"}')).toEqual([made])
    expect(await values('spaces', 'show', id)).toEqual([made])
    expect((await annals(['spaces', 'show', id, '--no-json'])).stdout).toContain('pupil')
    expect((await annals(['spaces', 'delete', id, '--yes'])).code).toBe(0)
    expect((await annals(['spaces', 'show', id])).code).toBe(3)
  })

  it('list, count and erase users, and erase nobody by accident', async () => {
    const user = `erased-${randomBytes(4).toString('hex')}`
    await newSession({ user })
    expect(await values('users', 'list', '--all')).toContainEqual(
      expect.objectContaining({ identifier: user }),
    )
    expect((await annals(['users', 'show', user, '--no-json'])).stdout).toBe(
      '1 sessions and 0 learning spaces',
    )
    expect((await annals(['users', 'erase', user])).code).toBe(2)
    expect(await values('users', 'erase', user, '--yes')).toEqual([
      { deleted: { sessions: 1, entries: 0, learning_spaces: 0 } },
    ])
    expect((await annals(['users', 'erase', user, '--yes'])).code).toBe(3)
  })
})

describe('the exit code', () => {
  const cases: [string, number, string[], Record<string, string>?][] = [
    ['2 for an option that is not there', 2, ['sessions', 'list', '--usr', 'x']],
    ['2 for a filter that is no JSON', 2, ['sessions', 'list', '--configs', '{']],
    ['2 for an id that is none', 2, ['show', 'x']],
    ['2 for a URL that is none', 2, ['sessions', 'list', '--url', 'nowhere']],
    ['3 for a session that is not there', 3, ['show', randomUUID()]],
    ['3 for a filter that no session fits', 3, ['show', '--user', 'nobody']],
    ['4 for a token that is not accepted', 4, ['sessions', 'list'], { ANNALS_TOKEN: 'sk-annals-wrong' }],
    ['4 for no token at all', 4, ['sessions', 'list'], { ANNALS_TOKEN: '' }],
    ['5 for a service that does not answer', 5, ['users', 'list', '--url', 'http://127.0.0.1:1']],
  ]
  it.each(cases)('is %s', async (_name, code, args, more) => {
    const result = await annals(args, more)
    expect(result.code).toBe(code)
    expect(result.stderr).toMatch(/^annals: \S/)
    expect(result.stderr).not.toMatch(/^\s+at /m)
    expect(result.stdout).toBe('')
  })

  it('is 4 for a token that may only read', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const reader = await runAnnals(
      ['token', 'create', '--project', await projectId(), '--name', 'r', '--scopes', 'read', '--json'],
      { DATABASE_URL: service.databaseUrl },
    )
    const read_only = (JSON.parse(reader.stdout) as { token: string }).token
    const args = ['append', id, '--type', 'note', '--data', '{}']
    expect((await annals(args, { ANNALS_TOKEN: read_only })).code).toBe(4)
  })

  async function projectId(): Promise<string> {
    return expectOk(await api.createSession({}), 201).project_id
  }
})

describe('the key', () => {
  it('that is not accepted is said to be so, with where it came from and who refused it', async () => {
    const wrong = 'sk-annals-wrong'
    const byOption = await annals(['sessions', 'list', '--token', wrong])
    const byVariable = await annals(['tail', randomUUID()], { ANNALS_TOKEN: wrong })
    for (const [{ code, stderr }, origin] of [
      [byOption, '--token'],
      [byVariable, 'ANNALS_TOKEN'],
    ] as [Finished, string][]) {
      expect(code).toBe(4)
      expect(stderr).toContain(
        `This key is not valid: ${service.node.url} refused it. It came from ${origin}.`,
      )
      expect(stderr).not.toContain(wrong)
    }
  })

  it('that is given does not change which service is meant', async () => {
    const XDG_CONFIG_HOME = join(directory, 'meant')
    const port = new URL(service.node.url).port
    const beside = await runAnnals(['users', 'list', '--token', token], { XDG_CONFIG_HOME, PORT: port })
    expect(beside.code, beside.stderr).toBe(0)
    await runAnnals(['login', '--url', service.node.url], { XDG_CONFIG_HOME }, `${token}\n`)
    const stored = await runAnnals(['users', 'list'], { XDG_CONFIG_HOME, ANNALS_TOKEN: token })
    expect(stored.code, stored.stderr).toBe(0)
  })

  it('that is nowhere is asked for by its service, and what is stored is named', async () => {
    const XDG_CONFIG_HOME = join(directory, 'named')
    const { url } = service.node
    await runAnnals(['login', '--url', url, '--profile', 'work'], { XDG_CONFIG_HOME }, `${token}\n`)
    const none = await runAnnals(['sessions', 'list'], { XDG_CONFIG_HOME })
    expect(none.code).toBe(4)
    expect(none.stderr).toContain('There is no token for http://127.0.0.1:8029.')
    expect(none.stderr).toContain(`"work" for ${url}: choose one with --profile NAME`)
    expect(none.stderr).not.toContain(token)
  })
})

describe('annals login', () => {
  it('tries a key, keeps it where only its owner can read it, and shows it nowhere', async () => {
    const home = { ...env, ANNALS_TOKEN: '', XDG_CONFIG_HOME: join(directory, 'login') }
    const path = join(home.XDG_CONFIG_HOME, 'annals', 'profiles.json')
    const wrong = await runAnnals(['login'], home, 'sk-annals-wrong\n')
    expect(wrong.code).toBe(4)
    const done = await runAnnals(['login', '--profile', 'work'], home, `${token}\n`)
    expect(done.code, done.stderr).toBe(0)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readFile(path, 'utf8')).toContain(token)
    const listed = await runAnnals(['sessions', 'list', '--profile', 'work'], home)
    expect(listed.code, listed.stderr).toBe(0)
    const elsewhere = await runAnnals(
      ['sessions', 'list', '--profile', 'work', '--url', 'http://127.0.0.1:1'],
      home,
    )
    expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining('nowhere else') })
    expect((await runAnnals(['logout', '--profile', 'work'], home)).code).toBe(0)
    expect((await runAnnals(['sessions', 'list', '--profile', 'work'], home)).code).toBe(2)
    for (const { stdout, stderr } of [wrong, done, listed, elsewhere]) {
      expect(stdout + stderr).not.toContain(token)
    }
  }, 60_000)
})
