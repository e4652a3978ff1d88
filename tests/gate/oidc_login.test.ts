import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ANNALS_BIN, startAnnals } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Project } from '../harness/service.ts'
import { useSignIns, visit } from '../harness/sign_ins.ts'
import { queryRows } from '../harness/sql.ts'

/** That of util-linux: others take other options. */
const hasScript = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux') ?? false

const { service, here, goToIssuer, newAccount } = await useSignIns()

let project: Project
beforeEach(async () => {
  project = await service.newProject()
})
const role = (name: string, of = project) => `annals:${of.id}:${name}`

describe('annals login', () => {
  const digest = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')
  /** Somebody follows the link of a command line, and is shown codes. */
  async function followLink(account: string, link: string) {
    const { browser, back } = await goToIssuer(account, link)
    const { response, set } = await visit(here(back), browser)
    const page = await response.text()
    return {
      response,
      set,
      page,
      codes: [...page.matchAll(/<code>([\w-]{43})<\/code>/g)].map(([, code]) => code!),
    }
  }
  const exchange = async (body: object, headers: object = {}) => {
    const response = await fetch(`${service.node.url}/console/oidc/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, json: await response.json() }
  }
  async function newCode() {
    const verifier = randomBytes(32).toString('base64url')
    const { id } = newAccount([role('member')])
    const shown = await followLink(id, `${service.node.url}/console/oidc/start?login=${digest(verifier)}`)
    return { verifier, code: shown.codes[0]!, name: 'a test', ...shown }
  }
  const body = ({ verifier, code, name }: { verifier: string; code: string; name: string }) => ({
    verifier,
    code,
    name,
  })

  /** Runs the command with a profile of its own; `link` is the one that it prints. */
  async function runLogin(
    args: string[],
    more: Record<string, string>,
    work: (command: ReturnType<typeof startAnnals>, link: string) => Promise<unknown>,
  ) {
    const home = await mkdtemp(join(tmpdir(), 'annals-login-'))
    try {
      const env = { XDG_CONFIG_HOME: home, ANNALS_URL: '', ANNALS_API_KEY: '', ANNALS_TOKEN: '', ...more }
      const command = startAnnals(['login', ...args, '--url', service.node.url], env, 'pipe')
      const link = await vi.waitFor(
        () => /Sign in at (\S+)/.exec([...command.lines, ...command.logLines].join('\n'))![1]!,
        { timeout: 30_000 },
      )
      await work(command, link)
      const done = await command.exited
      expect(done.code, done.stderr).toBe(0)
      expect(done.stderr).toContain(`Signed in to the project "${project.name}"`)
      const kept = await readFile(join(home, 'annals/profiles.json'), 'utf8')
      const token = /pat-annals-[\w-]+/.exec(kept)![0]
      expect(done.stdout + done.stderr).not.toContain(token)
      return service.rawClient(token)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }

  it('gets a personal token from a code that somebody pastes who signs in on any machine', async () => {
    const api = await runLogin(['--no-browser'], {}, async (command, link) => {
      const { codes, set, response } = await followLink(newAccount([role('viewer')]).id, link)
      expect(set.every((cookie) => cookie.startsWith('__Secure-annals-oidc='))).toBe(true)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      command.child.stdin!.end(`${codes[0]}\n`)
    })
    expect((await api.request('GET', '/api/v1/session')).status).toBe(200)
    expect((await api.request('POST', '/api/v1/session', { body: {} })).status).toBe(403)
    const { items } = expectOk(
      await api.request<{ items: Array<{ name: string }> }>('GET', '/api/v1/personal_tokens'),
    )
    expect(items[0]!.name).toMatch(/^annals login on /)
  })

  describe.runIf(process.platform === 'linux')('with a browser on the same machine', () => {
    let display: { DISPLAY: string; PATH: string }
    beforeAll(async () => {
      const programs = await mkdtemp(join(tmpdir(), 'annals-browser-'))
      // It reads the page that leads to the console, as a browser does.
      await writeFile(join(programs, 'xdg-open'), `#!/bin/sh\ncat "$1" > ${programs}/opened\n`, {
        mode: 0o755,
      })
      display = { DISPLAY: ':0', PATH: `${programs}:${process.env.PATH}` }
      return () => rm(programs, { recursive: true, force: true })
    })
    const opened = () => readFile(join(display.PATH.split(':')[0]!, 'opened'), 'utf8')
    /** Where the page of a project leads. */
    const linkIn = (page: string) =>
      /href="(http:\/\/127\.0\.0\.1:\d+\/[^"]+)"/.exec(page)?.[1]?.replace('&amp;', '&')

    it('gets one by a click, and nothing is pasted', async () => {
      const api = await runLogin(['--browser'], display, async (_command, link) => {
        const { page, response } = await followLink(newAccount([role('viewer')]).id, link)
        expect(response.status, 'nobody is sent there without a click').toBe(200)
        const click = await fetch(linkIn(page)!)
        expect([click.status, click.headers.get('cache-control')]).toEqual([200, 'no-store'])
        expect(await click.text()).toContain('You can close this page')
        await vi.waitFor(async () => expect(await opened()).toContain(link), 10_000)
      })
      expect((await api.request('GET', '/api/v1/session')).status).toBe(200)
    })

    it.runIf(hasScript)('waits for both on a terminal, which is then as it was', async () => {
      const home = await mkdtemp(join(tmpdir(), 'annals-login-'))
      const args = [process.execPath, ANNALS_BIN, 'login', '--browser', '--url', service.node.url]
      const command = `stty -a > ${home}/before; ${args.join(' ')}; code=$?; stty -a > ${home}/after; exit $code`
      const env = {
        ...display,
        HOME: home,
        XDG_CONFIG_HOME: home,
        TERM: 'xterm',
        SHELL: '/bin/sh',
        NO_COLOR: '1',
      }
      const child = spawn('script', ['-qec', command, '/dev/null'], {
        env,
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      try {
        let screen = ''
        child.stdout!.on('data', (chunk) => {
          screen += chunk
        })
        await vi.waitFor(() => expect(screen).toContain('Waiting for the browser'), 30_000)
        const { page } = await followLink(
          newAccount([role('viewer')]).id,
          /Sign in at (\S+)/.exec(screen)![1]!,
        )
        expect((await fetch(linkIn(page)!)).status).toBe(200)
        const [code] = await once(child, 'close')
        expect(code, screen).toBe(0)
        expect(screen).toContain('Stored the profile')
        expect(await readFile(join(home, 'after'), 'utf8')).toBe(await readFile(join(home, 'before'), 'utf8'))
      } finally {
        child.kill('SIGKILL')
        await rm(home, { recursive: true, force: true })
      }
    })

    it('hears no other page, no other user, and no name that was made to lead to it', async () => {
      await runLogin(['--browser'], display, async (_command, link) => {
        const { page } = await followLink(newAccount([role('viewer')]).id, link)
        const right = new URL(linkIn(page)!)
        const foreign = randomBytes(32).toString('base64url')
        const altered = (name: string, value: string) => {
          const url = new URL(right)
          url.searchParams.set(name, value)
          return url
        }
        const asked = (url: URL, headers: Record<string, string> = {}, method = 'GET') =>
          new Promise<number>((resolve, reject) => {
            request(url, { headers, method }, (response) => resolve(response.resume().statusCode!))
              .once('error', reject)
              .end()
          })
        expect([
          await asked(altered('state', foreign)),
          await asked(altered('state', '')),
          await asked(altered('code', 'x')),
          await asked(new URL(`/other${right.search}`, right)),
          await asked(right, { host: `evil.example.com:${right.port}` }),
          await asked(right, { host: `localhost:${right.port}` }),
          await asked(right, {}, 'POST'),
        ]).toEqual(Array(7).fill(404))
        expect(await asked(right)).toBe(200)
      })
    })

    it('listens to nobody over SSH, where the browser is elsewhere', async () => {
      const over_ssh = { ...display, SSH_CONNECTION: '192.0.2.1 50000 192.0.2.2 22' }
      await runLogin(['--browser'], over_ssh, async (command, link) => {
        expect(link).toMatch(/\?login=[\w-]{43}$/)
        const { page, codes } = await followLink(newAccount([role('viewer')]).id, link)
        expect(linkIn(page)).toBeUndefined()
        command.child.stdin!.end(`${codes[0]}\n`)
      })
    })
  })

  it('shows a code for each project, and none to somebody who is in no project', async () => {
    const other = await service.newProject()
    const link = `${service.node.url}/console/oidc/start?login=${digest('x')}`
    expect(
      (await followLink(newAccount([role('viewer'), role('admin', other)]).id, link)).codes,
    ).toHaveLength(2)
    const { response, codes } = await followLink(newAccount().id, link)
    expect([response.headers.get('location'), codes]).toEqual(['/console?sign_in_failed=no_project', []])
  })

  it('takes a code once, also of two who bring it at the same time', async () => {
    const made = await newCode()
    const answers = await Promise.all([1, 2, 3].map(() => exchange(body(made))))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
    expect((await exchange(body(made))).status).toBe(401)
  })

  it('takes no code of another command line, no guess, and none that has expired', async () => {
    const made = await newCode()
    const another = await newCode()
    expect((await exchange({ ...body(made), verifier: another.verifier })).status).toBe(401)
    expect((await exchange({ ...body(made), verifier: digest(made.verifier) })).status).toBe(401)
    expect((await exchange({ ...body(made), code: randomBytes(32).toString('base64url') })).status).toBe(401)
    expect((await exchange({ ...body(made), code: '' })).status).toBe(400)
    await queryRows(
      service.databaseUrl,
      "UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE name = 'login code'",
    )
    expect((await exchange(body(made))).status).toBe(401)
    expect((await exchange(body(another))).status).toBe(401)
  })

  it('makes codes that open neither the console nor the API', async () => {
    const { code, verifier } = await newCode()
    const headers = { 'x-annals-console': 'none', 'content-type': 'application/json' }
    const opened = await fetch(`${service.node.url}/console/sign_in`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ code }),
    })
    expect([opened.status, opened.headers.getSetCookie()]).toEqual([401, []])
    for (const token of [code, `login:${digest(verifier)}:${code}`]) {
      const answer = await service.rawClient(token).request('GET', '/api/v1/session')
      expect([401, 403]).toContain(answer.status)
    }
  })

  it('tells pages of other origins nothing, and takes no challenge that is none', async () => {
    const made = await newCode()
    const { status, headers } = await exchange(body({ ...made, code: made.verifier }), {
      origin: 'https://evil.example.com',
    })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([401, null])
    const there = `${'a'.repeat(43)}.8029`
    for (const login of [
      '',
      'x',
      '"><script>',
      'a'.repeat(44),
      there,
      `${there}.x`,
      `${there}/.${'b'.repeat(43)}`,
    ]) {
      const link = `${service.node.url}/console/oidc/start?login=${encodeURIComponent(login)}`
      expect((await visit(link, new Map())).response.status, login).toBe(400)
    }
  })
})
