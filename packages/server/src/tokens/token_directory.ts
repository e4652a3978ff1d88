import { LRUCache } from 'lru-cache'
import type { Queryable } from '../database/database.js'
import { FIND_API_KEY } from '../database/queries/projects.js'
import { hashToken, isMistyped, isSameToken } from './token.js'

/** What a valid token opens. */
export interface Grant {
  key_id: string
  project_id: string
  scopes: ReadonlySet<string>
  expires_at_ms: number | undefined
  /** The project's own limit for each of its tokens; 0: none; undefined: the service's. */
  rate_limit_per_second: number | undefined
}

interface HashedToken {
  token: string
  hash: Buffer
  /** The hash as a key. */
  id: string
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
 * background. What is remembered are hashes. Of a token itself, the last one of each open connection is, which is likely
 * to be the next one's: its hash would otherwise be one of the dearest parts of a small append.
 */
export class TokenDirectory {
  private readonly lookups = new LRUCache<string, Lookup>({ max: TOKENS_REMEMBERED_MAX })
  private readonly hashes = new WeakMap<object, HashedToken>()
  private readonly pending = new Map<string, { since: number; lookup: Promise<Lookup> }>()

  constructor(
    private readonly database: Queryable,
    private readonly kept_ms: number,
  ) {}

  /**
   * The grant of a token, undefined when it is unknown, revoked or expired; at once where it is remembered.
   * @param connection that it came over, if any
   * @throws AnnalsError unavailable
   */
  find(token: string, connection?: object): Grant | undefined | Promise<Grant | undefined> {
    const { hash, id } = this.hashed(token, connection)
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
  projectOf(token: string, connection: object): string | undefined {
    return this.lookups.peek(this.hashed(token, connection).id)?.grant?.project_id
  }

  private hashed(token: string, connection: object | undefined): HashedToken {
    const last = connection && this.hashes.get(connection)
    if (last && isSameToken(last.token, token)) return last
    const hash = hashToken(token)
    const hashed = { token, hash, id: hash.toString('latin1') }
    if (connection) this.hashes.set(connection, hashed)
    return hashed
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
