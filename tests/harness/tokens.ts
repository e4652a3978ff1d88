import * as jose from 'jose'
import { expectOk } from './expectations.ts'
import type { HttpClient } from './http_client.ts'
import { queryRows } from './sql.ts'

export interface IssuedToken {
  id: string
  name: string
  scopes: string[]
  expires_at: string | null
  token: string
}

/** One more token of a project, made through the admin API. */
export async function issueToken(
  admin: HttpClient,
  projectId: string,
  body: { name: string; scopes?: string[]; expires_at?: string },
): Promise<IssuedToken> {
  const path = `/admin/v1/projects/${projectId}/tokens`
  return expectOk(await admin.request<IssuedToken & Record<string, unknown>>('POST', path, { body }), 201)
}

/** A key with which the installation signs tokens, as whoever read its database would have it. */
export async function signingKey(databaseUrl: string, kid: string) {
  const rows = await queryRows<{ secret: jose.JWK }>(
    databaseUrl,
    'SELECT secret FROM signing_keys WHERE generation = $1',
    [Number(kid)],
  )
  const { d, ...open } = rows[0]!.secret
  if (!/^[\w-]{43}$/.test(d ?? '')) throw new Error('This is no secret of Ed25519.')
  const secret = (await jose.importJWK(rows[0]!.secret, 'EdDSA')) as jose.CryptoKey
  return { secret, publicKey: (await jose.importJWK(open, 'EdDSA', { extractable: true })) as jose.CryptoKey }
}

/** A token that says the same and expires when a test wants it to. */
export async function expiring(databaseUrl: string, token: string, exp: number): Promise<string> {
  const header = jose.decodeProtectedHeader(token) as jose.JWTHeaderParameters
  const { secret } = await signingKey(databaseUrl, header.kid!)
  return await new jose.SignJWT({ ...jose.decodeJwt(token), exp }).setProtectedHeader(header).sign(secret)
}
