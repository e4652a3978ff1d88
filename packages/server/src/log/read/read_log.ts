import { AnnalsError, mergedTooLarge, notFound } from '@annals/kits/errors.js'
import { MERGED_BYTES_MAX, PIECE_BYTES_MAX } from '@annals/kits/limits.js'
import { divergedAt, type LogPosition, seqToCheck } from '@annals/kits/lists/log_position.js'
import { aggregated } from '@annals/kits/postgres/column_aggregates.js'
import type { Queryable, Row, Tenant } from '@annals/kits/postgres/database.js'
import { ofProject, plainArray } from '@annals/kits/postgres/statement.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { LRUCache } from 'lru-cache'
import type { ShownLog } from '../append/append_request.js'
import { fencedError } from '../append/held_back.js'
import type { SessionTokens } from '../message_schema.js'
import { seqText, validCompactionsText } from './compaction_queries.js'
import {
  compactionOf,
  entriesOf,
  instructionsOf,
  type ReadCompaction,
  type ReadEntry,
} from './entry_columns.js'
import { FIND_IDS, READ_KEY, READ_LATEST, READ_LATEST_OF_KEY, READ_SEQS } from './place_queries.js'
import {
  bySeq,
  COUNT_TOKENS,
  type EntryPage,
  type EntryView,
  LOG_VERSION,
  MERGE_MESSAGE_META,
  NEWEST_AT,
  NTH_NEWEST_MESSAGE,
  READ_HEAD,
  readEntries,
  VIEW_COLUMNS,
} from './read_queries.js'

/** Entries that one statement returns at most: the largest page, with the entry that tells whether another follows. */
const PIECE_ENTRIES_MAX = 1_001
/** As many entries as there are, and a seq after all. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER

/** Sessions whose logs are too long for one piece, as far as is known: the statement for others costs a tenth less. */
const LONG = new LRUCache<string, true>({ max: 10_000 })

export type ReadPage = Omit<EntryPage, 'project_id' | 'session_id' | 'as_of_seq' | 'seen' | 'is_short'> & {
  /** Entries that one statement returns at most, where that is few. */
  piece_max?: number
}

export interface NewestMessages {
  /** Newest first. */
  messages: ReadEntry[]
  /** There are no more, after what the compaction covers. */
  are_all: boolean
  total_tokens: number
  instructions: ReadEntry[]
  compaction: ReadCompaction | undefined
}

export interface LatestPage {
  key: string | undefined
  key_prefix: string
  after_key: string
  limit: number
}

/**
 * Reads a session's log, as long as it is when it is first read: however often it is read then, in whatever parts, what
 * is appended meanwhile is not among it, and messages that are retracted meanwhile still are.
 */
export class LogReader {
  private end_seq: number | undefined
  private version: string | undefined
  private is_same = false

  constructor(
    private readonly database: Queryable,
    private readonly session: { project_id: string; session_id: string },
    /** The reader's position: the log must still have it. */
    private readonly seen: LogPosition = { seq: 0 },
    /** Asked between two statements: reading ends early when nobody wants the rest any longer. */
    private readonly isWanted: () => boolean = () => true,
    /** Told which version of the log is read, before anything of it; undefined: of more than one. */
    private readonly showVersion?: (version: string | undefined) => void,
  ) {}

  /** The seq of the newest entry that is shown, once something was read. */
  get last_seq(): number {
    return this.end_seq ?? 0
  }

