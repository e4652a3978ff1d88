import { createHash } from 'node:crypto'
import { AnnalsError, invalidRequest, notFound } from '@annals/kits/errors.js'
import { COMPACTED_ENTRIES_MAX, COMPACTED_TOOL_USES_MAX, COMPACTIONS_MAX } from '@annals/kits/limits.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import {
  CallSpans,
  type ContextMessage,
  type NearestPlaces,
  type StoredSeq,
  storedSeq,
} from '@annals/messages/context'
import type { CompactSessionBody } from '../compaction_schema.js'
import { READ_COMPACTED, READ_COVERED } from './compaction_queries.js'
import { findIds, LogReader, readLastSeq, UNLIMITED } from './read_log.js'

/** Entries that one statement makes lines of. */
const LINES_AT_ONCE = 1_000
/** Messages before and after what is compacted among which the other halves of its calls and results are looked for. */
const NEAR_MESSAGES = 1_000

interface Range {
  from_seq: number
  to_seq: number
}

type AskedCompaction = Pick<CompactSessionBody, 'from_seq' | 'to_seq' | 'except'>

export interface CompactionPlan extends Range {
  except_seqs: number[]
  digest: string
  entries: number
  /** It holds unless something is retracted or compacted after this seq. */
  seen_seq: number
}

export interface CompactedLog {
  database: Queryable
  project_id: string
  session_id: string
  /** Reads the calls and results of messages, in their order. */
  know(messages: StoredSeq[]): Promise<ContextMessage[]>
}

/**
 * Plans a compaction, or says why it is refused. It is read while others append: since entries do not change, it holds
 * as long as nothing is retracted or compacted.
 */
export async function planCompaction(
  log: CompactedLog,
  asked: AskedCompaction,
  if_match: number | undefined,
): Promise<CompactionPlan | AnnalsError> {
  try {
    return await plan(log, asked, if_match)
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.error === 'unavailable') throw error
    return (await isGone(log)) ? notFound('session') : error
  }
}

/** A session that was deleted meanwhile has no head; that its messages were missing is no fault of the request. */
async function isGone({ database, project_id, session_id }: CompactedLog): Promise<boolean> {
  try {
    await readLastSeq(database, project_id, session_id)
    return false
  } catch (error) {
    if (error instanceof AnnalsError && error.error === 'session_not_found') return true
    throw error
  }
}

async function plan(
  log: CompactedLog,
  { to_seq, from_seq = 1, except = [] }: AskedCompaction,
  if_match: number | undefined,
): Promise<CompactionPlan> {
  const { database, project_id, session_id } = log
  if (from_seq > to_seq)
    throw invalidRequest(`/from_seq must not be greater than to_seq, which is ${to_seq}.`)
  const seen_seq = await readLastSeq(database, project_id, session_id, { seq: to_seq })
  if (if_match !== undefined && if_match !== seen_seq)
    throw new AnnalsError(
      'seq_conflict',
      `If-Match expected seq ${if_match}, but the session's last seq is ${seen_seq}. Read the new entries and try again.`,
    )
  const range = { from_seq, to_seq }
  const before = await readCompacted(log, range)
  // Between the calls and results of what is compacted already, nothing is parted; but an exception may do so.
  const read_from = except.length > 0 ? from_seq : Math.max(from_seq, (before?.to_seq ?? 0) + 1)
  if (to_seq - read_from >= COMPACTED_ENTRIES_MAX)
    throw invalidRequest(
      `/to_seq: at most ${COMPACTED_ENTRIES_MAX} entries are compacted at once, but ${to_seq - read_from + 1} would be. Compact up to seq ${read_from + COMPACTED_ENTRIES_MAX - 1} first.`,
    )
  const except_seqs = await seqsOf(log, except, range)
  const missing = await checkCalls(log, range, read_from, new Set(except_seqs))
  if (missing !== undefined)
    throw invalidRequest(`/except/${except_seqs.indexOf(missing)} was retracted. Leave it out.`)
  const covered = await digestOf(log, range)
  if (covered.messages === 0)
    throw invalidRequest(
      `/to_seq: there is no message from seq ${from_seq} to ${to_seq}, so there is nothing to compact.`,
    )
  const { digest, entries } = covered
  return { ...range, except_seqs: except_seqs.toSorted((a, b) => a - b), digest, entries, seen_seq }
}

