import { gunzipSync } from 'node:zlib'
import {
  type Group,
  type Link,
  type Part,
  readLogRecords,
  readSpans,
  recordsBySession,
  spansBySession,
  Unreadable,
} from '@annals/otel'
import type { AppendedEntry } from '../log/append/append_request.js'
import type { AskedSession, KnownSession, Sent, StoreAnswers, StoreCall, Taken } from './otel_on_thread.js'
import { CHANGED_TYPE, eventEntry, NAMING, saidEntry } from './stored_entries.js'

type Store = <Call extends StoreCall>(call: Call) => Promise<StoreAnswers[Call['call']]>

/** Entries and bytes of one append. */
const APPEND_ENTRIES_MAX = 500
const APPEND_BYTES_MAX = 512 * 1024
const IDS_AT_ONCE = 2_500
const SESSIONS_AT_ONCE = 4
/** Somebody else may send the same at the same time. */
const ATTEMPTS_MAX = 5

/**
 * Decodes what was sent, finds out what of it is stored already, and has the rest stored. When it returns, all is
 * committed that was not refused. A span has an id made of its own, and a message one made of all that was said up to
 * it: so whatever is sent again, by whomever and in whatever order, is stored once.
 */
export async function takeIn(sent: Sent, body: Uint8Array, store: Store): Promise<Taken> {
  let sorted: { groups: Group[]; refused: number; reason: string }
  try {
    sorted = sortOut(sent, sent.is_compressed ? decompressed(body, sent.bytes_max) : body)
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    return { unreadable: error.message, is_too_large: error.is_too_large }
  }
  const { groups } = sorted
  const refused = { count: sorted.refused, reason: sorted.reason }
  const known = await knownOf(groups, store)
  if (known === 'failed') return 'failed'
  let isFailed = false
  const left = [...groups.entries()]
  const work = async () => {
    for (let next = left.shift(); next && !isFailed; next = left.shift()) {
      const [at, group] = next
      if (!(await storeGroup(group, known[at]!, sent, store, refused))) isFailed = true
    }
  }
  await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, work))
  return isFailed ? 'failed' : { refused: refused.count, reason: refused.reason }
}

function decompressed(body: Uint8Array, bytes_max: number): Uint8Array {
  try {
    return gunzipSync(body, { maxOutputLength: bytes_max })
  } catch (error) {
    const isTooLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    if (isTooLarge)
      throw new Unreadable(
        `The body has more than ${bytes_max} bytes, decompressed. Send smaller batches.`,
        true,
      )
    throw new Unreadable('The body is not gzip, as its Content-Encoding says.')
  }
}

function sortOut({ signal, encoding, project_id }: Sent, body: Uint8Array) {
  if (signal === 'traces') {
    const { items, refused, reason } = readSpans(body, encoding)
    return { groups: spansBySession(items, project_id, NAMING), refused, reason }
  }
  const { items, refused, reason } = readLogRecords(body, encoding)
  const { groups, left } = recordsBySession(items, project_id, NAMING)
  return {
    groups,
    refused: refused + left,
    reason: reason || (left > 0 ? 'a record names neither a session nor a trace' : ''),
  }
}

interface Known {
  has_messages: boolean
  ids: Set<string>
}

/** Looks up which entries are stored already, in their sessions and in others. */
async function knownOf(groups: Group[], store: Store): Promise<Known[] | 'failed'> {
  const asked: AskedSession[] = groups.map(({ id, user, configs, parts }) => ({
    ...{ id, user, configs, is_only_read: false },
    entry_ids: [...new Set(parts.flatMap((part) => [part.id, ...idsOf(part.input), ...idsOf(part.output)]))],
  }))
  // Entries that came before it was known to which session their trace belongs.
  const elsewhere = new Map<string, string[]>()
  for (const { parts } of groups)
    for (const { id, elsewhere: session } of parts)
      if (session) elsewhere.set(session, [...(elsewhere.get(session) ?? []), id])
  for (const [id, entry_ids] of elsewhere)
    asked.push({ id, user: undefined, configs: {}, entry_ids, is_only_read: true })
  const answer: KnownSession[] = []
  for (const piece of pieces(asked)) {
    const known = await store({ call: 'look_up', sessions: piece.map(({ part }) => part) })
    if (known === 'failed') return known
    for (const [index, { at, from }] of piece.entries()) {
      const { has_messages, known: places } = known[index]!
      // The first question comes before anything is stored.
      answer[at] ??= { has_messages, known: [] }
      for (const place of places) answer[at].known.push(from + place)
    }
  }
  const ids = (at: number) => answer[at]!.known.map((place) => asked[at]!.entry_ids[place]!)
  const others = asked.flatMap(({ is_only_read }, at) => (is_only_read ? ids(at) : []))
  return groups.map((_, at) => {
    const { has_messages }: KnownSession = answer[at]!
    return { has_messages, ids: new Set([...ids(at), ...others]) }
  })
}