  /**
   * The entries of a page in order of seq, in pieces of bounded size. Entries never change place and a session's
   * are numbered without gaps, so pieces read one after the other fit together without a snapshot.
   * @throws AnnalsError session_not_found, seq_ahead, log_diverged
   */
  async *read(view: EntryView, page: ReadPage): AsyncGenerator<ReadEntry[]> {
    const { project_id, session_id } = this.session
    let rest = this.narrowed(page)
    // The first statement also tells whether there is such a session, and whether its log reaches so far.
    const isLeft = () => rest.limit > 0 && rest.above_seq + 1 < rest.below_seq
    while ((this.end_seq === undefined || isLeft()) && this.isWanted()) {
      const limit = Math.min(rest.limit, rest.piece_max ?? PIECE_ENTRIES_MAX)
      const seen = this.is_same ? { seq: 0 } : this.seen
      const { kind, type, above_seq, below_seq, time_desc } = rest
      const as_of_seq = this.end_seq
      // A scan for a filter comes in parts anyway.
      const is_short = kind !== 'event' && type === undefined && !LONG.has(session_id)
      // Every member is named: see storedTurn.
      const asked = {
        project_id,
        session_id,
        kind,
        type,
        above_seq,
        below_seq,
        time_desc,
        limit,
        as_of_seq,
        seen,
        is_short,
      }
      const { statement, parameters, scanned_max } = readEntries(asked, view, PIECE_BYTES_MAX)
      const [row] = await this.database.query(statement, parameters)
      if (!row) throw notFound('session')
      if (is_short && row.fits !== 't') {
        LONG.set(session_id, true)
        continue
      }
      this.noteVersion(row)
      const last_seq = reachingSeq(row, seen)
      this.is_same = true
      this.end_seq ??= last_seq
      rest = this.narrowed(rest)
      const entries = entriesOf(row, view, shownLog(this.session, row))
      if (entries.length === limit && row.last_but_one_at) entries.at(-2)!.created_at = row.last_but_one_at
      if (row.newest_at) entries.at(page.time_desc ? 0 : -1)!.created_at = row.newest_at
      // Where there are too many bytes, there may be more of the same slice after the last entry.
      const isCut = entries.length === limit || row.fits !== 't'
      const behind_seq = isCut ? entries.at(-1)?.seq : undefined
      rest = { ...behind(rest, behind_seq, scanned_max), limit: rest.limit - entries.length }
      if (entries.length > 0) yield entries
    }
  }

  /**
   * The items of the timeline with these seqs, in this order, in pieces of bounded size.
   * @throws AnnalsError session_not_found
   */
  async *readSeqs(seqs: readonly number[]): AsyncGenerator<ReadEntry[]> {
    const { project_id, session_id } = this.session
    for (let read = 0; read < seqs.length && this.isWanted(); ) {
      const asked = plainArray(seqs.slice(read, read + PIECE_ENTRIES_MAX))
      const parameters = [project_id, session_id, asked, PIECE_BYTES_MAX]
      const [row] = await this.database.query(READ_SEQS, parameters)
      const entries = entriesOf(row!, 'item', shownLog(this.session, row!))
      if (entries.length === 0) throw notFound('session')
      read += entries.length
      yield entries
    }
  }

  /** The key of an entry. @throws AnnalsError session_not_found: it is gone with its session */
  async keyAt(seq: number): Promise<string> {
    const { project_id, session_id } = this.session
    const [row] = await this.database.query(READ_KEY, [project_id, session_id, seq])
    if (!row) throw notFound('session')
    return row.key!
  }

  /**
   * The newest live entry of each key, in the order of keys, in pieces of bounded size.
   * @throws AnnalsError session_not_found
   */
  async *readLatest({ key, key_prefix, after_key, limit }: LatestPage): AsyncGenerator<ReadEntry[]> {
    const { project_id, session_id } = this.session
    for (let after = after_key, left = limit; left > 0 && this.isWanted(); ) {
      const page = [project_id, session_id, after, key_prefix, left, PIECE_BYTES_MAX]
      const [row] =
        key === undefined
          ? await this.database.query(READ_LATEST, page)
          : await this.database.query(READ_LATEST_OF_KEY, [project_id, session_id, key])
      if (!row) throw notFound('session')
      this.noteVersion(row)
      const entries = entriesOf(row, 'latest', shownLog(this.session, row))
      left = entries.length === Number(row.found) ? 0 : left - entries.length
      after = entries.at(-1)?.key ?? after
      yield entries
    }
  }

  /**
   * The newest messages, newest first, all instructions, oldest first, and the newest compaction, if it is wanted: see READ_NEWEST_MESSAGES. What is read then is
   * of the log as it was here.
   * @throws AnnalsError session_not_found
   */
  async readNewestMessages(
    tokens_max: number,
    tokens_wanted: number,
    messages_min: number,
    isCompacted: boolean,
  ): Promise<NewestMessages> {
    const { project_id, session_id } = this.session
    const bounds = [PIECE_ENTRIES_MAX, PIECE_BYTES_MAX, tokens_max, tokens_wanted, messages_min, isCompacted]
    const [row] = await this.database.query(READ_NEWEST_MESSAGES, [project_id, session_id, ...bounds])
    if (!row) throw notFound('session')
    const compaction = compactionOf(row)
    if (row.compaction_seq && !compaction)
      return this.readNewestMessages(tokens_max, tokens_wanted, messages_min, false)
    this.noteVersion(row)
    this.end_seq = Number(row.last_seq)
    const messages = entriesOf(row, 'context_message', shownLog(this.session, row))
    if (row.newest_at) messages[0]!.created_at = row.newest_at
    const are_all = messages.length < Number(row.count) && row.fit === 't'
    const total_tokens = Number(row.total_tokens)
    return { messages, are_all, total_tokens, instructions: instructionsOf(row), compaction }
  }

