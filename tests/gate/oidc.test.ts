import { beforeEach, describe, expect, it, vi } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { CLIENT } from '../harness/oidc_issuer.ts'
import type { Project } from '../harness/service.ts'
import { CALLBACK, cookies, type Jar, keep, useSignIns, visit } from '../harness/sign_ins.ts'
import { queryRows } from '../harness/sql.ts'

const { issuer, service, here, goToIssuer, newAccount } = await useSignIns()

let project: Project
beforeEach(async () => {
  project = await service.newProject()
})

const signIn = async (account: string, alter = (url: string) => url) => {
  const { browser, back } = await goToIssuer(account)
  const { to, set } = await visit(here(alter(back)), browser)
  return { browser, back, to, set }
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
