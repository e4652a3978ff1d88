import { markChanges } from '@annals/kits/changes/mark_changes.js'
import { type LogPosition, seqToCheck } from '@annals/kits/lists/log_position.js'
import { mergedJson, timestampText } from '@annals/kits/lists/resource_json.js'
import { aggregated, type Column, inUtc } from '@annals/kits/postgres/column_aggregates.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { composedOnce, ofProject, type Statement } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'

export interface EntryPage {
  project_id: string
  session_id: string
  kind?: 'event' | 'message' | undefined
  type?: string | undefined
  /** Only entries with a greater seq. */
  above_seq: number
  /** Only entries with a smaller seq. */
  below_seq: number
  time_desc: boolean
  limit: number
  /** The reader's position, if the row is to tell when that entry was stored. */
  seen?: LogPosition
  /** For messages as a conversation: those that were retracted after this seq are still in it. */
  as_of_seq?: number | undefined
  /** The log is believed to be below `bytes_max`: if it is not, nothing is read. Without a filter that is scanned for. */
  is_short?: boolean
}

/**
 * The columns of each entry: those of a SessionEvent or an item of the timeline, or such an item that has a key and is live; a message with what a conversion
 * needs, or that and what else a Message shows, or what a context needs; only the id or the meta of a message.
 */
export type EntryView =
  | 'event'
  | 'item'
  | 'latest'
  | 'message'
  | 'whole_message'
  | 'context_message'
  | 'message_id'
  | 'message_meta'

/**
 * Entries that one statement looks at, at most, where a filter may leave any of them out: 3 to 6 ms. What a filter
 * finds nothing in is so read by many short statements, between which others get the connection.
 */
const SCANNED_ENTRIES_MAX = 10_000

/** No message is shorter whose texts an adapter has shortened: see LargeMessages. */
const SHORTENED_BYTES_MIN = 8_192

const seq: Column = { sql: 'e.seq', as: 'token' }
const id: Column = { sql: 'e.id', as: 'token' }
const data: Column = { sql: 'e.data', as: 'token' }
const meta: Column = { sql: 'coalesce(e.patched_meta, e.meta)', as: 'optional' }
const created_at: Column = { sql: 'e.created_at', as: 'time' }
/** Rare columns: a key, the seq of the retraction, when the entry was changed after it was stored, and when it happened. */
const marks: Column = {
  sql: `CASE WHEN e.key IS NOT NULL OR e.retracted_by IS NOT NULL OR e.updated_at <> e.created_at
      OR e.occurred_at IS NOT NULL THEN
    json_build_array(e.key, e.retracted_by, ${inUtc('nullif(e.updated_at, e.created_at)')}, ${inUtc('e.occurred_at')}) END`,
  as: 'optional',
}
/** Columns of messages alone, joined by spaces: each aggregate costs, also for entries without a value. */
const message: Column = {
  sql: `CASE WHEN e.kind = 'message' THEN concat(e.format, ' ', e.parent_id, ' ', e.role, ' ', ${meta.sql}) END`,
  as: 'optional',
}
const tokens: Column = { sql: 'e.tokens', as: 'token' }

const event: Record<string, Column> = {
  ...{ seq, id, data, marks, created_at },
  type: { sql: 'e.type', as: 'text' },
}

/** The columns of each view, by the names that log/entry_json.ts has for them. */
export const VIEW_COLUMNS: Record<EntryView, Record<string, Column>> = {
  event,
  item: { ...event, message },
  latest: {
    ...{ seq, id, type: event.type!, data, created_at, message },
    key: { sql: 'e.key', as: 'text' },
    changed_at: { sql: 'nullif(e.updated_at, e.created_at)', as: 'time' },
    occurred_at: { sql: 'e.occurred_at', as: 'time' },
  },
  message: { seq, id, data, message, tokens },
  context_message: {
    ...{ seq, id, data, tokens },
    message: {
      sql: `concat(e.format, ' ', e.parent_id, '  ', CASE WHEN e.bytes > ${SHORTENED_BYTES_MIN} THEN ${meta.sql} -> 'adapter_parts' END)`,
      as: 'token',
    },
  },
  whole_message: { seq, id, data, message, tokens, created_at, marks },
  message_id: { seq, id },
  message_meta: { seq, meta },
}

/**
 * The end of a look-up of one entry of a session by its seq. The order says by which index: of `=` alone, with statistics
 * that are older than a session, the planner may take another one and read the whole session.
 */
export const bySeq = (entry: string, seq: string) =>
  `${entry}.seq >= ${seq} AND ${entry}.seq <= ${seq} ORDER BY ${entry}.seq LIMIT 1`

