import { LRUCache } from 'lru-cache'
import type { Queryable } from '../../postgres/database.js'
import { type Grant, KeyLookUps, type LookUp } from './key_look_ups.js'
import { hashToken, isMistyped, isSameToken } from './token.js'

interface HashedToken {
  token: string
  hash: Buffer
  /** The hash as a key. */
  id: string
}

const TOKENS_REMEMBERED_MAX = 10_000
/** An unknown token is looked up again soon: it may be about to be created. */
const UNKNOWN_KEPT_MS = 1_000

/**
 * Caches for a short time which project a token belongs to, so that a request costs no query and every node notices a
 * revocation within `kept_ms`. From half that age on, an entry in use is refreshed in the background. The cache holds
 * hashes. Of tokens themselves, only the last one of each open connection is kept, because the next request probably
 * uses it, and hashing it would be one of the most expensive parts of a small append.
 *
 * Invalid tokens are cached and looked up separately, so that guesses evict no valid token, and delay no valid
 * token's refresh.
 */
export class TokenDirectory {
  private readonly valid = new LRUCache<string, LookUp & { grant: Grant }>({ max: TOKENS_REMEMBERED_MAX })
  /** When tokens were found to be invalid. */
  private readonly refused = new LRUCache<string, number>({ max: TOKENS_REMEMBERED_MAX })
  private readonly hashes = new WeakMap<object, HashedToken>()
  private readonly pending = new Map<string, { since: number; lookUp: Promise<LookUp> }>()
  private readonly renewals: KeyLookUps
  private readonly firstLookUps: KeyLookUps

  constructor(
    database: Queryable,
    private readonly kept_ms: number,
  ) {
    this.renewals = new KeyLookUps(database)
    this.firstLookUps = new KeyLookUps(database)
  }

  /**
   * The grant of a token, undefined if it is unknown, revoked or expired; synchronously if it is cached.
   * @param connection that it came over, if any
   * @param caller whose address has a share of the look-ups of uncached tokens
   * @throws AnnalsError unavailable, overloaded
   */
  find(
    token: string,
    connection?: object,
    caller?: { readonly address: string },
  ): Grant | undefined | Promise<Grant | undefined> {
    const { hash, id } = this.hashed(token, connection)
    const known = this.valid.get(id)
    if (!known) {
      if (this.isRefused(id) || isMistyped(token)) return undefined
      return this.lookUp(id, hash, caller).then(({ grant }) => stillValid(grant))
    }
    const age = performance.now() - known.looked_up_at
    if (age >= this.kept_ms) return this.lookUp(id, hash).then(({ grant }) => stillValid(grant))
    // A failure here is not this caller's: once the entry is too old, the next caller gets the error.
    if (age >= this.kept_ms / 2) this.lookUp(id, hash).catch(() => {})
    return stillValid(known.grant)
  }

  /** The same as the database has it now. */
  async findNow(token: string, caller: { readonly address: string }): Promise<Grant | undefined> {
    if (isMistyped(token)) return undefined
    const { hash, id } = this.hashed(token, undefined)
    const found = await this.firstLookUps.find(hash, caller.address)
    this.remember(id, found)
    return stillValid(found.grant)
  }

  /** The project of a cached token, however old the entry: only good for counting. */
  projectOf(token: string, connection: object): string | undefined {
    return this.valid.peek(this.hashed(token, connection).id)?.grant.project_id
  }

  private hashed(token: string, connection: object | undefined): HashedToken {
    const last = connection && this.hashes.get(connection)
    if (last && isSameToken(last.token, token)) return last
    const hash = hashToken(token)
    const hashed = { token, hash, id: hash.toString('latin1') }
    if (connection) this.hashes.set(connection, hashed)
    return hashed
  }

  private isRefused(id: string): boolean {
    const looked_up_at = this.refused.get(id)
    if (looked_up_at === undefined) return false
    return performance.now() - looked_up_at < Math.min(this.kept_ms, UNKNOWN_KEPT_MS)
  }

  private lookUp(id: string, hash: Buffer, caller?: { readonly address: string }): Promise<LookUp> {
    const under_way = this.pending.get(id)
    // A look-up that took too long may return a grant from before a revocation.
    if (under_way && performance.now() - under_way.since < this.kept_ms) return under_way.lookUp
    const asked = this.valid.has(id)
      ? this.renewals.find(hash, '')
      : this.firstLookUps.find(hash, caller?.address ?? '')
    const lookUp = asked
      .then((found) => {
        this.remember(id, found)
        return found
      })
      .finally(() => {
        if (this.pending.get(id)?.lookUp === lookUp) this.pending.delete(id)
      })
    this.pending.set(id, { since: performance.now(), lookUp })
    return lookUp
  }

  private remember(id: string, { grant, looked_up_at }: LookUp): void {
    if (grant) {
      this.valid.set(id, { grant, looked_up_at })
    } else {
      this.valid.delete(id)
      this.refused.set(id, looked_up_at)
    }
  }
}

function stillValid(grant: Grant | undefined): Grant | undefined {
  return grant?.expires_at_ms !== undefined && grant.expires_at_ms <= Date.now() ? undefined : grant
}
