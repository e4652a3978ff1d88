import { randomBytes, randomUUID } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Finished, runAnnals } from '../harness/annals_process.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { freePort } from '../harness/pgbouncer.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, values, newSession } = commands

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
      expect(await values('sessions', 'list', '--all', ...more)).toContainEqual(
        expect.objectContaining({ ...first, user: 'lists', title: null }),
      )
  })

  it('creates sessions below others, and lists those or the ones without a parent', async () => {
    const parent = String((await values('sessions', 'create', '--user', 'tree'))[0]!.id)
    const [child] = await values('sessions', 'create', '--user', 'tree', '--parent', parent)
    expect(child).toMatchObject({ parent_id: parent })
    const list = async (...args: string[]) =>
      (await values('sessions', 'list', '--user', 'tree', ...args)).map(({ id }) => id)
    expect(await list('--parent', parent)).toEqual([child!.id])
    expect(await list('--parent', 'none')).toEqual([parent])
    expect(await annals(['sessions', 'list', '--parent', 'x'])).toMatchObject({ code: 2 })
    const unknown = ['sessions', 'create', '--parent', randomUUID()]
    expect(await annals(unknown)).toMatchObject({ code: 3, stderr: expect.stringContaining('/parent') })
  })

  it('creates sessions that expire', async () => {
    const [session] = await values('sessions', 'create', '--expires-in', '30d')
    expect(session).toMatchObject({ expires_in_s: 2_592_000 })
    for (const wrong of ['x', '0s', '30', '1w'])
      expect(await annals(['sessions', 'create', '--expires-in', wrong])).toMatchObject({ code: 2 })
  })

  it('is empty for a user whom nobody knows, with code 0, and tells a person so', async () => {
    const args = ['sessions', 'list', '--user', 'nobody']
    expect(await annals(args)).toMatchObject({ code: 0, stdout: '', stderr: '' })
    const forPeople = await annals([...args, '--no-json'])
    expect(forPeople).toMatchObject({ code: 0, stdout: '' })
    expect(forPeople.stderr).toContain('There is no user nobody')
  })

  it('goes on where a list was ended', async () => {
    for (let count = 0; count < 3; count++) await newSession({ user: 'goes on' })
    const query = { user: 'goes on', time_desc: 'true', limit: 2 }
    const { next_cursor } = expectOk(await commands.api.listSessions(query))
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
    for (const configs of [{ title: 'x'.repeat(300) }, { 会话: '長い'.repeat(60), outcome: 'failed' }])
      await newSession({ user: 'tables', configs })
    const log = sessionLog(commands.api, await newSession({ user: 'tables', configs: { title: 'Told' } }))
    for (const content of ['hello', 'hi']) expectOk(await log.add({ role: 'user', content }), 201)
    const args = ['sessions', 'list', '--user', 'tables', '--no-json']
    const { stdout } = await annals(args, { COLUMNS: '80' })
    const [title, ...rows] = stdout.split('\n')
    expect(title).toMatch(/^session +user +began +outcome +entries +tokens +title$/)
    expect(rows).toHaveLength(3)
    const [id] = /^[0-9a-f-]+/.exec(rows[0]!)!
    expect(id.length).toBeLessThan(36)
    expect(rows[0]).toMatch(/ {2}tables {2}now +2 +[1-9][0-9]* +Told$/)
    expect(rows[1]).toMatch(/now +failed +0 +0 +会话=/)
    expect(rows[2]).toMatch(/now +0 +0 +x+…$/)
    expect(await values('show', id, '--json')).toHaveLength(2)
    const wide = (line: string) => [...line].reduce((sum, c) => sum + (c > '\u2e80' ? 2 : 1), 0)
    expect(rows.map(wide).every((width) => width <= 80)).toBe(true)
    expect((await annals([...args, '--limit', '1'])).stderr).toContain('There are more')
  })

  it('shows when a session began and ended, not when it was imported', async () => {
    const log = sessionLog(commands.api, await newSession({ user: 'past' }))
    for (const occurred_at of ['2020-01-02T03:04:05Z', '2020-01-02T04:00:00Z'])
      expectOk(await log.add({ role: 'user', content: 'hello' }, { occurred_at }), 201)
    const [session] = await values('sessions', 'list', '--user', 'past')
    expect(session).toMatchObject({
      began_at: '2020-01-02T03:04:05.000000Z',
      ended_at: '2020-01-02T04:00:00.000000Z',
    })
    const wide = { COLUMNS: '140', TZ: 'UTC' }
    const { stdout } = await annals(['sessions', 'list', '--user', 'past', '--no-json'], wide)
    expect(stdout).toMatch(/ past +\d+ d ago +2020-01-02 03:04:05 +\d+ d ago +2 /)
    const shown = await annals(['show', log.id, '--no-json'], wide)
    expect(shown.stdout).toMatch(/^began {4}2020-01-02 03:04:05 \(\d+ d ago\), last entry \d+ d ago$/m)
  })

  it('shows outcomes in the words of the project, and names a session by what its user said first', async () => {
    const { project_id } = expectOk(await commands.api.createSession({}), 201)
    const set = (outcomes: object | null) =>
      service.adminClient().request('PATCH', `/admin/v1/projects/${project_id}`, { body: { outcomes } })
    for (const wrong of [{ '': 'passed' }, { ['x'.repeat(41)]: 'passed' }, { submitted: 'good' }])
      expect(await set(wrong)).toMatchObject({ status: 400, text: expect.stringContaining('/outcomes') })
    expectOk(await set({ submitted: 'passed', handed_over: 'failed' }))
    const configs = { exit_status: 'Submitted' }
    const id = await newSession({ user: 'words', configs })
    await newSession({ user: 'words', configs: { title: 'Told', outcome: 'handed_over' } })
    const log = sessionLog(commands.api, id)
    expectOk(await log.add({ role: 'system', content: 'You help.' }), 201)
    expectOk(await log.add({ role: 'user', content: 'Where is\n my kettle?' }), 201)
    const outcomes = () => values('sessions', 'list', '--user', 'words')
    // A key is remembered for some seconds, and so is its project.
    await expect.poll(outcomes, { timeout: 30_000 }).toMatchObject([
      { title: 'Told', outcome: 'handed_over', verdict: 'failed' },
      { title: 'Where is my kettle?', outcome: 'Submitted', verdict: 'passed' },
    ])
    const list = await annals(['sessions', 'list', '--user', 'words', '--no-json'], { COLUMNS: '120' })
    expect(list.stdout).toMatch(
      /handed_over \(failed\) .*Told\n.*Submitted \(passed\) .*Where is my kettle\?$/,
    )
    const shown = await annals(['show', id, '--no-json'])
    expect(shown.stdout).toContain('title    Where is my kettle?\n')
    expect(shown.stdout).toContain('outcome  Submitted (passed)\n')
    expectOk(await set(null))
    await expect
      .poll(outcomes, { timeout: 30_000 })
      .toMatchObject([{ verdict: null }, { outcome: 'Submitted', verdict: null }])
  })

  it('deletes a session only if told so', async () => {
    const id = await newSession()
    const refused = await annals(['sessions', 'delete', id])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expectOk(await commands.api.getSession(id))
    expect((await annals(['sessions', 'delete', id, '--yes'])).code).toBe(0)
    expect((await annals(['show', id])).code).toBe(3)
  })
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
      '1 session and 0 learning spaces',
    )
    expect((await annals(['users', 'erase', user])).code).toBe(2)
    expect(await values('users', 'erase', user, '--yes')).toMatchObject([
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
    expect(result.stderr).not.toContain('command-argument')
    expect(result.stderr).not.toMatch(/^\s+at /m)
    expect(result.stdout).toBe('')
  })

  it('is 4 for a token that may only read', async () => {
    const { id } = expectOk(await commands.api.createSession({}), 201)
    const reader = await runAnnals(
      ['token', 'create', '--project', await projectId(), '--name', 'r', '--scopes', 'read', '--json'],
      { DATABASE_URL: service.databaseUrl },
    )
    const read_only = (JSON.parse(reader.stdout) as { token: string }).token
    const args = ['append', id, '--type', 'note', '--data', '{}']
    const refused = await annals(args, { ANNALS_TOKEN: read_only })
    expect(refused.code).toBe(4)
    expect(refused.stderr).toContain('`annals token create --name <name> --scopes read,append` creates one')
  })

  it('is 5 where nothing listens, and the error says how to start a service', async () => {
    const port = await freePort()
    const result = await annals(['users', 'list', '--url', `http://127.0.0.1:${port}`])
    expect(result).toMatchObject({ code: 5, stdout: '' })
    expect(result.stderr).toBe(
      `annals: Nothing listens at http://127.0.0.1:${port} (ECONNREFUSED). Start Annals there with \`annals serve\`, or name another service with --url.`,
    )
  })

  async function projectId(): Promise<string> {
    return expectOk(await commands.api.createSession({}), 201).project_id
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
      expect(stderr).toContain(`${service.node.url} refused this API key. It came from ${origin}.`)
      expect(stderr).not.toContain(wrong)
    }
  })

  it('that is given does not change which service is meant', async () => {
    const XDG_CONFIG_HOME = join(commands.directory, 'meant')
    const port = new URL(service.node.url).port
    const beside = await runAnnals(['users', 'list', '--token', commands.token], {
      XDG_CONFIG_HOME,
      PORT: port,
    })
    expect(beside.code, beside.stderr).toBe(0)
    await runAnnals(['login', '--url', service.node.url], { XDG_CONFIG_HOME }, `${commands.token}\n`)
    const stored = await runAnnals(['users', 'list'], { XDG_CONFIG_HOME, ANNALS_TOKEN: commands.token })
    expect(stored.code, stored.stderr).toBe(0)
  })

  it('that is nowhere is asked for by its service, and what is stored is named', async () => {
    const XDG_CONFIG_HOME = join(commands.directory, 'named')
    const { url } = service.node
    await runAnnals(['login', '--url', url, '--profile', 'work'], { XDG_CONFIG_HOME }, `${commands.token}\n`)
    const none = await runAnnals(['sessions', 'list'], { XDG_CONFIG_HOME })
    expect(none.code).toBe(4)
    expect(none.stderr).toContain('No API key for http://127.0.0.1:8029.')
    expect(none.stderr).toContain(`: "work" for ${url}.`)
    expect(none.stderr).not.toContain(commands.token)
  })
})

describe('annals login', () => {
  it('tries a key, keeps it where only its owner can read it, and shows it nowhere', async () => {
    const home = { ...commands.env, ANNALS_TOKEN: '', XDG_CONFIG_HOME: join(commands.directory, 'login') }
    const path = join(home.XDG_CONFIG_HOME, 'annals', 'profiles.json')
    const wrong = await runAnnals(['login'], home, 'sk-annals-wrong\n')
    expect(wrong.code).toBe(4)
    const done = await runAnnals(['login', '--profile', 'work'], home, `${commands.token}\n`)
    expect(done.code, done.stderr).toBe(0)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readFile(path, 'utf8')).toContain(commands.token)
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
      expect(stdout + stderr).not.toContain(commands.token)
    }
  }, 60_000)
})
