import { AnnalsError } from '@annals/kits/errors.js'
import { rewrittenText } from '@annals/kits/http/request/read_body.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { FastifyRequest } from 'fastify'
import { findEntryIds } from '../log/append/look_up.js'
import { type AppendParts, appendWithinQuota } from '../log/append_within_quota.js'
import { roomFor } from '../projects/within_quotas.js'
import { rewriteEntries } from '../redaction/rewrite_bodies.js'
import { createSession, mergeConfigs } from '../sessions/sessions.js'
import type { AskedSession, KnownSession, StoreAnswers, StoreCall } from './otel_on_thread.js'
import { FIND_OTEL_SESSIONS } from './otel_queries.js'

/** Configs that a span may add after its session was created. */
const KEYS = ['service', 'environment', 'agent', 'model', 'provider']

/**
 * Does in a request's name what the thread asks for. `failure`: what went wrong, which the thread need not know.
 */
export class Store {
  failure: unknown

  constructor(
    private readonly parts: AppendParts & { bodies: WorkThread },
    private readonly request: FastifyRequest,
  ) {}

  async answer(call: StoreCall): Promise<StoreAnswers['look_up' | 'append']> {
    try {
      return call.call === 'append' ? await this.append(call) : await this.lookUp(call.sessions)
    } catch (error) {
      this.failure ??= error
      return 'failed'
    }
  }

  private async append({ session_id, entries }: Extract<StoreCall, { call: 'append' }>) {
    try {
      const { parts, request } = this
      const rewritten = await rewriteEntries(parts.bodies, request, session_id, entries)
      const append = { session_id, kind: 'entries', entries: rewritten } as const
      await appendWithinQuota(parts, request, { ...append, looked_up: true, unanswered: true })
      return 'stored' as const
    } catch (error) {
      const name = error instanceof AnnalsError ? error.error : undefined
      // Somebody stored some of it meanwhile, or deleted the session.
      if (name !== 'idempotency_key_reused' && name !== 'session_not_found') throw error
      return 'again' as const
    }
  }

  private async lookUp(asked: AskedSession[]): Promise<KnownSession[]> {
    const { database, project_id } = this.request
    const ids = plainArray(asked.map(({ id }) => id))
    const rows = await database.query(FIND_OTEL_SESSIONS, [project_id, ids, textArray(KEYS)])
    const found = new Map(rows.map((row) => [row.session_id!, row]))
    const known = await this.knownIds(asked.map((session) => (found.has(session.id) ? session : undefined)))
    await Promise.all(
      asked.map(async (session) => {
        if (session.is_only_read) return
        const row = found.get(session.id)
        if (row) await this.describe(session, row.keys?.split(',') ?? [])
        else await this.create(session)
      }),
    )
    return asked.map(({ id }, at) => ({
      has_messages: found.get(id)?.has_messages === 't',
      known: known[at]!,
    }))
  }

  /** The places of the ids that are there, by session. */
  private async knownIds(asked: Array<AskedSession | undefined>): Promise<number[][]> {
    const { database, project_id } = this.request
    const known: number[][] = asked.map(() => [])
    const wanted = asked.flatMap((session, at) =>
      (session?.entry_ids ?? []).map((id, place) => ({ session_id: session!.id, entry: { id }, at, place })),
    )
    if (wanted.length === 0) return known
    for (const found of await findEntryIds(database, project_id, wanted)) {
      const { at, place } = wanted[found]!
      known[at]!.push(place)
    }
    return known
  }

  private async create({ id, user: sent, configs }: AskedSession): Promise<void> {
    const { database, project_id } = this.request
    try {
      const body = await rewrittenText(this.request, JSON.stringify({ user: sent, configs }))
      const { user } = JSON.parse(body) as { user?: string }
      await createSession(database, {
        ...{ project_id, user, use_uuid: id, body },
        ...{ idempotency: undefined, room: roomFor(this.parts.usage, this.request) },
      })
    } catch (error) {
      // Somebody else was first.
      if (!(error instanceof AnnalsError) || error.error !== 'session_exists') throw error
    }
  }

  /** Adds facts that were unknown when the session was created; existing ones stay. */
  private async describe({ id, configs }: AskedSession, keys: string[]): Promise<void> {
    const missing = Object.entries(configs).filter(([key]) => KEYS.includes(key) && !keys.includes(key))
    if (missing.length === 0) return
    try {
      const body = await rewrittenText(this.request, JSON.stringify({ configs: Object.fromEntries(missing) }))
      await mergeConfigs(this.request, id, body, undefined)
    } catch (error) {
      // It was deleted, which the append finds out, or its configs are full.
      if (!(error instanceof AnnalsError) || !MAY_FAIL.has(error.error)) throw error
    }
  }
}

const MAY_FAIL: ReadonlySet<string> = new Set(['session_not_found', 'payload_too_large'])
