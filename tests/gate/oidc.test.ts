import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startAnnals } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { CLIENT, startIssuer } from '../harness/oidc_issuer.ts'
import { type Project, useService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

const PUBLIC_URL = 'https://annals.example.com'
const CALLBACK = `${PUBLIC_URL}/console/oidc/callback`

const issuer = await startIssuer(CALLBACK)
const service = useService({
  ANNALS_PUBLIC_URL: PUBLIC_URL,
  ANNALS_OIDC_ISSUER: issuer.url,
  ANNALS_OIDC_CLIENT_ID: CLIENT.client_id,
  ANNALS_OIDC_CLIENT_SECRET: CLIENT.client_secret,
  ANNALS_OIDC_ALLOWED_DOMAINS: 'example.com,example.org',
  ANNALS_OIDC_ROLES_CLAIM: 'groups',
  ANNALS_BEHIND_TLS: 'true',
})
afterAll(() => issuer.close())

let project: Project
beforeEach(async () => {
  project = await service.newProject()
})
afterEach(() => {
  issuer.tamper = undefined
})

type Jar = Map<string, string>

/** Keeps the cookies of an answer, as a browser does, and returns the headers of those. */
function keep(jar: Jar, response: Response): string[] {
  const set = response.headers.getSetCookie()
  for (const cookie of set) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie)!
    if (/max-age=0/i.test(cookie) || value === '') jar.delete(name)
    else jar.set(name, value)
  }
  return set
}
const cookies = (jar: Jar) => [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
const visit = async (url: string, jar: Jar) => {
  const response = await fetch(url, { redirect: 'manual', headers: { cookie: cookies(jar) } })
  return { response, set: keep(jar, response), to: response.headers.get('location') ?? '' }
}
const here = (url: string) => url.replace(PUBLIC_URL, service.node.url)

/** Goes to the issuer as somebody, until it sends the browser back. */
async function goToIssuer(account: string, start = `${service.node.url}/console/oidc/start`) {
  issuer.account = account
  const browser: Jar = new Map()
  const begun = await visit(start, browser)
  expect(begun.response.status).toBe(303)
  const own: Jar = new Map()
  let at = begun.to
  for (let steps = 0; !at.startsWith(CALLBACK) && steps < 8; steps++) {
    const { to, response } = await visit(new URL(at, issuer.url).href, own)
    if (to === '') throw new Error(`${response.status} ${await response.text()}`)
    at = new URL(to, issuer.url).href
  }
  return { browser, back: at, begun }
}
const signIn = async (account: string, alter = (url: string) => url) => {
  const { browser, back } = await goToIssuer(account)
  const { to, set } = await visit(here(alter(back)), browser)
  return { browser, back, to, set }
}
const newAccount = (groups?: string[], more: object = {}) => {
  const id = randomUUID()
  const email = `${id}@example.com`
  issuer.accounts.set(id, { email, email_verified: true, ...(groups && { groups }), ...more })
  return { id, email }
}
const asks = (browser: Jar, path: string, of = project.id, method = 'GET', body?: object) =>
  fetch(`${service.node.url}${path}`, {
    method,
    headers: {
      cookie: cookies(browser),
      'x-annals-console': of,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
const mayRead = async (browser: Jar, of = project.id) =>
  (await asks(browser, '/console/api/v1/session', of)).status
const role = (name: string, of = project) => `annals:${of.id}:${name}`
const soon = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 90_000, interval: 500 })

describe('somebody who signs in at the issuer', () => {
  it('gets a session for each project of a group, in cookies that no script reads, and ends it', async () => {
    const other = await service.newProject()
    const { id } = newAccount([role('viewer'), role('admin', other), 'annals:nothing:admin', 'annals:x'])
    const { browser, to, set } = await signIn(id)
    expect(to).toBe('/console')
    expect([...browser.keys()].sort()).toEqual(
      [project, other].map((of) => `__Secure-annals_${of.id}`).sort(),
    )
    for (const cookie of set.filter((text) => !text.startsWith('__Secure-annals-oidc')))
      expect(cookie).toMatch(/Path=\/console; .*HttpOnly; SameSite=Strict; Secure/)
    expect(await mayRead(browser)).toBe(200)
    expect((await asks(browser, '/console/api/v1/members')).status).toBe(403)
    expect((await asks(browser, '/console/api/v1/members', other.id)).status).toBe(200)
    const copied = new Map(browser)
    expect((await asks(browser, '/console/sign_out', 'none', 'POST', { of: project.id })).status).toBe(200)
    expect(await mayRead(copied)).toBe(401)
    expect(await mayRead(copied, other.id)).toBe(200)
  })

  it('is led to the end of the session at the issuer with the last session that the browser has here', async () => {
    const other = await service.newProject()
    const { browser } = await signIn(newAccount([role('viewer'), role('viewer', other)]).id)
    const leave = async (of: string) => {
      const response = await asks(browser, '/console/sign_out', 'none', 'POST', { of })
      keep(browser, response)
      return ((await response.json()) as { data: { end_session_url?: string } }).data.end_session_url
    }
    expect(await leave(other.id)).toBeUndefined()
    const url = (await leave(project.id))!
    expect(url).toBe(`${issuer.url}/session/end?client_id=${CLIENT.client_id}`)
    expect((await fetch(url)).status).toBe(200)
    expect(await leave(project.id)).toBeUndefined()
  })

  it('takes an invitation of the address once, and keeps it though the address goes to somebody else', async () => {
    const { id, email } = newAccount()
    const key = await service
      .adminClient()
      .request<{ token: string }>('POST', `/admin/v1/projects/${project.id}/tokens`, {
        body: { name: 'a', scopes: ['admin'] },
      })
    const admin = service.rawClient(expectOk(key, 201).token)
    const body = { email, role: 'member' }
    expectOk(await admin.request('POST', '/api/v1/members', { body }), 201)
    const first = await signIn(id)
    expect(first.to).toBe('/console')
    expect(await mayRead(first.browser)).toBe(200)
    const thief = newAccount(undefined, { email })
    expect((await signIn(thief.id)).to).toBe('/console?sign_in_failed=no_project')
    expect((await signIn(id)).to).toBe('/console')
  })

  it.each([
    ['with an address that is not verified', { email_verified: false }],
    ['with an address of another domain', { email: 'ada@example.net' }],
    ['with an address that only ends like an allowed domain', { email: 'ada@evil-example.com' }],
  ])('is refused %s', async (_how, more) => {
    const { id } = newAccount([role('admin')], more)
    const { to, browser } = await signIn(id)
    expect(to).toBe('/console?sign_in_failed=address')
    expect([...browser.keys()]).toEqual([])
  })

  it('opens the administration as an owner, until no group says so', async () => {
    const { id } = newAccount(['annals:owner'])
    const { browser } = await signIn(id)
    const administrates = async () => (await asks(browser, '/console/admin/v1/projects', 'admin')).status
    expect(await administrates()).toBe(200)
    issuer.accounts.get(id)!.groups = []
    await signIn(id)
    expect(await administrates()).toBe(401)
  })

  it('loses what a group gave soon after it was taken away, and everything with the account', async () => {
    const [one, two] = [newAccount([role('member')]), newAccount([role('member')])]
    const [first, second] = [await signIn(one.id), await signIn(two.id)]
    const made = await asks(second.browser, '/console/api/v1/personal_tokens', project.id, 'POST', {
      name: 'laptop',
      expires_in_days: 9,
    })
    const { data } = (await made.json()) as { data: { token: string } }
    const byToken = async () => (await service.rawClient(data.token).request('GET', '/api/v1/ping')).status
    expect([await mayRead(first.browser), await mayRead(second.browser), await byToken()]).toEqual([
      200, 200, 200,
    ])
    const due = await queryRows<{ ms: number }>(
      service.databaseUrl,
      'SELECT max(extract(epoch FROM check_after - now()) * 1000)::int AS ms FROM people',
    )
    expect(due[0]!.ms).toBeLessThan(180_000)
    issuer.accounts.get(one.id)!.groups = []
    issuer.accounts.delete(two.id)
    await queryRows(service.databaseUrl, "UPDATE people SET check_after = now() - interval '1 s'")
    await soon(async () =>
      expect([await mayRead(first.browser), await mayRead(second.browser), await byToken()]).toEqual([
        401, 401, 401,
      ]),
    )
  })

  it('loses it as soon where hundreds are signed in, about each of whom the issuer is asked', async () => {
    const { id } = newAccount([role('viewer')])
    await signIn(id)
    // Accounts that are gone: with the token of another, the issuer says nothing of them.
    const copies = 350
    await queryRows(
      service.databaseUrl,
      `WITH gone AS (
  INSERT INTO people (id, issuer, subject, email, is_owner, refresh_token, check_after)
  SELECT gen_random_uuid(), p.issuer, 'gone ' || n, n || '@example.com', false, p.refresh_token, now() - interval '1 s'
  FROM people p, generate_series(1, $2::int) n WHERE p.subject = $3 RETURNING issuer, subject, email
), members AS (
  INSERT INTO members (id, project_id, email, issuer, subject, group_role, group_until, created_at)
  SELECT gen_random_uuid(), $1::uuid, email, issuer, subject, 'viewer', now() + interval '1 hour', now() FROM gone RETURNING id
)
INSERT INTO api_keys (id, project_id, token_hash, name, scopes, origin, created_at, expires_at, member_id)
SELECT gen_random_uuid(), $1::uuid, uuid_send(id), 'gone', '{read}', 'personal', now(), now() + interval '1 day', id FROM members`,
      [project.id, copies, id],
    )
    await soon(async () => {
      const [row] = await queryRows<{ ended: string; seconds: number }>(
        service.databaseUrl,
        `SELECT count(revoked_at) AS ended, extract(epoch FROM max(revoked_at) - min(revoked_at))::float8 AS seconds
         FROM api_keys WHERE project_id = $1 AND name = 'gone'`,
        [project.id],
      )
      expect(row!.ended).toBe(String(copies))
      // Between two looks for those who are due, 20 seconds pass.
      expect(row!.seconds).toBeLessThan(20)
    })
  })
})

describe('a sign-in is refused', () => {
  const refused = '/console?sign_in_failed=refused'
  const change = (name: string, value: string | undefined) => (url: string) => {
    const changed = new URL(url)
    if (value === undefined) changed.searchParams.delete(name)
    else changed.searchParams.set(name, value)
    return changed.href
  }

  it.each([
    ['the state of somebody else', change('state', 'x'.repeat(43))],
    ['no state', change('state', undefined)],
    ['the name of another issuer', change('iss', 'https://evil.example.com')],
    ['no name of the issuer', change('iss', undefined)],
    ['another code', change('code', 'y'.repeat(43))],
    [
      'an error instead of a code',
      (url: string) => change('error', 'access_denied')(change('code', undefined)(url)),
    ],
  ])('with %s', async (_how, alter) => {
    const { to, browser } = await signIn(newAccount([role('admin')]).id, alter)
    expect(to).toBe(refused)
    expect([...browser.keys()]).toEqual([])
  })

  it('with a code that was used, or in a browser that did not begin it', async () => {
    const { id } = newAccount([role('viewer')])
    const { browser, back, begun } = await goToIssuer(id)
    const another = await goToIssuer(id)
    expect((await visit(here(back), another.browser)).to).toBe(refused)
    expect((await visit(here(another.back), new Map())).to).toBe(refused)
    expect(begun.set[0]).toMatch(
      /^__Secure-annals-oidc=.*Path=\/console\/oidc; Max-Age=600; HttpOnly; SameSite=Lax; Secure/,
    )
    const kept = new Map(browser)
    await visit(here(back), browser)
    expect((await visit(here(back), kept)).to).toBe(refused)
  })

  it.each<[string, NonNullable<typeof issuer.tamper>]>([
    ['another nonce', (claims) => ({ ...claims, nonce: 'x' })],
    ['no nonce', ({ nonce: _, ...claims }) => claims],
    ['another audience', (claims) => ({ ...claims, aud: 'somebody-else' })],
    ['another issuer', (claims) => ({ ...claims, iss: 'https://evil.example.com' })],
    ['an end two minutes ago', (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1_000) - 120 })],
  ])('with a token that has %s', async (_how, tamper) => {
    issuer.tamper = tamper
    expect((await signIn(newAccount([role('admin')]).id)).to).toBe(refused)
  })

  it('by no clock that differs by a few seconds', async () => {
    const now_s = Math.floor(Date.now() / 1_000)
    issuer.tamper = (claims) => ({ ...claims, iat: now_s + 10, exp: now_s - 10 })
    expect((await signIn(newAccount([role('viewer')]).id)).to).toBe('/console')
  })

  it('with a key that the issuer does not publish, and not with a new one that it does', async () => {
    await issuer.rotate(false)
    expect((await signIn(newAccount([role('admin')]).id)).to).toBe(refused)
    await issuer.rotate(true)
    expect((await signIn(newAccount([role('viewer')]).id)).to).toBe('/console')
  })
})

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

  it('gets a personal token from a code that somebody pastes who signs in on any machine', async () => {
    const home = await mkdtemp(join(tmpdir(), 'annals-login-'))
    try {
      const env = { XDG_CONFIG_HOME: home, ANNALS_URL: '', ANNALS_API_KEY: '', ANNALS_TOKEN: '' }
      const command = startAnnals(['login', '--browser', '--url', service.node.url], env, 'pipe')
      const link = await vi.waitFor(
        () => /Sign in at (\S+)/.exec([...command.lines, ...command.logLines].join('\n'))![1]!,
        { timeout: 30_000 },
      )
      const { codes, set, response } = await followLink(newAccount([role('viewer')]).id, link)
      expect(set.every((cookie) => cookie.startsWith('__Secure-annals-oidc='))).toBe(true)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      command.child.stdin!.end(`${codes[0]}\n`)
      const done = await command.exited
      expect(done.code, done.stderr).toBe(0)
      expect(done.stderr).toContain(`Signed in to the project "${project.name}"`)
      const kept = await readFile(join(home, 'annals/profiles.json'), 'utf8')
      const token = /pat-annals-[\w-]+/.exec(kept)![0]
      expect(done.stdout + done.stderr).not.toContain(token)
      const api = service.rawClient(token)
      expect((await api.request('GET', '/api/v1/session')).status).toBe(200)
      expect((await api.request('POST', '/api/v1/session', { body: {} })).status).toBe(403)
      const { items } = expectOk(
        await api.request<{ items: Array<{ name: string }> }>('GET', '/api/v1/personal_tokens'),
      )
      expect(items[0]!.name).toMatch(/^annals login on /)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
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
    for (const login of ['', 'x', '"><script>', 'a'.repeat(44)]) {
      const link = `${service.node.url}/console/oidc/start?login=${encodeURIComponent(login)}`
      expect((await visit(link, new Map())).response.status, login).toBe(400)
    }
  })
})

it('a sign-in leads to the console and to the issuer, whatever the request says, and logs no secret', async () => {
  const response = await fetch(`${service.node.url}/console/oidc/start?to=https://evil.example.com`, {
    redirect: 'manual',
    headers: { 'x-forwarded-host': 'evil.example.com' },
  })
  const to = new URL(response.headers.get('location')!)
  expect(to.origin).toBe(issuer.url)
  expect(to.searchParams.get('redirect_uri')).toBe(CALLBACK)
  expect(to.searchParams.get('code_challenge_method')).toBe('S256')
  const { back } = await signIn(newAccount([role('admin')]).id, (url) => url.replace('state=', 'state=x'))
  const code = new URL(back).searchParams.get('code')!
  const logged = service.node.logLines.join('\n')
  expect(logged).toContain('a sign-in at the issuer was refused')
  expect(logged).not.toContain(code)
  expect(logged).not.toContain(CLIENT.client_secret)
})
