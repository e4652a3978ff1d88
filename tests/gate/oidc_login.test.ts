import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { startAnnals } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Project } from '../harness/service.ts'
import { useSignIns, visit } from '../harness/sign_ins.ts'
import { queryRows } from '../harness/sql.ts'

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
      codes: [...page.matchAll(/\/\?code=([\w-]{43})&amp;/g)].map(([, code]) => code!),
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
  const startOf = (login: string) => `${service.node.url}/console/oidc/start?login=${login}`
  const loopbackOf = (verifier: string) => `${digest(verifier)}.8030.${'s'.repeat(43)}`
  async function newCode() {
    const verifier = randomBytes(32).toString('base64url')
    const { id } = newAccount([role('member')])
    const shown = await followLink(id, startOf(loopbackOf(verifier)))
    return { verifier, code: shown.codes[0]!, name: 'a test', ...shown }
  }
  /** What a button of the page sends. */
  const formIn = (page: string, decision: string) => {
    const form = new RegExp(
      `<form.*name="user_code" value="([^"]+)".*name="ticket" value="([^"]+)".*"${decision}"`,
    )
    const [, user_code, ticket] = form.exec(page)!
    return { user_code: user_code!, ticket: ticket!, decision }
  }
  const decide = async (form: Record<string, string>, headers: Record<string, string> = {}) => {
    const sent = { method: 'POST', headers, body: new URLSearchParams(form) }
    const response = await fetch(`${service.node.url}/console/oidc/device/decision`, sent)
    return { status: response.status, text: await response.text() }
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
        () => /(?:Sign in at|Open) (\S+)/.exec([...command.lines, ...command.logLines].join('\n'))![1]!,
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

  it('gets a personal token when somebody approves it who signs in on any machine', async () => {
    const api = await runLogin(['--no-browser'], {}, async (command, link) => {
      const { page, set, response } = await followLink(newAccount([role('viewer')]).id, link)
      expect(set.every((cookie) => cookie.startsWith('__Secure-annals-oidc='))).toBe(true)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      const [, code] = /login=([A-Z]{4}-[A-Z]{4})$/.exec(link)!
      expect(command.logLines.join('\n')).toContain(`approve the code ${code}`)
      for (const shown of [
        code,
        `annals login on ${hostname()}`,
        '127.0.0.1',
        project.name,
        'refuse: whoever',
      ])
        expect(page).toContain(shown)
      expect((await decide(formIn(page, 'approve'))).text).toContain('is signed in')
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

    it('gets one by a click', async () => {
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
      await runLogin(['--browser'], over_ssh, async (_command, link) => {
        const { page } = await followLink(newAccount([role('viewer')]).id, link)
        expect(linkIn(page)).toBeUndefined()
        await decide(formIn(page, 'approve'))
      })
    })
  })

  it('shows a code for each project, and none to somebody who is in no project', async () => {
    const other = await service.newProject()
    const link = startOf(loopbackOf('x'))
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
      'BCDF-GHJA',
      'BCDF-GHJK.8030',
      'a'.repeat(44),
      there,
      `${there}.x`,
      `${there}/.${'b'.repeat(43)}`,
    ]) {
      const { response } = await visit(startOf(encodeURIComponent(login)), new Map())
      expect(response.status, login).toBe(400)
    }
  })

  describe('where there is no browser', () => {
    interface Polled {
      data: { device_code: string; user_code: string; token: string }
      msg: string
      error: string
    }
    const begin = () => post('/console/oidc/device', { name: 'a <b>device</b>' })
    const post = async (path: string, sent: object) => {
      const response = await fetch(`${service.node.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(sent),
      })
      const { data, msg, error } = (await response.json()) as Polled
      return { status: response.status, data, msg, error }
    }
    const poll = ({ device_code }: { device_code: string }) =>
      post('/console/oidc/device/token', { device_code })
    const look = (user_code: string, account = newAccount([role('member')]).id) =>
      followLink(account, startOf(user_code))
    const sql = (text: string) => queryRows(service.databaseUrl, text)
    afterEach(() => sql('DELETE FROM device_logins'))

    it('gives the token once, to whoever knows the secret, and says how to go on until then', async () => {
      const { data } = await begin()
      expect(data.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
      expect((await poll(data)).data).toEqual({ status: 'slow_down' })
      await sql('UPDATE device_logins SET polled_until = 0')
      expect((await poll(data)).data).toEqual({ status: 'pending' })
      expect((await poll(data)).data).toEqual({ status: 'slow_down' })
      const { page } = await look(data.user_code.toLowerCase())
      expect(page).toContain('a &#60;b&#62;device&#60;/b&#62;')
      await decide(formIn(page, 'approve'))
      expect((await poll({ device_code: randomBytes(32).toString('base64url') })).status).toBe(401)
      const polls = await Promise.all([poll(data), poll(data), poll(data)])
      const [taken, ...others] = polls.sort((one, other) => one.status - other.status)
      expect(taken!.data).toMatchObject({ project: project.name, name: 'a <b>device</b>' })
      expect(others.map(({ status }) => status)).toEqual([401, 401])
      const answer = await service.rawClient(taken!.data.token).request('GET', '/api/v1/session')
      expect(answer.status).toBe(200)
      expect(await sql('SELECT user_code FROM device_logins')).toEqual([])
    })

    it('lets the first decision count, of two people and of two tabs', async () => {
      const { data } = await begin()
      const pages = [await look(data.user_code), await look(data.user_code)].map(({ page }) => page)
      const [first, second] = pages.map((page) => formIn(page, 'approve'))
      const texts = (await Promise.all([decide(first!), decide(second!)])).map(({ text }) => text)
      expect(texts.filter((text) => text.includes('is signed in'))).toHaveLength(1)
      expect(texts.filter((text) => text.includes('Nobody waits'))).toHaveLength(1)
      expect((await look(data.user_code)).page).toContain('Nobody waits')
    })

    it('gives nothing to a command that was refused, and says so', async () => {
      const { data } = await begin()
      const { page } = await look(data.user_code)
      expect((await decide(formIn(page, 'refuse'))).text).toContain('was refused')
      expect(await poll(data)).toMatchObject({ status: 401, msg: 'The sign-in was refused in the browser.' })
    })

    it('takes no decision without the ticket of the page, once, whatever the page of another sends', async () => {
      const [{ data }, { data: other }] = [await begin(), await begin()]
      const { page } = await look(data.user_code)
      const form = formIn(page, 'approve')
      const evil = { origin: 'https://evil.example.com' }
      expect((await decide({ ...form, ticket: randomBytes(32).toString('base64url') }, evil)).status).toBe(
        401,
      )
      expect((await decide({ ...form, ticket: '' })).status).toBe(400)
      expect((await decide({ ...form, user_code: other.user_code })).status).toBe(401)
      expect((await decide(form)).status).toBe(200)
      expect((await decide(form)).status).toBe(401)
      const headers = { 'x-annals-console': 'none', 'content-type': 'application/json' }
      const sent = { method: 'POST', headers, body: JSON.stringify({ code: formIn(page, 'refuse').ticket }) }
      expect((await fetch(`${service.node.url}/console/sign_in`, sent)).status).toBe(401)
    })

    it('ends after ten minutes, approved or not', async () => {
      const [{ data: late }, { data: unused }] = [await begin(), await begin()]
      const { page } = await look(late.user_code)
      const { page: approved } = await look(unused.user_code)
      await decide(formIn(approved, 'approve'))
      await sql("UPDATE device_logins SET created_at = now() - interval '10 minutes'")
      expect((await decide(formIn(page, 'approve'))).text).toContain('Nobody waits')
      expect((await look(late.user_code)).page).toContain('Nobody waits')
      for (const one of [late, unused]) expect((await poll(one)).status).toBe(401)
      await begin()
      expect(await sql('SELECT user_code FROM device_logins')).toHaveLength(1)
    })

    it('ends with the membership of whoever approved it', async () => {
      const { data } = await begin()
      const { page } = await look(data.user_code)
      await decide(formIn(page, 'approve'))
      await sql('DELETE FROM members')
      expect((await poll(data)).status).toBe(401)
    })

    it('asks nobody who is in no project', async () => {
      const { data } = await begin()
      const { response } = await look(data.user_code, newAccount().id)
      expect(response.headers.get('location')).toBe('/console?sign_in_failed=no_project')
    })

    it('lets nobody try codes, and no address fill the list', async () => {
      const account = newAccount([role('member')]).id
      const { data } = await begin()
      expect((await look('BCDF-GHJK', account)).page).toContain('Nobody waits')
      await sql('UPDATE people SET looks_until = extract(epoch FROM now()) + 19 * 30')
      expect((await look(data.user_code, account)).page).toContain(data.user_code)
      for (const _ of [1, 2]) expect((await look(data.user_code, account)).response.status).toBe(429)
      await sql('UPDATE people SET looks_until = looks_until - 60')
      expect((await look(data.user_code, account)).page).toContain(data.user_code)
      for (let waiting = 1; waiting < 20; waiting++) expect((await begin()).status).toBe(200)
      expect((await begin()).status).toBe(503)
    })
  })

  it('is told to be updated where it is older than the service, or the service older than it', async () => {
    const { response } = await visit(startOf(digest('x')), new Map())
    expect([response.status, (await response.json()).msg]).toEqual([400, expect.stringContaining('is older')])
    const old = createServer((_request, response) => response.writeHead(404).end('{}')).listen(0, '127.0.0.1')
    await once(old, 'listening')
    const url = `http://127.0.0.1:${(old.address() as AddressInfo).port}`
    const command = startAnnals(['login', '--no-browser', '--url', url], {}, 'pipe')
    const { code, stderr } = await command.exited
    old.close()
    expect([code, stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('is older than this command'),
    ])
    expect(code).not.toBe(0)
  })
})