  async readInstructions(isCompacted: boolean): Promise<Pick<NewestMessages, 'instructions' | 'compaction'>> {
    const { project_id, session_id } = this.session
    const [row] = await this.database.query(READ_INSTRUCTIONS, [project_id, session_id, isCompacted])
    this.noteVersion(row!)
    return { instructions: instructionsOf(row!), compaction: compactionOf(row!) }
  }

  /** The live ones of the messages with these seqs, oldest first. */
  async readMessagesAt(seqs: readonly number[]): Promise<ReadEntry[]> {
    if (seqs.length === 0) return []
    const { project_id, session_id } = this.session
    const [row] = await this.database.query(READ_MESSAGES_AT, [project_id, session_id, plainArray(seqs)])
    return instructionsOf(row!)
  }

  /** The seq of the n-th newest message between two seqs; 0 if there are not so many. @throws as `read` does */
  async nthNewestMessage(n: number, range: { above_seq: number; below_seq: number }): Promise<number> {
    const { project_id, session_id } = this.session
    const { above_seq, below_seq } = this.narrowed(range)
    const parameters = [project_id, session_id, above_seq, below_seq, n - 1]
    const [row] = await this.database.query(NTH_NEWEST_MESSAGE, parameters)
    if (!row) throw notFound('session')
    this.noteVersion(row)
    this.end_seq ??= reachingSeq(row, { seq: this.seen.seq })
    return Number(row.seq ?? 0)
  }

  /** The position of an entry, with which a later reader can tell whether the log is still the same. */
  async positionOf(seq: number): Promise<LogPosition> {
    const { project_id, session_id } = this.session
    const [row] = await this.database.query(READ_HEAD, [project_id, session_id, seq])
    return { seq, created_at: row?.seen_at ?? undefined }
  }

  private noteVersion({ version = null }: Row): void {
    if (this.version === version) return
    this.showVersion?.(this.version === undefined ? (version ?? undefined) : undefined)
    this.version = version ?? ''
  }

  private narrowed<Page extends { below_seq: number }>(page: Page): Page {
    const { end_seq = UNLIMITED - 1 } = this
    return { ...page, below_seq: Math.min(page.below_seq, end_seq + 1) }
  }
}

/** The rest of a page after its last entry, or, where there was none, after all that its statement looked at. */
function behind(page: ReadPage, seq: number | undefined, scanned_max: number): ReadPage {
  return page.time_desc
    ? { ...page, below_seq: seq ?? Math.max(page.above_seq + 1, page.below_seq - scanned_max) }
    : { ...page, above_seq: seq ?? Math.min(page.below_seq - 1, page.above_seq + scanned_max) }
}

/**
 * The seq of a session's newest entry, 0 when it has none, for a reader that has seen all up to `seen`.
 * @throws AnnalsError session_not_found, seq_ahead, log_diverged
 */
export async function readLastSeq(
  database: Queryable,
  project_id: string,
  session_id: string,
  seen: LogPosition = { seq: 0 },
): Promise<number> {
  const [row] = await database.query(READ_HEAD, [project_id, session_id, seqToCheck(seen)])
  if (!row) throw notFound('session')
  return reachingSeq(row, seen)
}

/**
 * A log never gets shorter and no entry changes place: where a reader has seen more than there is, or another entry, it
 * is another log, from a backup for example, and what follows is not what follows what the reader has seen.
 */
function reachingSeq(row: Row, { seq, created_at }: LogPosition): number {
  const last_seq = Number(row.last_seq)
  if (seq > last_seq)
    throw new AnnalsError(
      'seq_ahead',
      `Seq ${seq} is beyond the session's last seq ${last_seq}: entries that you have read are gone, for example after a restore. Read the log again from its beginning.`,
    )
  if (created_at !== undefined && row.seen_at !== created_at) throw divergedAt(seq)
  return last_seq
}

