import { appendFile, mkdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { startAnnals } from '../harness/annals_process.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { cuttingProxy } from '../harness/cutting_proxy.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const FIXTURES = fileURLToPath(new URL('../../packages/importers/test/fixtures/', import.meta.url))

interface Report {
  sessions: { stored: number; known: number }
  entries: { stored: number; known: number; changed: number; refused: number }
  formats: Record<string, { files: number; read: number; mapped: number; kept_raw: number; refused: number }>
  refused: { file: string; line: number; reason: string }[]
  changed: { file: string; line: number }[]
}

/** A project of its own, in which ids of imports are not there yet. */
async function importer() {
  const { token } = await service.newProject()
  const env = { ANNALS_TOKEN: token }
  const run = async (...args: string[]) => commands.annals(['import', ...args], env)
  const report = async (...args: string[]): Promise<Report & { code: number | null }> => {
    const { stdout, code } = await run(...args, '--json')
    return { ...JSON.parse(stdout), code }
  }
  const list = async (...args: string[]) => {
    const { stdout } = await commands.annals(args, env)
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line)))
  }
  return { run, report, list, token }
}

describe('annals import', () => {
  it('imports a folder of several formats over HTTP, and adds nothing the second time', async () => {
    const { report, list } = await importer()
    const first = await report(FIXTURES)
    expect(first.code).toBe(0)
    expect(Object.keys(first.formats)).toEqual(
      expect.arrayContaining(['claude-code', 'codex', 'openai-chat']),
    )
    expect(first.entries).toMatchObject({ known: 0, changed: 0, refused: 0 })
    for (const { read, mapped, kept_raw, refused } of Object.values(first.formats))
      expect(mapped + kept_raw + refused).toBe(read)
    const second = await report(FIXTURES)
    const { stored: sessions } = first.sessions
    const { stored: entries } = first.entries
    expect(second.sessions).toEqual({ stored: 0, known: sessions })
    expect(second.entries).toEqual({ stored: 0, known: entries, changed: 0, refused: 0 })
    const all = await list('sessions', 'list', '--all')
    expect(all).toHaveLength(sessions)
    expect(all.every(({ configs }) => configs.import.complete === true)).toBe(true)
  })

  it('imports several files and folders at once, but one of stdin', async () => {
    const { report, run } = await importer()
    const folder = join(commands.directory, 'several')
    await mkdir(folder)
    await writeFile(join(folder, 'notes.json'), '{"a":1}')
    const files = ['claude_code.jsonl', 'codex.jsonl'].map((name) => join(FIXTURES, name))
    const { code, formats } = await report(...files, folder)
    expect(code).toBe(0)
    expect(Object.keys(formats).sort()).toEqual(['claude-code', 'codex'])
    expect(await run(...files, '-')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot be combined'),
    })
  })

  it('keeps when things happened, what was rewound, subagents, and finds the calls that failed', async () => {
    const { report, list } = await importer()
    await report(join(FIXTURES, 'claude_code.jsonl'))
    const [main] = await list('sessions', 'list', '--parent', 'none')
    expect(main.configs).toMatchObject({
      agent: 'claude-code',
      cwd: '/home/mia/shop',
      title: 'Failing tests',
    })
    const entries = await list('show', main.id)
    const said = entries.filter(({ kind }) => kind === 'message')
    expect(said[0].occurred_at).toBe('2026-11-20T10:00:01.500000Z')
    const isRetracted = ({ retracted_by }: { retracted_by?: number }) => retracted_by !== undefined
    expect(said.filter(isRetracted).map(({ blob }) => JSON.stringify(blob.content))).toEqual([
      '"Delete them."',
      expect.stringContaining('Deleted.'),
    ])
    expect(await list('sessions', 'list', '--parent', main.id)).toHaveLength(1)
    expect(await list('tools')).toContainEqual(
      expect.objectContaining({ name: 'Bash', calls: 1, failures: 1 }),
    )
  })

  it('lets the summaries of coding agents stand for what came before, once', async () => {
    const { report, list, token } = await importer()
    const lines = [
      { uuid: 's1', parentUuid: null, message: { role: 'user', content: 'Fix the long bug' } },
      { uuid: 's2', parentUuid: 's1', type: 'assistant', message: { role: 'assistant', content: 'On it.' } },
      {
        uuid: 's3',
        parentUuid: null,
        isCompactSummary: true,
        message: { role: 'user', content: 'So far: on it.' },
      },
      { uuid: 's4', parentUuid: 's3', message: { role: 'user', content: 'Go on' } },
    ].map((line) => JSON.stringify({ type: 'user', sessionId: 'compacted', ...line }))
    const file = join(commands.directory, 'compacted.jsonl')
    await writeFile(file, lines.join('\n'))
    const client = await service.newClient({ token })
    const contextOf = async (id: unknown, format: string) => {
      const path = `/api/v1/session/${id}/context`
      const answer = await client.request<{ items: unknown[] }>('GET', path, { query: { format } })
      return answer.json.data.items
    }
    for (let round = 1; round <= 2; round++) {
      expect(await report(file)).toMatchObject({ code: 0, entries: { stored: round === 1 ? 4 : 0 } })
      const [session] = await list('sessions', 'list')
      expect(JSON.stringify(await contextOf(session.id, 'anthropic'))).toMatch(
        /^(?!.*long bug).*So far: on it.*Go on/,
      )
      expect(await list('show', session.id)).toHaveLength(5)
    }
    await report(join(FIXTURES, 'codex.jsonl'))
    const codex = (await list('sessions', 'list')).find(({ configs }) => configs.agent === 'codex')
    expect(JSON.stringify((await contextOf(codex.id, 'responses'))[0])).toContain('So far: nothing.')
  })

  it('adds what is new, reports what has changed, refuses bad lines by number, and exits with 1', async () => {
    const { report, run } = await importer()
    const path = join(commands.directory, 'grows.jsonl')
    const lines = (await readFile(join(FIXTURES, 'claude_code.jsonl'), 'utf8')).trimEnd().split('\n')
    await writeFile(path, lines.slice(0, 5).join('\n'))
    expect(await report(path)).toMatchObject({ code: 0, sessions: { stored: 1 }, entries: { stored: 5 } })
    const changed = lines.map((line) => line.replace('Do the tests pass?', 'Do they?'))
    await writeFile(path, [...changed.slice(0, 7), '{"type":', ...changed.slice(7)].join('\n'))
    const again = await report(path)
    expect(again).toMatchObject({ code: 1, entries: { known: 4, changed: 1 } })
    expect(again.refused).toEqual([{ file: 'grows.jsonl', line: 8, reason: 'it is not JSON' }])
    expect(again.changed).toMatchObject([{ file: 'grows.jsonl', line: 2 }])
    // A line whose id another line of the file has did not change: it was never imported.
    const twice = lines[1]!.replace('Do the tests pass?', 'Do they?')
    await writeFile(path, [...lines.slice(0, 5), twice].join('\n'))
    const doubled = await report(path)
    expect(doubled).toMatchObject({ code: 1, entries: { known: 5, changed: 0, refused: 1 } })
    expect(doubled.refused).toMatchObject([{ line: 6, reason: expect.stringContaining('the same id') }])
    await writeFile(path, [...changed.slice(0, 7), '{"type":', ...changed.slice(7)].join('\n'))
    const strict = await run(path, '--strict')
    expect(strict).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('grows.jsonl:8: it is not JSON'),
    })
  })

  it('stores a session once of which a folder has two copies', async () => {
    const { report } = await importer()
    const [one, two] = ['a.jsonl', 'b.jsonl'].map((name) => join(commands.directory, 'copies', name))
    const lines = await readFile(join(FIXTURES, 'claude_code.jsonl'))
    await mkdir(join(commands.directory, 'copies'), { recursive: true })
    await Promise.all([writeFile(one!, lines), writeFile(two!, lines)])
    const { entries, code } = await report(join(commands.directory, 'copies'))
    expect(entries).toMatchObject({ known: entries.stored, changed: 0, refused: 0 })
    expect(code).toBe(0)
  })

  it('puts agents that only their folders name below their session', async () => {
    const { report, list } = await importer()
    const agents = join(commands.directory, 'session_7c0c', 'agents')
    const begun = { type: 'metadata', protocol_version: '1.5', created_at: 1_785_578_400_000 }
    for (const agent of ['main', 'agent-0']) {
      await mkdir(join(agents, agent), { recursive: true })
      await writeFile(join(agents, agent, 'wire.jsonl'), `${JSON.stringify(begun)}\n`)
    }
    await report(agents)
    const sessions = await list('sessions', 'list', '--all')
    const main = sessions.find(({ configs }) => configs.subagent === undefined)
    const below = await list('sessions', 'list', '--parent', String(main?.id))
    expect(below).toMatchObject([{ configs: { agent: 'kimi-code', subagent: 'agent-0' } }])
  })

  it('goes on after what cannot be read, and reads files to which links lead', async () => {
    const { run, report } = await importer()
    const folder = join(commands.directory, 'unreadable')
    await mkdir(folder)
    const transcript = await readFile(`${FIXTURES}claude_code.jsonl`)
    await writeFile(join(folder, 'elsewhere.txt'), transcript)
    await symlink('elsewhere.txt', join(folder, 'linked.jsonl'))
    await symlink('gone.jsonl', join(folder, 'dangling.jsonl'))
    // Reading it fails, whoever does it.
    await symlink('/proc/self/mem', join(folder, 'broken.jsonl'))
    const { code, refused, sessions } = await report(folder)
    expect(refused).toEqual([
      { file: 'broken.jsonl', line: 0, reason: expect.stringContaining('cannot be read') },
    ])
    expect({ code, sessions }).toEqual({ code: 1, sessions: { stored: 2, known: 0 } })
    const alone = await run(join(folder, 'broken.jsonl'))
    expect(alone.code).toBe(1)
    expect(alone.stderr).toMatch(/broken.jsonl cannot be read \(EIO/)
  })

  it('counts a line that stands in a file twice as known, and refuses another one with its id', async () => {
    const { report } = await importer()
    const path = join(commands.directory, 'twice.jsonl')
    const line = (uuid: string, content: string) =>
      JSON.stringify({ type: 'user', uuid, sessionId: 'twice', message: { role: 'user', content } })
    const once = [line('a', '1'), line('b', '2')]
    await writeFile(path, [...once, once[0]].join('\n'))
    expect(await report(path)).toMatchObject({ code: 0, entries: { stored: 2, known: 1, refused: 0 } })
    await writeFile(path, [...once, line('b', '3')].join('\n'))
    expect(await report(path)).toMatchObject({ code: 1, entries: { stored: 0, known: 2, refused: 1 } })
  })

  it('exports a session to ATIF, from which another project gets the same entries, and names what is not said', async () => {
    const [from, to] = [await importer(), await importer()]
    await from.report(join(FIXTURES, 'claude_code.jsonl'))
    const [main] = await from.list('sessions', 'list', '--parent', 'none')
    const path = join(commands.directory, 'run.json')
    const args = ['export', '--format', 'atif', '--session', main.id, '--output', path]
    const { code, stderr } = await commands.annals(args, { ANNALS_TOKEN: from.token })
    expect(code).toBe(0)
    expect(stderr).toMatch(/atif has no form for:[\s\S]*2 × was retracted/)
    expect(await to.report(path)).toMatchObject({ code: 0, entries: { refused: 0 } })
    const [copy] = await to.list('sessions', 'list')
    expect(copy.configs).toMatchObject({ agent: 'claude-code', title: 'Failing tests' })
    const contentOf = ({ kind, type, data, format, blob, meta, occurred_at }: Record<string, unknown>) => ({
      ...{ kind, type, data, format, blob, meta, occurred_at },
    })
    const live = (await from.list('show', main.id)).filter(
      ({ type, retracted_by }) => retracted_by === undefined && type !== 'annals.retraction',
    )
    expect((await to.list('show', copy.id)).map(contentOf)).toEqual(live.map(contentOf))
  })

  it('exports the bytes that the service exports, those of attachments included', async () => {
    const { token } = await importer()
    const api = await service.newClient({ token })
    const { id } = expectOk(await api.createSession({}), 201)
    const bytes = Buffer.alloc(48 * 1024, 7).toString('base64')
    const content = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${bytes}` } }]
    const blob = { role: 'user', content }
    const message = await api.request('POST', `/api/v1/session/${id}/messages`, { body: { blob } })
    expect(message.status, message.text).toBe(201)
    await api.request('POST', `/api/v1/session/${id}/events`, { body: { type: 'a} note', data: {} } })
    for (const format of ['atif', 'openai', 'anthropic', 'jsonl']) {
      const path = join(commands.directory, `image.${format}`)
      const args = ['export', '--format', format, '--session', id, '--output', path]
      const { code, stderr } = await commands.annals(args, { ANNALS_TOKEN: token })
      const asked = await api.request('GET', `/api/v1/session/${id}/export?format=${format}`)
      const written = await readFile(path, 'utf8')
      // Compared without printing what differs: it is long.
      expect([code, written === asked.text, written.includes(bytes)]).toEqual([0, true, true])
      if (format !== 'atif' && format !== 'jsonl') expect(stderr).toContain('1 × event a} note')
    }
  })

  it('stores nothing with --dry-run, and needs no service for it', async () => {
    const dry = await commands.annals(['import', FIXTURES, '--dry-run', '--format', 'codex'], {
      ANNALS_URL: 'http://127.0.0.1:9',
    })
    expect(dry.stdout).toMatch(/Would import \d+ sessions? with \d+ messages and \d+ events\./)
    const { run, list } = await importer()
    expect((await run(FIXTURES, '--dry-run')).code).toBe(0)
    expect(await list('sessions', 'list')).toEqual([])
  })

  it('stores long lines and what PostgreSQL cannot hold, and names what the service refuses', async () => {
    const { report, list } = await importer()
    const path = join(commands.directory, 'long.jsonl')
    const messages = [
      { role: 'user', content: 'Read the file.' },
      { role: 'user', content: `\u0000\uD800${'long '.repeat(400_000)}` },
    ]
    await writeFile(path, `${JSON.stringify({ messages })}\n`)
    expect(await report(path)).toMatchObject({ code: 0, entries: { refused: 0 } })
    const [session] = await list('sessions', 'list')
    const entries = await list('show', session.id)
    const parts = entries.filter(({ type }) => type === 'adapter.part')
    expect(parts.map(({ data }) => data.text).join('')).toContain('long '.repeat(400_000))
    expect(entries.filter(({ kind }) => kind === 'message')).toHaveLength(2)
    expect((await report(path)).entries).toMatchObject({ stored: 0, changed: 0 })
  })

  it('leaves no session that looks finished when it is interrupted, and completes it the next time', async () => {
    const { token, list, report } = await importer()
    const env = { ...commands.env, ANNALS_TOKEN: token }
    const fixture = await readFile(join(FIXTURES, 'claude_code.jsonl'), 'utf8')
    // More than is read ahead to find the format, and more than is sent at once.
    const linesOf = (count: number) =>
      Array.from({ length: count }, (_, n) =>
        JSON.stringify({
          type: 'user',
          uuid: `u${n}`,
          sessionId: 'long',
          message: { role: 'user', content: `${n} ${'x'.repeat(300)}` },
        }),
      ).join('\n')
    const interrupted = async (lines: string, entries_before: number) => {
      const { child, exited } = startAnnals(['import', '-'], env, 'pipe')
      // What the command has not read yet when it ends.
      child.stdin!.on('error', () => {})
      child.stdin!.write(`${lines}\n`)
      const entries = async () => Math.max(0, ...(await list('sessions', 'list')).map((one) => one.entries))
      await expect.poll(entries, { timeout: 60_000 }).toBeGreaterThan(entries_before)
      child.kill('SIGINT')
      expect(await exited).toMatchObject({ code: 130 })
    }
    const more = linesOf(1_500)
    await interrupted(more, 0)
    const [session] = await list('sessions', 'list')
    expect(session.configs.import).toMatchObject({ complete: false })
    const folder = join(commands.directory, 'again')
    await mkdir(folder)
    await writeFile(join(folder, 'long.jsonl'), `${more}\n`)
    await writeFile(join(folder, 'other.jsonl'), fixture)
    expect(await report(folder)).toMatchObject({ code: 0, entries: { changed: 0 } })
    const done = (await list('sessions', 'list', '--all')).find(({ id }) => id === session.id)
    expect(done.configs.import).toMatchObject({ complete: true })
    expect(await list('show', session.id)).toHaveLength(1_500)
    // It has grown since.
    await interrupted(linesOf(4_000), 1_500)
    const grown = (await list('sessions', 'list', '--all')).find(({ id }) => id === session.id)
    expect(grown.configs.import).toMatchObject({ complete: false })
  })

  it('keeps what a file says of its session before it was cut off, and completes that with the rest', async () => {
    const { list, report } = await importer()
    const path = join(commands.directory, 'cut.jsonl')
    const line = (uuid: string, more: object) => `${JSON.stringify({ uuid, sessionId: 'cut', ...more })}\n`
    const message = { role: 'assistant', model: 'claude-sonnet-5', content: 'Hello' }
    const lines = [
      line('u1', { type: 'user', message: { role: 'user', content: 'Hello' } }),
      line('u2', { type: 'assistant', cwd: '/home/mia', message }),
      line('u3', { type: 'custom-title', customTitle: 'A greeting' }),
      line('u4', { type: 'user', message: { role: 'user', content: 'Bye' } }),
    ]
    await writeFile(path, lines.join('').slice(0, -10))
    expect(await report(path)).toMatchObject({ code: 1, entries: { stored: 3 } })
    const known = { title: 'A greeting', model: 'claude-sonnet-5', cwd: '/home/mia' }
    const configs = async () => (await list('sessions', 'list'))[0].configs
    expect(await configs()).toMatchObject({ ...known, import: { complete: false } })
    await writeFile(path, lines.join(''))
    expect(await report(path)).toMatchObject({ code: 0, entries: { stored: 1, known: 3 } })
    expect(await configs()).toMatchObject({ ...known, import: { complete: true } })
  })

  it('says what was there already of a session that an interrupted import left', async () => {
    const { token, list, report } = await importer()
    const path = join(commands.directory, 'left.jsonl')
    const line = {
      type: 'user',
      uuid: 'left',
      sessionId: 'left',
      message: { role: 'user', content: 'Hello' },
    }
    await writeFile(path, `${JSON.stringify(line)}\n`)
    await report(path)
    const [{ id, configs }] = await list('sessions', 'list')
    const left = { configs: { import: { ...configs.import, complete: false } } }
    const api = await service.newClient({ token })
    expectOk(await api.request('PATCH', `/api/v1/session/${id}/configs`, { body: left }))
    expect(await report(path)).toMatchObject({
      sessions: { stored: 0, known: 1 },
      entries: { stored: 0, known: 1 },
    })
    const [{ configs: done }] = await list('sessions', 'list')
    expect(done.import).toEqual({ ...configs.import, complete: true })
  })

  it('follows a folder with --watch: what is added to a file, and a new file, and waits for the rest of a line; --since leaves out what is old', async () => {
    const { token, list, report } = await importer()
    const folder = join(commands.directory, 'watched')
    await mkdir(folder)
    const lineOf = (n: number, sessionId: string) =>
      `${JSON.stringify({ type: 'user', uuid: `${sessionId}${n}`, sessionId, message: { role: 'user', content: `${n}` } })}\n`
    const second = lineOf(2, 'one')
    await writeFile(join(folder, 'one.jsonl'), `${lineOf(1, 'one')}${second.slice(0, 20)}`)
    const env = { ...commands.env, ANNALS_TOKEN: token }
    const { child, exited } = startAnnals(['import', folder, '--watch'], env)
    const said = async () => {
      const sessions = await list('sessions', 'list', '--all')
      const logs = await Promise.all(sessions.map(({ id }) => list('show', String(id))))
      return logs.map((log) => log.map(({ blob }) => blob.content).join()).sort()
    }
    try {
      await expect.poll(said, { timeout: 60_000 }).toEqual(['1'])
      await appendFile(join(folder, 'one.jsonl'), second.slice(20))
      await writeFile(join(folder, 'two.jsonl'), lineOf(1, 'two'))
      await expect.poll(said, { timeout: 60_000 }).toEqual(['1', '1,2'])
      await appendFile(join(folder, 'two.jsonl'), lineOf(2, 'two'))
      await expect.poll(said, { timeout: 60_000 }).toEqual(['1,2', '1,2'])
    } finally {
      child.kill('SIGINT')
    }
    expect(await exited).toMatchObject({ code: 0 })
    const long_ago = new Date('2020-01-01')
    await utimes(join(folder, 'one.jsonl'), long_ago, long_ago)
    expect((await report(folder, '--since', '1d')).entries).toMatchObject({ stored: 0, known: 2 })
    expect((await report(folder)).entries).toMatchObject({ stored: 0, known: 4 })
  }, 240_000)

  it('goes on with --watch once a file that was gone is there again', async () => {
    const { token, list } = await importer()
    const path = join(commands.directory, 'rotated.jsonl')
    const line = (n: number) =>
      `${JSON.stringify({ type: 'user', uuid: `r${n}`, sessionId: 'rotated', message: { role: 'user', content: `${n}` } })}\n`
    await writeFile(path, line(1))
    const { child, exited } = startAnnals(['import', path, '--watch'], {
      ...commands.env,
      ANNALS_TOKEN: token,
    })
    const entries = async () => (await list('sessions', 'list'))[0]?.entries
    try {
      await expect.poll(entries, { timeout: 60_000 }).toBe(1)
      await rm(path)
      // It looks every two seconds.
      await pause(5_000)
      await writeFile(path, line(2))
      await expect.poll(entries, { timeout: 60_000 }).toBe(2)
    } finally {
      child.kill('SIGINT')
    }
    expect(await exited).toMatchObject({ code: 0 })
  }, 240_000)

  it('goes on with --watch once the service is there again; without it, says to run the command again', async () => {
    const { token, list } = await importer()
    const path = join(commands.directory, 'away.jsonl')
    const line = (n: number) =>
      `${JSON.stringify({ type: 'user', uuid: `a${n}`, sessionId: 'away', message: { role: 'user', content: `${n}` } })}\n`
    await writeFile(path, line(1))
    const proxy = await cuttingProxy(service.node.url)
    const env = { ...commands.env, ANNALS_TOKEN: token, ANNALS_URL: proxy.url }
    const { child, exited } = startAnnals(['import', path, '--watch'], env)
    let said = ''
    child.stderr!.on('data', (data) => {
      said += data
    })
    const entries = async () => (await list('sessions', 'list'))[0]?.entries
    try {
      await expect.poll(() => said, { timeout: 60_000 }).toContain('Watching')
      proxy.cutOff(true)
      await appendFile(path, line(2))
      await expect.poll(() => said, { timeout: 60_000 }).toContain('tried again')
      expect(await commands.annals(['import', path], env)).toMatchObject({
        code: 5,
        stderr: expect.stringContaining('Run the same command again'),
      })
      proxy.cutOff(false)
      await expect.poll(entries, { timeout: 60_000 }).toBe(2)
    } finally {
      child.kill('SIGINT')
      await exited
      await proxy.close()
    }
  }, 240_000)
})
