import { LRUCache } from 'lru-cache'
import type { Queryable } from '../database/database.js'
import { FIND_API_KEY } from '../database/queries/projects.js'
import { hashToken, isMistyped } from './token.js'

export const SCOPES = ['read', 'write'] as const
export type Scope = (typeof SCOPES)[number]

/** What a valid token opens. */
export interface Grant {
  key_id: string
  project_id: string
  scopes: ReadonlySet<string>
  expires_at_ms: number | undefined
  /** The project's own limit for each of its tokens; 0: none; undefined: the service's. */
  rate_limit_per_second: number | undefined
}

interface Lookup {
  grant: Grant | undefined
  looked_up_at: number
}

const TOKENS_REMEMBERED_MAX = 10_000
/** An unknown token is asked for again soon: it may be about to be created. */
const UNKNOWN_KEPT_MS = 1_000

/**
 * Which project a token opens, remembered for a short time, so that a request costs no query and a revocation
 * is still seen by every node within `kept_ms`. From half that age on, an entry in use is renewed in the
 * background. Tokens themselves are not kept, only their hashes.
 */
export class TokenDirectory {
  private readonly lookups = new LRUCache<string, Lookup>({ max: TOKENS_REMEMBERED_MAX })
  private readonly pending = new Map<string, { since: number; lookup: Promise<Lookup> }>()

  constructor(
    private readonly database: Queryable,
    private readonly kept_ms: number,
  ) {}

  /**
   * The grant of a token, undefined when it is unknown, revoked or expired; at once where it is remembered.
   * @throws AnnalsError unavailable
   */
  find(token: string): Grant | undefined | Promise<Grant | undefined> {
    const hash = hashToken(token)
    const id = hash.toString('latin1')
    const known = this.lookups.get(id)
    const age = known ? performance.now() - known.looked_up_at : Number.POSITIVE_INFINITY
    const kept = known?.grant ? this.kept_ms : Math.min(this.kept_ms, UNKNOWN_KEPT_MS)
    if (!known || age >= kept) {
      return isMistyped(token) ? undefined : this.lookUp(id, hash).then(({ grant }) => stillValid(grant))
    }
    // A failure here is not the caller's: when the entry is too old, the next caller meets it.
    if (age >= kept / 2) this.lookUp(id, hash).catch(() => {})
    return stillValid(known.grant)
  }

  /** The project of a token that is remembered, however long ago it was looked up: good for nothing but counting. */
  projectOf(token: string): string | undefined {
    return this.lookups.peek(hashToken(token).toString('latin1'))?.grant?.project_id
  }

  private lookUp(id: string, hash: Buffer): Promise<Lookup> {
    const under_way = this.pending.get(id)
    // One that a slow database has kept for too long may bring an answer from before a revocation.
    if (under_way && performance.now() - under_way.since < this.kept_ms) return under_way.lookup
    const lookup = this.ask(hash)
      .then((answer) => {
        this.lookups.set(id, answer)
        return answer
      })
      .finally(() => {
        if (this.pending.get(id)?.lookup === lookup) this.pending.delete(id)
      })
    this.pending.set(id, { since: performance.now(), lookup })
    return lookup
  }

  private async ask(hash: Buffer): Promise<Lookup> {
    // Taken before the question: a revocation during it counts as later.
    const looked_up_at = performance.now()
    const [row] = await this.database.query(FIND_API_KEY, [hash])
    const grant = row && {
      key_id: row.id!,
      project_id: row.project_id!,
      scopes: new Set(row.scopes!.split(' ')),
      expires_at_ms: numberOf(row.expires_at_ms),
      rate_limit_per_second: numberOf(row.rate_limit_per_second),
    }
    return { grant, looked_up_at }
  }
}

function numberOf(value: string | null | undefined): number | undefined {
  return value == null ? undefined : Number(value)
}

function stillValid(grant: Grant | undefined): Grant | undefined {
  return grant?.expires_at_ms !== undefined && grant.expires_at_ms <= Date.now() ? undefined : grant
}
