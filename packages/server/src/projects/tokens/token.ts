import { createHash, hash, randomBytes } from 'node:crypto'

/**
 * `append` allows nothing but appends and new sessions, and `ingest` nothing but sending what instrumented programs report;
 * `write` allows both as well. `admin` allows nothing but a project's own keys.
 */
export const SCOPES = ['read', 'write', 'append', 'ingest', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** Of people in a project, the highest first. */
export const ROLES = ['admin', 'member', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** The scopes that a role allows. */
export const SCOPES_OF: Readonly<Record<Role, readonly Scope[]>> = {
  admin: SCOPES,
  member: ['read', 'write', 'append', 'ingest'],
  viewer: ['read'],
}

/** Those of a key that may do everything. */
export const ALL_SCOPES: readonly Scope[] = ['read', 'write']

// sk-annals-<43 characters: 256 random bits>-<6 characters: checksum of the part before>
const OURS = /^(?:sk|pat)-annals-[\w-]{43}-[\w-]{6}$/
const RANDOM_BYTES = 32
const CHECKSUM_LENGTH = 6

/** A new secret token: 256 random bits with a checksum, which distinguishes a typing error from a revocation. */
export function mintToken(kind: 'sk' | 'pat' = 'sk'): string {
  const body = `${kind}-annals-${randomBytes(RANDOM_BYTES).toString('base64url')}`
  return `${body}-${checksum(body)}`
}

/** Whether a token has our form but was mistyped. Tokens of another form are the operator's own. */
export function isMistyped(token: string): boolean {
  return OURS.test(token) && checksum(token.slice(0, -CHECKSUM_LENGTH - 1)) !== token.slice(-CHECKSUM_LENGTH)
}

/** The hash that is stored and looked up instead of a token. Comparing it reveals nothing about the token. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

function checksum(body: string): string {
  return createHash('sha256').update(`checksum:${body}`).digest('base64url').slice(0, CHECKSUM_LENGTH)
}