function shownLog(
  session: Omit<ShownLog, 'disable_task_tracking'>,
  { disable_task_tracking }: Row,
): ShownLog {
  return { ...session, disable_task_tracking: disable_task_tracking === 't' }
}

/**
 * Merges the body's meta into a message's, at the top level; null deletes a key. Returns the merged meta as JSON.
 * `fence`: see Annals-Fence. @throws AnnalsError session_not_found, message_not_found, fenced, payload_too_large
 */
export async function mergeMessageMeta(
  { database, project_id }: Tenant,
  [session_id, message_id]: readonly [session_id: string, message_id: string],
  body: string,
  fence: number | undefined,
): Promise<string> {
  const asked = [session_id, fence ?? null, message_id, body, MERGED_BYTES_MAX]
  const answer = await call(database, MERGE_MESSAGE_META, project_id, ...asked)
  if (answer === null) throw notFound('session')
  if (answer === 'no message') throw notFound('message')
  if (answer === 'too large') throw mergedTooLarge('meta')
  if (answer.startsWith('fenced')) throw fencedError(Number(answer.slice('fenced '.length)), fence)
  return answer
}

/** Tokens of all messages of a session, what was counted, and what an automatic compaction is at. @throws AnnalsError session_not_found */
export async function countSessionTokens(
  { database, project_id }: Tenant,
  session_id: string,
): Promise<SessionTokens> {
  const [row] = await database.query(COUNT_TOKENS, [project_id, session_id])
  if (!row) throw notFound('session')
  const counted = row.is_counted_by_text === 't' ? 'text' : 'all'
  const auto_compaction = row.auto_compaction as SessionTokens['auto_compaction'] | null
  return { total_tokens: Number(row.total_tokens), counted, ...(auto_compaction && { auto_compaction }) }
}

interface Session {
  project_id: string
  session_id: string
}

export interface EntryPlace {
  seq: number
  type: string | null
}

/**
 * The entries with the given ids, in this order; undefined for an id that the session does not have.
 * @throws AnnalsError session_not_found
 */
export async function findIds(
  database: Queryable,
  { project_id, session_id }: Session,
  ids: readonly string[],
): Promise<Array<EntryPlace | undefined>> {
  const places = Array<EntryPlace | undefined>(ids.length).fill(undefined)
  const [row] = await database.query(FIND_IDS, [project_id, session_id, plainArray(ids)])
  if (!row) throw notFound('session')
  const found = JSON.parse(row.found ?? '[]') as Array<[number, number, string | null]>
  for (const [index, seq, type] of found) places[index - 1] = { seq, type }
  return places
}

const INSTRUCTIONS_MAX = 64
const INSTRUCTION_BYTES_MAX = 1024 * 1024
/** From as many messages it is estimated how many are needed, and some more: another statement costs more than those. */
const SAMPLED_MESSAGES = 32
const MARGIN = 1.1

const LIVE_MESSAGE =
  "e.project_id = $1 AND e.session_id = $2 AND e.kind = 'message' AND e.retracted_by IS NULL"

/** The newest instructions of a session, as far as they have no more bytes than allowed, oldest first. */
const INSTRUCTIONS = `(
  SELECT json_agg(json_build_array(i.seq, i.id, i.parent_id, i.format, i.tokens, i.data::text) ORDER BY i.seq)
  FROM (
    SELECT e.*, sum(e.bytes) OVER (ORDER BY e.seq DESC) AS bytes_up_to
    FROM (
      SELECT e.* FROM {entries} e
      WHERE ${LIVE_MESSAGE}
        AND coalesce(e.data #>> '{meta,provider_role}', e.data ->> 'role') IN ('system', 'developer')
      ORDER BY e.seq DESC
      LIMIT ${INSTRUCTIONS_MAX}
    ) e
  ) i
  WHERE i.bytes_up_to <= ${INSTRUCTION_BYTES_MAX}
) AS instructions`

/** The newest valid compaction of a session, if it is wanted: seq, id, to_seq (null: it is none), and data as text. */
const compaction = (isWanted: string) => `LEFT JOIN LATERAL (
  SELECT e.seq AS compaction_seq, e.id AS compaction_id, ${seqText('to_seq')} AS to_seq, e.data::text AS compaction
  FROM {entries} e WHERE ${validCompactionsText('$1', '$2')} ORDER BY e.seq DESC LIMIT 1
) c ON ${isWanted}`
const COMPACTION_COLUMNS = 'c.compaction_seq, c.compaction_id, c.compaction'