interface AskedPart {
  part: AskedSession
  /** The place of the session among all, and of the first id among the session's. */
  at: number
  from: number
}

/** Bounded questions, so that the service's event loop is held for no longer than some ms. */
function* pieces(asked: AskedSession[]): Generator<AskedPart[]> {
  let piece: AskedPart[] = []
  let ids = 0
  for (const [at, session] of asked.entries())
    for (let from = 0; from < Math.max(session.entry_ids.length, 1); from += IDS_AT_ONCE) {
      const part = { ...session, entry_ids: session.entry_ids.slice(from, from + IDS_AT_ONCE) }
      if (piece.length > 0 && ids + part.entry_ids.length > IDS_AT_ONCE) {
        yield piece
        piece = []
        ids = 0
      }
      piece.push({ part, at, from })
      ids += part.entry_ids.length
    }
  if (piece.length > 0) yield piece
}

function idsOf(links: Link[]): string[] {
  return links.map(({ id }) => id)
}

async function storeGroup(
  group: Group,
  known: Known,
  sent: Sent,
  store: Store,
  refused: { count: number; reason: string },
): Promise<boolean> {
  let found: Known = known
  for (let attempt = 1; ; attempt++) {
    const counted = { ...refused }
    const outcome = await appendAll(group, found, sent, store, counted)
    if (outcome === 'stored') Object.assign(refused, counted)
    if (outcome !== 'again') return outcome === 'stored'
    if (attempt === ATTEMPTS_MAX) return false
    const again = await knownOf([group], store)
    if (again === 'failed') return false
    found = again[0]!
  }
}

async function appendAll(
  group: Group,
  known: Known,
  sent: Sent,
  store: Store,
  refused: { count: number; reason: string },
): Promise<'stored' | 'again' | 'failed'> {
  const has = { has_messages: known.has_messages, ids: new Set(known.ids) }
  let entries: AppendedEntry[] = []
  let bytes = 0
  const send = async () => {
    if (entries.length === 0) return 'stored' as const
    const outcome = await store({ call: 'append', session_id: group.id, entries })
    entries = []
    bytes = 0
    return outcome
  }
  for (const part of group.parts) {
    for (const entry of entriesOf(group.id, part, has, sent.entry_bytes_max)) {
      if (typeof entry === 'string') {
        refused.count += 1
        refused.reason ||= entry
        continue
      }
      if (
        entries.length === APPEND_ENTRIES_MAX ||
        (entries.length > 0 && bytes + entry.bytes > APPEND_BYTES_MAX)
      ) {
        const outcome = await send()
        if (outcome !== 'stored') return outcome
      }
      entries.push(entry)
      bytes += entry.bytes
    }
  }
  return send()
}

/** The entries of a part that a session lacks: the model's input, the span, and the output. */
function* entriesOf(
  session_id: string,
  { id, type, data, input, output, continues, began_at, ended_at }: Part,
  has: Known,
  bytes_max: number,
): Generator<AppendedEntry | string> {
  const chain = [...input, ...output].filter(({ is_instruction }) => !is_instruction)
  const from = chain.findLastIndex((link) => has.ids.has(link.id)) + 1
  const isChanged = from === 0 && chain.length > 0 && has.has_messages && !continues
  // Everything before the last known message was said as well, in whatever words it was stored.
  for (const link of chain.slice(0, from)) has.ids.add(link.id)
  if (isChanged) {
    const changed_id = NAMING.idOf(session_id, `changed ${chain[0]!.id}`)
    const said = { span: id, messages: chain.length }
    if (!has.ids.has(changed_id)) yield eventEntry(changed_id, CHANGED_TYPE, said, began_at, bytes_max)
  }
  yield* newMessages(input, has, began_at, bytes_max)
  if (!has.ids.has(id)) {
    has.ids.add(id)
    yield eventEntry(id, type, data(), ended_at, bytes_max)
  }
  yield* newMessages(output, has, ended_at, bytes_max)
}

function* newMessages(
  links: Link[],
  has: Known,
  at: string | null,
  bytes_max: number,
): Generator<AppendedEntry> {
  for (const { id, said } of links) {
    if (has.ids.has(id)) continue
    has.ids.add(id)
    has.has_messages = true
    yield saidEntry(id, said, at, bytes_max)
  }
}
