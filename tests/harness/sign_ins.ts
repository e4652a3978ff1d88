import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, expect } from 'vitest'
import { CLIENT, startIssuer } from './oidc_issuer.ts'
import { useService } from './service.ts'

const PUBLIC_URL = 'https://annals.example.com'
export const CALLBACK = `${PUBLIC_URL}/console/oidc/callback`

/** The cookies of a browser. */
export type Jar = Map<string, string>

/** Keeps the cookies of an answer, as a browser does, and returns the headers of those. */
export function keep(jar: Jar, response: Response): string[] {
  const set = response.headers.getSetCookie()
  for (const cookie of set) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie)!
    if (/max-age=0/i.test(cookie) || value === '') jar.delete(name)
    else jar.set(name, value)
  }
  return set
}
export const cookies = (jar: Jar) => [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
export const visit = async (url: string, jar: Jar) => {
  const response = await fetch(url, { redirect: 'manual', headers: { cookie: cookies(jar) } })
  return { response, set: keep(jar, response), to: response.headers.get('location') ?? '' }
}

/** A service at which people sign in at a real issuer. */
export async function useSignIns() {
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
  afterEach(() => {
    issuer.tamper = undefined
  })
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
  const newAccount = (groups?: string[], more: object = {}) => {
    const id = randomUUID()
    const email = `${id}@example.com`
    issuer.accounts.set(id, { email, email_verified: true, ...(groups && { groups }), ...more })
    return { id, email }
  }
  return { issuer, service, here, goToIssuer, newAccount }
}
