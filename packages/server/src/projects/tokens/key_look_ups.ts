import { AnnalsError } from '@annals/kits/errors.js'
import { FairQueue } from '@annals/kits/fairness/fair_queue.js'
import type { Queryable, Row } from '@annals/kits/postgres/database.js'
import { FIND_API_KEYS } from '../project_queries.js'
import { numberOf, type Quotas, quotasOf } from '../quotas.js'
import { type Role, SCOPES_OF } from './token.js'

export interface Grant {
  key_id: string
  project_id: string
  scopes: ReadonlySet<string>
  expires_at_ms: number | undefined
  /** The project's own limit for each of its tokens; 0: none; undefined: the service's. */
  rate_limit_per_second: number | undefined
  quotas: Quotas
  /** Whether it has consumers of changes, for which writes leave marks; see unmarked_until. */
  has_consumers: boolean
  /** Time (performance.now()) until which an append may go without marks. */
  unmarked_until: number
  /** Whether its sessions begin chains; undefined: they never did. */
  proof: boolean | undefined
  /** The project's rules of redaction, as stored; undefined: it has none. */
  redaction: string | undefined
  /** Whether it reads no personal data, because it is masked or its person's role is: see redaction/. */
  masked: boolean
  /** Whose reads are noted; undefined: nobody's. */
  audit_reads?: 'people' | 'all' | undefined
  /** The project's own words for outcomes, as JSON; undefined: it has none. */
  outcomes?: string | undefined
  /** Of a token that reaches only some sessions: access/. */
  narrow: NarrowGrant | undefined
  /** Of a person's token or session: it allows no more than the role that the person has now. */
  person?: Person | undefined
}

/** A member of a project who sent a request. */
export interface Person {
  member_id: string
  email: string
  role: Role
  /** Signed in to the console, and not with a personal token. */
  is_in_console: boolean
}

/** The sessions that a token reaches: one, those of a user, or those below another. */
export type Sessions = { session_id: string } | { user: string } | { parent: string }

export interface NarrowGrant {
  /** The token's own. */
  id: string
  reach: Sessions
  /** The same as a text. */
  reach_text: string
  expires_at_ms: number
}

/** A key's grant in the database, undefined if it has none, and when that was read. */
export interface LookUp {
  grant: Grant | undefined
  looked_up_at: number
}

interface Question {
  /** As PostgreSQL writes it. */
  hash: string
  resolve: (found: LookUp) => void
  reject: (error: unknown) => void
}

/** How long it is relied on that a project has no consumers of changes: far longer than a key is remembered. */
export const UNMARKED_MS = 15_000
/** Keys that one statement looks up at most. */
const KEYS_AT_ONCE_MAX = 100
/** Most keys that may wait, over all callers. One caller may have half, so that others always find room. */
const WAITING_MAX = 10_000

/**
 * Looks keys up by their hashes, one statement at a time for all that arrived meanwhile. However many keys are
 * guessed, they take one connection, and callers take turns.
 */
export class KeyLookUps {
  private readonly waiting = new FairQueue<Question>()
  private isAsking = false

  constructor(private readonly database: Queryable) {}

  /** @throws AnnalsError overloaded (too many keys of this caller wait), unavailable */
  find(hash: Buffer, asker: string): Promise<LookUp> {
    if (this.waiting.waitingOf(asker) >= WAITING_MAX - this.waiting.size) {
      const sentence = 'Too many unknown API keys are being looked up. Nothing was done; retry shortly.'
      return Promise.reject(new AnnalsError('overloaded', sentence))
    }
    return new Promise((resolve, reject) => {
      this.waiting.add(asker, { hash: hash.toString('hex'), resolve, reject })
      if (!this.isAsking) void this.askAll()
    })
  }

  private async askAll(): Promise<void> {
    this.isAsking = true
    while (this.waiting.size > 0) await this.askSome()
    this.isAsking = false
  }

  private async askSome(): Promise<void> {
    const questions: Question[] = []
    while (questions.length < KEYS_AT_ONCE_MAX && this.waiting.size > 0) questions.push(this.waiting.next()!)
    // Taken before the query: a revocation during it counts as later.
    const looked_up_at = performance.now()
    try {
      const rows = await this.database.query(FIND_API_KEYS, [questions.map(({ hash }) => `\\x${hash}`)])
      const grants = new Map(rows.map((row) => [row.token_hash!, grantOf(row, looked_up_at)]))
      for (const { hash, resolve } of questions) resolve({ grant: grants.get(hash), looked_up_at })
    } catch (error) {
      for (const { reject } of questions) reject(error)
    }
  }
}

export function grantOf(row: Row, looked_up_at: number): Grant {
  const has_consumers = row.has_consumers === 't'
  const scopes = row.scopes!.split(' ')
  const person = personOf(row)
  const allowed: readonly string[] | undefined = person && SCOPES_OF[person.role]
  return {
    key_id: row.id!,
    project_id: row.project_id!,
    scopes: new Set(allowed ? scopes.filter((scope) => allowed.includes(scope)) : scopes),
    expires_at_ms: numberOf(row.expires_at_ms),
    rate_limit_per_second: numberOf(row.rate_limit_per_second),
    quotas: quotasOf(row),
    has_consumers,
    unmarked_until: has_consumers ? Number.NEGATIVE_INFINITY : looked_up_at + UNMARKED_MS,
    proof: row.proof == null ? undefined : row.proof === 't',
    redaction: row.redaction ?? undefined,
    masked: row.masked === 't' || (person?.role === 'viewer' && row.mask_viewers === 't'),
    audit_reads: (row.audit_reads ?? undefined) as Grant['audit_reads'],
    outcomes: row.outcomes ?? undefined,
    narrow: undefined,
    person,
  }
}

function personOf({ member_id, email, role, is_in_console }: Row): Person | undefined {
  if (member_id == null) return undefined
  return { member_id, email: email!, role: role as Role, is_in_console: is_in_console === 't' }
}
