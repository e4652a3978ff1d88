import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as jose from 'jose'
import Provider from 'oidc-provider'

export const CLIENT = { client_id: 'annals', client_secret: 'a-secret-of-at-least-32-characters' }

export interface Account {
  email: string
  email_verified: boolean
  groups?: string[]
}

type Claims = jose.JWTPayload

/** A real issuer (`oidc-provider`), of which a test may change accounts, keys, and what a token says. */
export interface TestIssuer {
  url: string
  accounts: Map<string, Account>
  /** Who signs in next. */
  account: string
  /** Changes the next ID tokens before they are signed. */
  tamper: ((claims: Claims) => Claims) | undefined
  /** Signs ID tokens with another key from now on; `published`: which is among the issuer's keys, instead of the old one. */
  rotate(published: boolean): Promise<void>
  close(): Promise<void>
}

export async function startIssuer(redirect_uri: string): Promise<TestIssuer> {
  const { server, url } = await listen()
  const first = await makeKey('first')
  let signer = first
  let published: object[] | undefined
  const issuer: TestIssuer = {
    url,
    accounts: new Map(),
    account: '',
    tamper: undefined,
    rotate: async (is_published) => {
      signer = await makeKey(`key-${Math.random()}`)
      if (is_published) published = [signer.open]
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const provider = new Provider(url, {
    clients: [
      {
        ...CLIENT,
        redirect_uris: [redirect_uri],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    jwks: { keys: [first.jwk] },
    cookies: { keys: ['a key of a test'] },
    scopes: ['openid', 'email', 'groups', 'offline_access'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: false } },
    issueRefreshToken: async () => true,
    findAccount: async (_context, id) => {
      const account = issuer.accounts.get(id)
      return account && { accountId: id, claims: async () => ({ sub: id, ...account }) }
    },
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client!.clientId,
        accountId: oidc.session!.accountId!,
      })
      grant.addOIDCScope('openid email groups offline_access')
      await grant.save()
      return grant
    },
    interactions: { url: () => '/who' },
    renderError: (context, out) => {
      context.body = out
    },
  })
  provider.use(async (context, next) => {
    if (context.path === '/who')
      return provider.interactionFinished(context.req, context.res, { login: { accountId: issuer.account } })
    await next()
    if (context.path === '/jwks' && published) context.body = { keys: published }
    const body = context.body as { id_token?: string } | undefined
    if (context.path === '/token' && body?.id_token && (issuer.tamper || signer !== first)) {
      const claims = jose.decodeJwt(body.id_token)
      const id_token = await new jose.SignJWT(issuer.tamper?.(claims) ?? claims)
        .setProtectedHeader({ alg: 'RS256', kid: signer.kid })
        .sign(signer.secret)
      context.body = { ...body, id_token }
    }
    return undefined
  })
  server.on('request', provider.callback())
  return issuer
}

async function makeKey(kid: string) {
  const pair = await jose.generateKeyPair('RS256', { extractable: true })
  const jwk = { ...(await jose.exportJWK(pair.privateKey)), kid, alg: 'RS256', use: 'sig' }
  const open = { ...(await jose.exportJWK(pair.publicKey)), kid, alg: 'RS256', use: 'sig' }
  return { kid, secret: pair.privateKey, jwk, open }
}

async function listen() {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