/** The same of one of a project's entries, by its session and id. Only entries_id_unique has rows in this order. */
export function byId(entry: string, session: string, id: string): string {
  const row = `(${entry}.id, ${entry}.session_id)`
  const bound = `(${id}, ${session})`
  return `${row} >= ${bound} AND ${row} <= ${bound} ORDER BY ${entry}.id, ${entry}.session_id LIMIT 1`
}

/** Only timelines show it, and only of messages: otherwise it is not looked up. */
export const TRACKING = `CASE WHEN p.message LIKE '% %' THEN
    (SELECT s.disable_task_tracking FROM {sessions} s WHERE s.project_id = $1 AND s.id = $2) END AS disable_task_tracking, `

/**
 * When the last but one of as many entries as were asked for was stored: the last one only tells that another page
 * follows. One time costs far less than all.
 */
const LAST_BUT_ONE_AT = `, ${timestampText('(array_agg(e.created_at))[$3::int - 1]')} AS last_but_one_at`

export const NEWEST_AT = `, ${timestampText('max(e.created_at)')} AS newest_at`

/**
 * Of the log of a head `h`: another one after each transaction that changed the head, which all do that change anything
 * that reads of the log show. The seq and the time beside the transaction's number are for databases that were restored.
 */
export const LOG_VERSION = `concat_ws('.', h.xmin, h.last_seq, h.updated_at) AS version`

/** When the entry was stored whose seq is a parameter; null if that is null. */
const seenAt = (seq: string) =>
  `(SELECT ${timestampText('x.created_at')} FROM {entries} x WHERE x.project_id = $1 AND x.session_id = $2 AND x.seq = ${seq}::bigint) AS seen_at`

/** Whether a page's filter may leave out any number of entries. Messages alone have an index. */
function isScan({ kind, type }: Pick<EntryPage, 'kind' | 'type'>): boolean {
  return kind === 'event' || type !== undefined
}

/**
 * Composes a page of entries in order of seq, cut off before the entry with which their JSON passes `bytes_max`, but
 * never before the first: so a page of large entries is read in pieces. A page with a filter is also cut off after
 * the `scanned_max` seqs that it looks at. Row: none where there is no session; `last_seq` of its log, `seen_at`, `fits` (whether the whole log is
 * below `bytes_max`, so that nothing was cut off for that), and the columns of the view, null where it has no entries.
 *
 * The running sum of bytes costs an eighth of a page of 50, so it is made only where the session's head does not tell
 * that all of its log fits; over numbers alone, unless entries would then be scanned twice.
 */
export function readEntries(
  page: EntryPage,
  view: EntryView,
  bytes_max: number,
): { statement: Statement; parameters: Parameter[]; scanned_max: number } {
  const { project_id, session_id, above_seq, below_seq, kind, type, time_desc } = page
  const range = [above_seq, below_seq, seqToCheck(page.seen)]
  const parameters: Parameter[] = [project_id, session_id, page.limit, bytes_max, ...range]
  if (type !== undefined) parameters.push(type)
  const is_as_of = kind === 'message' && view.includes('message') && page.as_of_seq !== undefined
  if (is_as_of) parameters.push(page.as_of_seq!)
  const name = `read_entries_${view}_${time_desc ? 'desc' : 'asc'}${kind ? `_${kind}` : ''}${type === undefined ? '' : '_type'}${is_as_of ? '_as_of' : ''}${range[2] === null ? '' : '_seen'}${page.is_short ? '_short' : ''}`
  const as_of = is_as_of ? `$${parameters.length}` : undefined
  const statement = composedOnce(name, () => readEntriesText(page, view, as_of), isScan(page) ? undefined : 2)
  const scanned_max = isScan(page) ? SCANNED_ENTRIES_MAX : Number.MAX_SAFE_INTEGER
  return { statement, parameters, scanned_max }
}

