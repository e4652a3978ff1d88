import type { AppServer } from '@annals/kits/http/app_server.js'
import type { SharedDatabase } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation, isUniqueViolation } from '@annals/kits/postgres/database_errors.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { FastifyRequest } from 'fastify'
import { keyActorOf } from '../projects/project_routes.js'
import { ADD_READS, FIND_READS, LAST_READ } from './read_queries.js'

/** `content`: the reader got something of the log; `listed`: only the session's place in a list, with configs and figures. */
export type Shown = 'content' | 'listed'

declare module 'fastify' {
  interface FastifyRequest {
    /** Notes that the answer shows sessions; null: nobody wants to know. The session that the path names is noted anyway. */
    shows: ((session_ids: Iterable<string>, shown?: Shown) => void) | null
  }
}

interface Read {
  project_id: string
  /** Milliseconds, at its beginning. */
  minute: number
  session_id: string
  principal_id: string
  actor: string
  shown: Shown
  /** As it was written; the reader may see more afterwards. */
  written: Shown | undefined
}

const MINUTE_MS = 60_000
const ROWS_AT_ONCE = 2_000
/** So many wait at most, of one project as many as are left free: what comes beyond that is lost. */
const WAITING_MAX = 100_000
const ATTEMPTS_MAX = 5

/** Writes whose answer shows earlier entries. Plain appends and deletions show nothing. */
const SHOWN_BY_WRITES: ReadonlySet<string> = new Set([
  'copySession',
  'retractEntries',
  'compactSession',
  'updateSession',
  'mergeConfigs',
  'mergeMessageMeta',
  'takeLease',
  'openRequest',
])

/**
 * Reads of sessions by readers: gathered in memory, each once a minute, and written together every few seconds, so that no
 * read waits for it or fails with it.
 *
 *   noted ──content: with the next write; listed: when its minute is over──▶ written ──two minutes old──▶ forgotten here
 *
 * Notes that are not yet written are lost with the process.
 */
export class NotedReads {
  private readonly reads = new Map<string, Read>()
  /** How many of them are of a project. */
  private readonly held = new Map<string, number>()
  private lost = 0

  /** @param warn is told how many reads could not be kept */
  constructor(
    private readonly database: SharedDatabase,
    private readonly warn: (lost: number) => void,
  ) {}

  note(request: FastifyRequest, session_id: string, shown: Shown): void {
    const { project_id } = request
    const { key_id, person } = request.grant!
    const principal_id = person?.member_id ?? key_id
    const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
    const key = `${minute} ${session_id} ${principal_id} ${project_id}`
    const read = this.reads.get(key)
    if (read) {
      if (shown === 'content') read.shown = shown
      return
    }
    // One project that lists without end does not blind the others.
    const held = this.held.get(project_id) ?? 0
    if (held < WAITING_MAX - this.reads.size) {
      const actor = keyActorOf(request)
      this.held.set(project_id, held + 1)
      this.reads.set(key, { project_id, minute, session_id, principal_id, actor, shown, written: undefined })
    } else this.lost += 1
  }

  /** Writes what is due, or with `all` everything. @throws the first failure; what was not written stays noted */
  async write(all = false): Promise<void> {
    if (this.lost > 0) this.warn(this.lost)
    this.lost = 0
    const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
    const due = new Map<string, Read[]>()
    for (const [key, read] of this.reads) {
      const { project_id, shown, written } = read
      if (written === shown) {
        if (read.minute < minute - MINUTE_MS) this.forget(key, project_id)
      } else if (all || shown === 'content' || read.minute < minute) {
        const own = due.get(project_id) ?? []
        due.set(project_id, own)
        own.push(read)
      }
    }
    let failure: unknown
    for (const [project_id, reads] of due)
      for (let from = 0; from < reads.length; from += ROWS_AT_ONCE)
        await this.add(project_id, reads.slice(from, from + ROWS_AT_ONCE)).catch((error: unknown) => {
          failure ??= error
        })
    if (failure) throw failure
  }

  private forget(key: string, project_id: string): void {
    this.reads.delete(key)
    const held = this.held.get(project_id)! - 1
    if (held === 0) this.held.delete(project_id)
    else this.held.set(project_id, held)
  }

  private async add(project_id: string, reads: readonly Read[]): Promise<void> {
    // A note taken meanwhile may make more of a read than is written now.
    const rows = reads.map((read) => ({ ...read, read_at: timeText(read.minute) }))
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.addRows(project_id, rows)
        break
      } catch (error) {
        // The project was erased, with all that its audit of reads had.
        if (isForeignKeyViolation(error)) break
        // Another node took the numbers, or noted the same read.
        if (!isUniqueViolation(error) || attempt >= ATTEMPTS_MAX) throw error
      }
    }
    for (const [at, read] of reads.entries()) read.written = rows[at]!.shown
  }

  private async addRows(project_id: string, reads: ReadonlyArray<Read & { read_at: string }>): Promise<void> {
    const database = this.database.of('audit')
    const first = reads.reduce((least, { read_at }) => (read_at < least ? read_at : least), reads[0]!.read_at)
    const ids = plainArray([...new Set(reads.map(({ session_id }) => session_id))])
    const known = new Set(
      (await database.query(FIND_READS, [project_id, ids, first])).map((row) =>
        [row.session_id, row.read_at, row.principal_id, row.shown].join(),
      ),
    )
    const isKnown = ({ session_id, read_at, principal_id }: (typeof reads)[number], shown: Shown) =>
      known.has([session_id, read_at, principal_id, shown].join())
    const added = reads.filter(
      (read) => !isKnown(read, 'content') && (read.shown === 'content' || !isKnown(read, 'listed')),
    )
    if (added.length === 0) return
    const [last] = await database.query(LAST_READ, [project_id])
    await database.query(ADD_READS.statement, [
      project_id,
      last!.seq!,
      textArray(added.map(({ read_at }) => read_at)),
      plainArray(added.map(({ session_id }) => session_id)),
      plainArray(added.map(({ principal_id }) => principal_id)),
      plainArray(added.map(({ shown }) => shown)),
      textArray(added.map(({ actor }) => actor)),
    ])
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}

/** Notes what answers show, in projects that want to know. For all others, this is one look at the grant. */
export function noteReads(app: AppServer, noted: NotedReads): void {
  app.decorateRequest('shows', null)
  app.addHook('preHandler', (request, _reply, done) => {
    const { grant } = request
    if (grant?.audit_reads != null && (grant.person || grant.audit_reads === 'all'))
      request.shows = (session_ids, shown = 'content') => {
        for (const id of session_ids) noted.note(request, id, shown)
      }
    done()
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    // A 304 counts as a read, too.
    if (request.shows && (reply.statusCode < 300 || reply.statusCode === 304)) noteNamed(request)
    done(null, payload)
  })
}

function noteNamed(request: FastifyRequest): void {
  const { session_id } = (request.params ?? {}) as { session_id?: string }
  const { config, schema } = request.routeOptions
  if (session_id !== undefined && (config.scope === 'read' || SHOWN_BY_WRITES.has(schema?.operationId ?? '')))
    request.shows?.([session_id.toLowerCase()])
}