/**
 * Row: the version, null without such a session; `instructions`, a JSON array of `[seq, id, parent_id, format, tokens, blob as text]`, or null, and the newest
 * compaction. Parameters: $1 project, $2 session, $3 whether the compaction is wanted.
 */
export const READ_INSTRUCTIONS = ofProject(
  'read_instructions',
  `SELECT (SELECT ${LOG_VERSION} FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = $2), ${INSTRUCTIONS}, ${COMPACTION_COLUMNS}
FROM (SELECT) x ${compaction('$3::boolean')}`,
)

/** Live messages by their seqs, as `instructions`. Parameters: $1 project, $2 session, $3 seqs. */
export const READ_MESSAGES_AT = ofProject(
  'read_messages_at',
  `
SELECT json_agg(json_build_array(e.seq, e.id, e.parent_id, e.format, e.tokens, e.data::text) ORDER BY e.seq) AS instructions
FROM unnest($3::bigint[]) AS x (seq)
JOIN LATERAL (SELECT e.* FROM {entries} e WHERE ${LIVE_MESSAGE} AND ${bySeq('e', 'x.seq')}) e ON true`,
)

const newest = (columns: string, limit: string) =>
  `(SELECT ${columns} FROM {entries} e WHERE ${LIVE_MESSAGE} AND e.seq <= h.last_seq AND e.seq > coalesce(c.to_seq, 0) ORDER BY e.seq DESC LIMIT ${limit})`

/**
 * The newest messages of a session, newest first, after what its newest compaction covers: about as many as have the tokens
 * that are wanted (after a compaction: that there may be), by those of the newest few, or all where the whole session has no more than it may have. They are cut off before the message with which their
 * JSON exceeds a number of bytes, but never before the first. Row: none where there is no session; `last_seq`,
 * `total_tokens`, `count` (how many were looked for), `fit` (none was cut off for the bytes), `instructions` and the compaction as of READ_INSTRUCTIONS, `newest_at`, and the columns of the view
 * `context_message`. Parameters: $1 project, $2 session, $3 messages at most, $4 bytes, $5 tokens that the session may have,
 * $6 tokens that are wanted, $7 messages at least, $8 whether the compaction is wanted.
 */
export const READ_NEWEST_MESSAGES = ofProject(
  'read_newest_messages',
  `
SELECT h.last_seq, ${LOG_VERSION}, h.total_tokens, w.count, coalesce(b.fit, true) AS fit, ${INSTRUCTIONS}, ${COMPACTION_COLUMNS}, p.*
FROM {session_heads} h ${compaction('$8::boolean')}
CROSS JOIN LATERAL (
  SELECT least($3::bigint, CASE WHEN h.total_tokens > $5::bigint THEN (
    SELECT greatest($7::bigint, ceil(${MARGIN} * CASE WHEN c.to_seq IS NULL THEN $6::bigint ELSE $5::bigint END * count(*) / greatest(sum(n.tokens), 1)))
    FROM ${newest('e.tokens', String(SAMPLED_MESSAGES))} n
  )::bigint END) AS count
  OFFSET 0
) w
CROSS JOIN LATERAL (
  SELECT CASE WHEN h.counted >= h.last_seq AND h.bytes <= $4::bigint THEN true ELSE (
    SELECT sum(n.bytes) <= $4::bigint FROM ${newest('e.bytes', 'w.count')} n
  ) END AS fit
  OFFSET 0
) b
CROSS JOIN LATERAL (
  SELECT ${aggregated(VIEW_COLUMNS.context_message)}${NEWEST_AT}
  FROM ${newest(
    'e.*',
    `CASE WHEN b.fit THEN w.count ELSE (
    SELECT count(*) FROM (
      SELECT n.bytes, sum(n.bytes) OVER (ORDER BY n.seq DESC ROWS UNBOUNDED PRECEDING) AS bytes_up_to
      FROM ${newest('e.seq, e.bytes', 'w.count')} n
    ) n
    WHERE n.bytes_up_to = n.bytes OR n.bytes_up_to <= $4::bigint
  ) END`,
  )} e
) p
WHERE h.project_id = $1 AND h.session_id = $2`,
)