/** The statement's text, for all pages of the same shape. `as_of`: the parameter with the seq. */
function readEntriesText(page: EntryPage, view: EntryView, as_of: string | undefined): string {
  const order = page.time_desc ? 'DESC' : 'ASC'
  const conditions = ['e.project_id = $1', 'e.session_id = $2', ...rangeOf(page)]
  // Not a parameter: messages have an index of their own, and the planner must see that it is for them.
  if (page.kind) conditions.push(`e.kind = '${page.kind}'`)
  if (page.type !== undefined) conditions.push('e.type = $8')
  const found = (from: string, limit: string) =>
    `(SELECT e.* FROM ${from} ORDER BY e.seq ${order} LIMIT ${limit})`
  let entries = `{entries} e WHERE ${conditions.join(' AND ')}`
  if (page.kind === 'message') {
    // Live and retracted messages have an index each, of which either is walked no further than the page goes.
    const live = `${entries} AND e.retracted_by IS NULL`
    const both = (which: string) =>
      `(${found(live, '$3')} UNION ALL ${found(`${entries} AND e.retracted_by ${which}`, '$3')}) e`
    if (!view.includes('message')) entries = both('IS NOT NULL')
    else entries = as_of === undefined ? live : both(`> ${as_of}`)
  }
  const fitting = `(
      SELECT e.*, sum(e.bytes) OVER (ORDER BY e.seq ${order} ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
      FROM ${found(entries, '$3')} e
    ) e WHERE e.bytes_before = 0 OR e.bytes_before + e.bytes <= $4::bigint`
  const fits = 'h.counted >= h.last_seq AND h.bytes <= $4::bigint'
  // A subquery costs even where it is not carried out.
  const otherwise = page.is_short ? '0' : `(SELECT count(*) FROM ${fitting})`
  const shown = isScan(page)
    ? fitting
    : `${found(entries, `CASE WHEN ${fits} THEN $3::bigint ELSE ${otherwise} END`)} e`
  const seen_at = seqToCheck(page.seen) === null ? '$7::text AS seen_at' : seenAt('$7')
  return `
SELECT h.last_seq, ${LOG_VERSION}, ${seen_at}, ${fits} AS fits, ${view === 'item' || view === 'whole_message' ? TRACKING : ''}p.*
FROM {session_heads} h
CROSS JOIN LATERAL (
  SELECT ${aggregated(VIEW_COLUMNS[view])}${view === 'message' ? LAST_BUT_ONE_AT : view === 'context_message' ? NEWEST_AT : ''}
  FROM ${shown}
) p
WHERE h.project_id = $1 AND h.session_id = $2`
}

/** The range of seqs that one statement reads: of a filtered page a part. */
function rangeOf(page: EntryPage): string[] {
  const [above, below] = ['$5::bigint', 'least($6::bigint, h.last_seq + 1)']
  const scanned = SCANNED_ENTRIES_MAX + 1
  if (!isScan(page)) return [`e.seq > ${above}`, `e.seq < ${below}`]
  return page.time_desc
    ? [`e.seq > greatest(${above}, ${below} - ${scanned})`, `e.seq < ${below}`]
    : [`e.seq > ${above}`, `e.seq < least(${below}, ${above} + ${scanned})`]
}

/**
 * The n-th newest message of a session, of those not retracted, between two seqs. Row: none where there is no session; `last_seq` of its log,
 * and the message's seq, null if there are not so many. Parameters: $1 project, $2 session, $3 and $4 the seqs, $5 n - 1.
 */
export const NTH_NEWEST_MESSAGE = ofProject(
  'nth_newest_message',
  `
SELECT h.last_seq, ${LOG_VERSION}, n.seq
FROM {session_heads} h
LEFT JOIN LATERAL (
  SELECT e.seq FROM {entries} e
  WHERE e.project_id = $1 AND e.session_id = $2 AND e.kind = 'message'
    AND e.retracted_by IS NULL AND e.seq > $3::bigint AND e.seq < least($4::bigint, h.last_seq + 1)
  ORDER BY e.seq DESC OFFSET $5 LIMIT 1
) n ON true
WHERE h.project_id = $1 AND h.session_id = $2`,
)

/** Where the logs of sessions stand, for those that exist. Parameters: $1 project, $2 sessions. */
export const READ_HEADS = ofProject(
  'read_heads',
  'SELECT h.session_id, h.last_seq, coalesce(h.run_place, 0) AS run_place FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])',
)

/** The last seq of a session, and when an entry of it was stored. Parameters: $1 project, $2 session, $3 the entry's seq or null. */
export const READ_HEAD = ofProject(
  'read_head',
  `SELECT h.last_seq, ${seenAt('$3')} FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = $2`,
  'one row',
)

/** Parameters: $1 project, $2 session. */
export const READ_LOG_VERSION = ofProject(
  'read_log_version',
  `SELECT ${LOG_VERSION} FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = $2`,
  'one row',
)

export const MERGE_MESSAGE_META = storedFunctionIn('log/read/merge_message_meta.sql', {
  merged_json: mergedJson('before.meta', "(p_body -> 'meta')"),
  mark_changes: markChanges('p_project', '(SELECT p_session AS session_id)'),
  by_id: byId('e', 'p_session', 'p_message'),
})

/**
 * Row: total_tokens, is_counted_by_text, if it is still to be recounted, auto_compaction, if the model is to write a summary
 * or could not. Parameters: $1 project, $2 session.
 */
export const COUNT_TOKENS = ofProject(
  'count_tokens',
  `SELECT h.total_tokens, EXISTS (
  SELECT FROM {token_recounts} r WHERE r.project_id = $1 AND r.session_id <= $2) AS is_counted_by_text,
  (SELECT CASE WHEN a.held_until > now() THEN 'running' WHEN a.due_at IS NOT NULL THEN 'waits' WHEN a.attempts > 0 THEN 'failed' END
    FROM {auto_compactions} a WHERE a.project_id = $1 AND a.session_id = $2) AS auto_compaction
FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = $2`,
)
