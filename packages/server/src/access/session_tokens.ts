import { AnnalsError } from '@annals/kits/errors.js'
import { SHARED_HEADERS } from '@annals/kits/http/answer/cors.js'
import { newId } from '@annals/kits/ids.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { Remembered } from '@annals/kits/postgres/remembered.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { JWTPayload } from 'jose'
import { LRUCache } from 'lru-cache'
import { allows, type NarrowTokens } from '../projects/authenticate.js'
import { type Grant, grantOf, type NarrowGrant, type Sessions } from '../projects/tokens/key_look_ups.js'
import { hashToken } from '../projects/tokens/token.js'
import { FIND_PARENT_KEY } from './access_queries.js'
import { answerAbsent } from './reach.js'
import { ALGORITHM, SigningKeys } from './signing_keys.js'

/** Of tokens: what a page, a runner or a partner may do with the sessions that it reaches. */
export const TOKEN_SCOPES = ['read', 'append', 'inbox', 'resolve'] as const
export type TokenScope = (typeof TOKEN_SCOPES)[number]

export interface TokenRequest {
  for: Sessions
  scopes: readonly TokenScope[]
  ttl_s: number
  origin: string | undefined
}

interface Claims extends JWTPayload {
  jti: string
  exp: number
  /** The id of the key that it was made with. */
  key: string
  for: Sessions
  scopes: string[]
  origin?: string
}

interface Verified {
  claims: Claims
  generation: string
  parent: Grant | undefined
  grant: Grant | undefined
}

const TYPE = 'annals+jwt'
const AUDIENCE = 'annals'
/** How our tokens begin, since this is how their headers do: a forged one with another header is an unknown key. */
const BEGINNING = Buffer.from(`{"typ":"${TYPE}",`).subarray(0, 18).toString('base64url')
const VERIFIED_MAX = 10_000
/** A token that was refused may have been signed with a key that this node does not know yet. */
const REFUSED_KEPT_MS = 1_000

/**
 * Tokens that reach only some sessions: signed, and stored nowhere. They end when they expire, with the key that they were
 * made with, or with the key that signed them. A token is verified once, and then remembered by its hash.
 */
export class SessionTokens implements NarrowTokens {
  private readonly verified = new LRUCache<string, Verified>({ max: VERIFIED_MAX })
  private readonly refused = new LRUCache<string, true>({ max: VERIFIED_MAX, ttl: REFUSED_KEPT_MS })
  private readonly keys: SigningKeys
  private readonly parents: Remembered<{ grant: Grant | undefined }>

  constructor(database: Queryable, kept_ms: number) {
    this.keys = new SigningKeys(database, kept_ms)
    this.parents = new Remembered(kept_ms, async (key_id) => {
      const looked_up_at = performance.now()
      const [row] = await database.query(FIND_PARENT_KEY, [key_id])
      return { grant: row && grantOf(row, looked_up_at) }
    })
  }

  readonly beginning = BEGINNING
  readonly answerAbsent = answerAbsent

  refuse(
    token: string,
    grant: Grant | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): AnnalsError | undefined {
    const { origin } = request.headers
    const allowed = this.originOf(token)
    if (allowed !== undefined) {
      if (origin !== undefined && origin !== allowed)
        return new AnnalsError(
          'insufficient_scope',
          'This token is for pages of another origin. Create one with the origin of this page.',
        )
      reply.headers({ 'access-control-allow-origin': allowed, vary: 'Origin', ...SHARED_HEADERS })
    }
    const { reach, absent } = request.routeOptions.config
    // Before a body is read, which may be large.
    return grant && reach === undefined && absent === undefined
      ? new AnnalsError('insufficient_scope', 'This token reaches only sessions. Use an API key.')
      : undefined
  }

  async find(token: string): Promise<Grant | undefined> {
    const id = idOf(token)
    if (this.refused.has(id)) return undefined
    let known = this.verified.get(id)
    if (!known) {
      known = await this.verify(token)
      if (!known) {
        this.refused.set(id, true)
        return undefined
      }
      this.verified.set(id, known)
    }
    if (known.claims.exp * 1_000 <= Date.now() || !(await this.keys.verifies(known.generation)))
      return undefined
    const { grant: parent } = await this.parents.find(known.claims.key)
    if (parent?.expires_at_ms !== undefined && parent.expires_at_ms <= Date.now()) return undefined
    if (parent !== known.parent) {
      known.parent = parent
      known.grant = parent && { ...parent, ...narrowed(known.claims, parent) }
    }
    return known.grant
  }

  /** The project of a token that was verified before; good for counting. */
  projectOf(token: string): string | undefined {
    return this.verified.peek(idOf(token))?.grant?.project_id
  }

  private originOf(token: string): string | undefined {
    return this.verified.peek(idOf(token))?.claims.origin
  }

  async issue(key_id: string, { for: reach, scopes, ttl_s, origin }: TokenRequest) {
    const { SignJWT } = await import('jose')
    const { generation, installation, key } = await this.keys.signer()
    const now_s = Math.floor(Date.now() / 1_000)
    const token = await new SignJWT({ key: key_id, for: reach, scopes, ...(origin && { origin }) })
      .setProtectedHeader({ typ: TYPE, alg: ALGORITHM, kid: generation })
      .setIssuer(installation)
      .setAudience(AUDIENCE)
      .setJti(newId())
      .setIssuedAt(now_s)
      .setExpirationTime(now_s + ttl_s)
      .sign(key)
    return { token, expires_at: new Date((now_s + ttl_s) * 1_000).toISOString() }
  }

  /** Undefined: it is forged, or was signed with a key that verifies no more. @throws AnnalsError unavailable */
  private async verify(token: string): Promise<Verified | undefined> {
    const { decodeProtectedHeader, errors, jwtVerify } = await import('jose')
    try {
      const { kid } = decodeProtectedHeader(token)
      const found = await this.keys.find(kid)
      if (!found) return undefined
      const { payload } = await jwtVerify(token, found.key, {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: found.installation,
        audience: AUDIENCE,
        requiredClaims: ['jti', 'exp', 'key', 'for', 'scopes'],
        // Whether it has expired is asked at every use; who knows it may be told then that it did.
        currentDate: new Date(0),
      })
      return { claims: payload as Claims, generation: kid!, parent: undefined, grant: undefined }
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
      throw error
    }
  }
}

function idOf(token: string): string {
  return hashToken(token).toString('latin1')
}

/** The scopes that a token still has: the role of the person who made it may have changed. */
function narrowed({ jti, exp, for: reach, scopes }: Claims, parent: Grant): Pick<Grant, 'scopes' | 'narrow'> {
  const narrow: NarrowGrant = {
    id: jti,
    reach,
    reach_text: JSON.stringify(reach),
    expires_at_ms: exp * 1_000,
  }
  return { scopes: new Set(scopes.filter((scope) => allows(parent, scope as TokenScope))), narrow }
}