/** The range of the newest compaction, which the new one must cover. */
async function readCompacted(
  { database, project_id, session_id }: CompactedLog,
  { from_seq, to_seq }: Range,
): Promise<Range | undefined> {
  const [row] = await database.query(READ_COMPACTED, [project_id, session_id])
  if (!row || row.from_seq === null || row.to_seq === null) return undefined
  const before = { from_seq: Number(row.from_seq), to_seq: Number(row.to_seq) }
  const covers = `the compaction at seq ${row.seq} covers ${before.from_seq} to ${before.to_seq}, and a later one must cover as much`
  if (to_seq < before.to_seq) throw invalidRequest(`/to_seq must be at least ${before.to_seq}: ${covers}.`)
  if (from_seq > before.from_seq)
    throw invalidRequest(`/from_seq must be at most ${before.from_seq}: ${covers}.`)
  if (Number(row.count) >= COMPACTIONS_MAX)
    throw invalidRequest(
      `The session has ${row.count} compactions, the most it may have. Retract older ones that you do not need: POST …/retractions.`,
    )
  return before
}

async function seqsOf(log: CompactedLog, except: string[], { from_seq, to_seq }: Range): Promise<number[]> {
  if (except.length === 0) return []
  return (await findIds(log.database, log, except)).map((entry, index) => {
    if (!entry)
      throw new AnnalsError('entry_not_found', `/except/${index} is not the id of an entry in this session.`)
    if (entry.type !== null) throw invalidRequest(`/except/${index} is an event; only messages can be kept.`)
    if (entry.seq < from_seq || entry.seq > to_seq)
      throw invalidRequest(
        `/except/${index} is the message at seq ${entry.seq}, which is outside the compacted range. Leave it out.`,
      )
    return entry.seq
  })
}

/** Checks that no call is parted from its result. Returns an exception that is no live message. */
async function checkCalls(
  log: CompactedLog,
  { from_seq, to_seq }: Range,
  read_from: number,
  excepted: ReadonlySet<number>,
): Promise<number | undefined> {
  const { database, project_id, session_id } = log
  const reader = new LogReader(database, { project_id, session_id })
  const spans = new CallSpans()
  const missing = new Set(excepted)
  const read = async (above_seq: number, below_seq: number, limit: number) => {
    const page = { kind: 'message', above_seq, below_seq, limit, time_desc: false } as const
    for await (const piece of reader.read('context_message', page)) {
      for (const message of await log.know(piece.map(storedSeq))) {
        spans.add(message)
        missing.delete(message.seq)
      }
      if (spans.uses > COMPACTED_TOOL_USES_MAX)
        throw invalidRequest(
          `/to_seq: more than ${COMPACTED_TOOL_USES_MAX} tool calls and results would be compacted at once. Compact up to an earlier seq first.`,
        )
    }
  }
  // Where the range goes on from an earlier one, that did not part any.
  if (read_from === from_seq && from_seq > 1) {
    const first = await reader.nthNewestMessage(NEAR_MESSAGES, { above_seq: 0, below_seq: from_seq })
    await read(Math.max(first - 1, 0), from_seq, UNLIMITED)
  }
  await read(read_from - 1, to_seq + 1, UNLIMITED)
  await read(to_seq, UNLIMITED, NEAR_MESSAGES)
  refuseParted('from_seq', from_seq - 1, spans)
  refuseParted('to_seq', to_seq, spans)
  const parted = spans.partedFrom(excepted)
  if (parted)
    throw invalidRequest(
      `/except has the message at seq ${parted.seq}, but not the one at seq ${parted.other}, which has the other half of a tool call: a call and its result stay together. Add it, too.`,
    )
  return [...missing][0]
}

/** @throws AnnalsError invalid_request; `seq` is the last one before the cut */
function refuseParted(field: 'from_seq' | 'to_seq', seq: number, spans: CallSpans): void {
  const near = spans.partedAt(seq)
  if (!near) return
  const shift = field === 'from_seq' ? 1 : 0
  const places = [near.before + shift, near.after === undefined ? 0 : near.after + shift].filter(
    (one) => one > 0,
  )
  const nearest = places.length > 0 ? ` The nearest seq that does not: ${places.join(' or ')}.` : ''
  throw new CallParted(
    `/${field} would part a tool call from its result, or from the one that it waits for.${nearest}`,
    near,
  )
}

/** A range that parts a call from its result. `near`: where the log may be divided instead. */
export class CallParted extends AnnalsError {
  constructor(
    msg: string,
    readonly near: NearestPlaces,
  ) {
    super('invalid_request', msg)
  }
}

async function digestOf(
  { database, project_id, session_id }: CompactedLog,
  { from_seq, to_seq }: Range,
): Promise<{ digest: string; entries: number; messages: number }> {
  const hash = createHash('sha256')
  let entries = 0
  let messages = 0
  for (let from = from_seq; from <= to_seq; from += LINES_AT_ONCE) {
    const to = Math.min(from + LINES_AT_ONCE - 1, to_seq)
    const [row] = await database.query(READ_COVERED, [project_id, session_id, from, to])
    hash.update(row!.lines!)
    entries += Number(row!.entries)
    messages += Number(row!.messages)
  }
  return { digest: hash.digest('hex'), entries, messages }
}
