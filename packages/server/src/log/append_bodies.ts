import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { invalidRequest } from '@annals/kits/errors.js'
import type { TakeBody } from '@annals/kits/http/request/read_body.js'
import { checkMeta, checkObjectBytes, timeInUtc } from '@annals/kits/http/request/validate.js'
import { newId } from '@annals/kits/ids.js'
import { BATCH_ENTRIES_MAX } from '@annals/kits/limits.js'
import { packagedFile } from '@annals/kits/version.js'
import {
  blobReferences,
  type CountedContent,
  countedContent,
  type FactsOf,
  InvalidMessage,
  type MessageFormat,
  mayReferToBlobs,
  namingBlobs,
  type Part,
  parseStored,
  readMessage,
  showReferences,
} from '@annals/messages'
import { COMPACTION_TYPE } from '@annals/messages/context'
import {
  elementSlices,
  exactly,
  memberObjects,
  memberSlice,
  memberTexts,
  parseJson,
  type Slice,
  writeJson,
} from '@annals/messages/json'
import { countTokens as countIn, type TokenTable, tokenTable } from '@annals/messages/tokens'
import {
  type AppendedEntry,
  type BlobPlace,
  RETRACTION_TYPE,
  type SessionAppend,
} from './append/append_request.js'
import { referencesIn } from './append/blob_places.js'
import { CompactSessionBody } from './compaction_schema.js'
import { AppendEntriesBody, AppendToSessionsBody, RetractEntriesBody } from './entry_schema.js'
import { AddEventBody } from './event_schema.js'
import { AddMessageBody, PatchMetaBody } from './message_schema.js'

/** The types of events that only the service appends, and how. */
const RESERVED_TYPES: ReadonlyMap<string, string> = new Map([
  [RETRACTION_TYPE, 'POST …/retractions retracts entries'],
  [COMPACTION_TYPE, 'POST …/compactions lets a summary stand for entries'],
  ['annals.request', 'POST …/requests opens a request'],
  ['annals.resolution', 'POST /requests/{request_id}/resolve answers a request'],
])

/** @throws AnnalsError invalid_request if only the service appends events of the type */
export function refuseReservedType(type: string, place: string): void {
  const operation = RESERVED_TYPES.get(type)
  if (operation)
    throw invalidRequest(`${place}/type must not be ${type}, which only the service appends: ${operation}.`)
}

export function takeEvent(body: AddEventBody, text: string, bytes: number): AppendedEntry {
  return eventEntry(body, memberTexts(text).get('data')!, bytes, undefined, '')
}

export const takeMessage: TakeBody<AddMessageBody, { entry: AppendedEntry; parts: string }> = (
  { blob: parsed, format = 'openai', meta, key = null, occurred_at },
  text,
  bytes,
  factsOf,
) => {
  checkObjectBytes('/meta', meta, text)
  const id = newId()
  const members = memberTexts(text)
  const blob = members.get('blob')!
  const message = messageEntry(format as MessageFormat, blob, parsed, id, '/blob', factsOf)
  const given = { id, id_given: false, format, key, bytes, occurred_at: happenedAt(occurred_at, '') }
  const entry = messageToStore(message, members, given)
  return { entry, parts: partsJson(message.parts, blob, message.references !== undefined) }
}

export function takeRetraction(
  { entries, ...which }: RetractEntriesBody,
  text: string,
  bytes: number,
  factsOf?: FactsOf,
): Omit<RetractEntriesBody, 'entries'> & { entries: AppendedEntry[] } {
  const named = entries?.findIndex(({ id }) => id !== undefined) ?? -1
  if (named !== -1)
    throw invalidRequest(
      `/entries/${named}/id is not accepted here: an Idempotency-Key makes it safe to repeat the whole request.`,
    )
  return { ...which, entries: entries ? takeEntries({ entries }, text, bytes, factsOf) : [] }
}

export function takeCompaction(
  { summary, ...asked }: CompactSessionBody,
  text: string,
  bytes: number,
  factsOf?: FactsOf,
) {
  const members = memberTexts(text)
  const isOne = !Array.isArray(summary)
  const given = members.get('summary')!
  const blobs = isOne
    ? [memberTexts(given).get('blob')!]
    : memberObjects(text, 'summary').map((message) => message.members.get('blob')!)
  const references: BlobPlace[] = []
  let tokens = 0
  const messages = [summary].flat().map(({ blob, format = 'openai' }, index) => {
    const place = `/summary${isOne ? '' : `/${index}`}/blob`
    const message = messageEntry(format as MessageFormat, blobs[index]!, blob, newId(), place, factsOf)
    tokens += message.tokens
    references.push(...(message.references ?? []))
    return `{"format":"${format}","blob":${blobs[index]}}`
  })
  const said = ['by', 'model'].flatMap((name) => (members.has(name) ? `"${name}":${members.get(name)},` : ''))
  return {
    ...asked,
    summary: {
      // The members of the event's data that the request says, as JSON text, and by how much PostgreSQL writes them longer.
      members: `${said.join('')}"summary":[${messages.join(',')}],"tokens":${tokens}`,
      expansion: bytes - Buffer.byteLength(text),
      references: references.length > 0 ? references : undefined,
    },
  }
}

/** When the entry at a place in the body happened, as it is stored. */
function happenedAt(occurred_at: string | undefined, place: string): string | null {
  return timeInUtc(`${place}/occurred_at`, occurred_at) ?? null
}

/** `given`: the id that the caller chose; `place`: where the event is in the body. */
function eventEntry(
  { type, key, data: parsed, occurred_at }: Pick<AddEventBody, 'type' | 'key' | 'data' | 'occurred_at'>,
  data: string,
  bytes: number,
  given: string | undefined,
  place: string,
): AppendedEntry {
  refuseReservedType(type, place)
  return {
    id: given ?? newId(),
    id_given: given !== undefined,
    kind: 'event',
    type,
    format: null,
    role: null,
    key: key ?? null,
    bytes,
    tokens: 0,
    occurred_at: happenedAt(occurred_at, place),
    data,
    meta: null,
    references: mayReferToBlobs(data) ? referencesIn(parsed, `${place}/data`) : undefined,
  }
}

type Given = Pick<AppendedEntry, 'id' | 'id_given' | 'format' | 'key' | 'bytes' | 'occurred_at'>

/**
 * A message to store. A meta of null counts as absent. Every member is named, in the order of an event's:
 * spreading objects together costs several microseconds, and entries of two shapes slow down whatever handles both.
 */
function messageToStore(
  { role, tokens, references }: Pick<MessageEntry, 'role' | 'tokens' | 'references'>,
  members: Map<string, string>,
  { id, id_given, format, key, bytes, occurred_at }: Given,
): AppendedEntry {
  const meta = members.get('meta')
  return {
    id,
    id_given,
    kind: 'message',
    type: null,
    format,
    role,
    key,
    bytes,
    tokens,
    occurred_at,
    data: members.get('blob')!,
    meta: meta === undefined || meta === 'null' ? '{}' : meta,
    references,
  }
}

/**
 * The entries of a batch to store, in order. `text` is the body, `all_bytes` its length as PostgreSQL will
 * write it.
 * @throws AnnalsError invalid_request, payload_too_large; each names the entry's index
 */
export function takeEntries(
  body: AppendEntriesBody,
  text: string,
  all_bytes: number,
  factsOf?: FactsOf,
): AppendedEntry[] {
  const { entries = [] } = body
  return entriesAt(entries, text, 0, '', bytesOf(text, all_bytes, entries.length), factsOf)
}

export const takeBatch: TakeBody<
  AppendEntriesBody,
  { entries: AppendedEntry[]; apply: string[] | undefined }
> = (body, text, bytes, factsOf) => {
  const apply = applied(body, '')
  const entries = body.entries ? takeEntries(body, text, bytes, factsOf) : []
  return { entries: withInputs(apply, entries), apply }
}

/** The entries that inputs become, and the others. What an input is, the append reads. */
function withInputs(apply: readonly string[] | undefined, entries: AppendedEntry[]): AppendedEntry[] {
  const inputs = apply?.map((id): AppendedEntry => ({ ...INPUT, id }))
  return inputs ? [...inputs, ...entries] : entries
}

const INPUT = {
  id_given: false,
  is_input: true,
  kind: 'event',
  type: null,
  format: null,
  role: null,
  bytes: 0,
  key: null,
  tokens: 0,
  occurred_at: null,
  data: '{}',
  meta: null,
} as const

/** @throws AnnalsError invalid_request, if there is neither an entry nor an input */
function applied({ entries, apply }: Pick<AppendEntriesBody, 'entries' | 'apply'>, place: string) {
  if (!entries && !apply)
    throw invalidRequest(
      `${place}/entries is required: an array of 1 to ${BATCH_ENTRIES_MAX} entries, unless apply names inputs.`,
    )
  const ids = apply?.map((id) => id.toLowerCase())
  const twice = ids?.find((id, index) => ids.indexOf(id) < index)
  if (twice !== undefined) throw invalidRequest(`${place}/apply has ${twice} twice. Send it once.`)
  const same = entries?.findIndex(({ id }) => id !== undefined && ids?.includes(id.toLowerCase())) ?? -1
  if (same !== -1) throw invalidRequest(`${place}/entries/${same}/id is that of an input in apply.`)
  return ids
}

/**
 * The same for several sessions.
 * @throws AnnalsError invalid_request, payload_too_large; each names the index of the session, and of the entry
 */
export function takeAppends(
  body: AppendToSessionsBody,
  text: string,
  all_bytes: number,
  factsOf?: FactsOf,
): SessionAppend[] {
  const entries_all = body.appends.reduce((sum, { entries = [] }) => sum + entries.length, 0)
  if (entries_all > BATCH_ENTRIES_MAX)
    throw invalidRequest(
      `/appends must have at most ${BATCH_ENTRIES_MAX} entries together; there are ${entries_all}.`,
    )
  const lengthOf = bytesOf(text, all_bytes, entries_all)
  const slices = elementSlices(text, memberSlice(text, 'appends')!.from)
  const seen = new Set<string>()
  return body.appends.map((append, index) => {
    const { entries, if_match, fence, configs_patch } = append
    const place = `/appends/${index}`
    const apply = applied(append, place)
    const session_id = append.session_id.toLowerCase()
    if (seen.has(session_id))
      throw invalidRequest(`${place}/session_id was used by an earlier element. Merge the two.`)
    seen.add(session_id)
    checkObjectBytes(`${place}/configs_patch`, configs_patch)
    const { from } = slices[index]!
    const patch = configs_patch && memberSlice(text, 'configs_patch', from)
    return {
      session_id,
      entries: withInputs(apply, entries ? entriesAt(entries, text, from, place, lengthOf, factsOf) : []),
      if_match,
      fence,
      apply,
      configs_patch: patch && text.slice(patch.from, patch.to),
    }
  })
}

type LengthOf = (slice: Slice) => number

/** The length of each of so many entries in a text, as PostgreSQL will write it. */
function bytesOf(text: string, all_bytes: number, entries: number): LengthOf {
  // It is unknown which entry's numbers grow; it is enough that all of them together are accounted for.
  const text_bytes = Buffer.byteLength(text)
  const isOneByteEach = text_bytes === text.length
  const spread = Math.ceil((all_bytes - text_bytes) / entries)
  return ({ from, to }) => (isOneByteEach ? to - from : Buffer.byteLength(text.slice(from, to))) + spread
}

function entriesAt(
  entries: NonNullable<AppendEntriesBody['entries']>,
  text: string,
  from: number,
  outer: string,
  lengthOf: LengthOf,
  factsOf: FactsOf | undefined,
): AppendedEntry[] {
  const objects = memberObjects(text, 'entries', from)
  const seen = new Set<string>()
  return entries.map((entry, index) => {
    const place = `${outer}/entries/${index}`
    const given = entry.id?.toLowerCase()
    if (given !== undefined && seen.has(given)) {
      throw invalidRequest(`${place}/id is already the id of an earlier entry in the batch. Use a new id.`)
    }
    if (given !== undefined) seen.add(given)
    const object = objects[index]!
    return takeEntry(entry, object.members, lengthOf(object), place, factsOf)
  })
}

/**
 * An event or a message to store. `entry`: as it was parsed; `members`: the texts of its members; `place`: where it
 * is in the body.
 */
export function takeEntry(
  entry: BatchEntry,
  members: Map<string, string>,
  bytes: number,
  place: string,
  factsOf?: FactsOf,
): AppendedEntry {
  const given = entry.id?.toLowerCase()
  if (entry.kind === 'event') return eventEntry(entry, members.get('data')!, bytes, given, place)
  const id = given ?? newId()
  checkObjectBytes(`${place}/meta`, entry.meta)
  const { format = 'openai', key = null } = entry
  const message = messageEntry(format, members.get('blob')!, entry.blob, id, `${place}/blob`, factsOf)
  const occurred_at = happenedAt(entry.occurred_at, place)
  const chosen = { id, id_given: given !== undefined, format, key, bytes, occurred_at }
  return messageToStore(message, members, chosen)
}

type BatchEntry = NonNullable<AppendEntriesBody['entries']>[number]

export const LOG_BODIES = {
  addEvent: [AddEventBody, takeEvent],
  addMessage: [AddMessageBody, takeMessage],
  appendEntries: [AppendEntriesBody, takeBatch],
  appendToSessions: [AppendToSessionsBody, takeAppends],
  retractEntries: [RetractEntriesBody, takeRetraction],
  compactSession: [CompactSessionBody, takeCompaction],
  mergeMessageMeta: [PatchMetaBody, checkMeta],
} as const

export interface MessageEntry {
  role: 'user' | 'assistant'
  parts: Part[]
  tokens: number
  references: BlobPlace[] | undefined
}

/**
 * Checks a message, as JSON text and as `JSON.parse` reads it, against its provider's format and derives what is stored
 * with it. `id` is the message's; `pointer` is the blob's place in the request. Where it refers to blobs, the parts have
 * marks of them.
 * @throws AnnalsError invalid_request, naming the field
 */
export function messageEntry(
  format: MessageFormat,
  text: string,
  parsed: unknown,
  id: string,
  pointer: string,
  factsOf?: FactsOf,
): MessageEntry {
  try {
    const references = mayReferToBlobs(text) ? referencesIn(parsed, pointer) : undefined
    const blob = references ? parseStored(format, text) : exactly(parsed, text)
    const message = readMessage(format, blob, { id })
    const { role, parts } = message
    return { role, parts, tokens: countTokens(countedContent(format, message, blob, factsOf)), references }
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    throw invalidRequest(
      `${pointer}${error.pointer} is invalid in a message of ${format} format: it ${error.reason}.`,
    )
  }
}

/** The tokens of a stored message. One that is no message of its format any more has none. */
export function storedTokens(format: MessageFormat, text: string, factsOf: FactsOf): number {
  const blob = parseStored(format, text)
  try {
    return countTokens(countedContent(format, readMessage(format, blob), blob, factsOf))
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return 0
  }
}

/** The parts of a message, whose blob is `text`, as JSON: with references to blobs in place of the marks. */
export function partsJson(parts: Part[], text: string, mayRefer = mayReferToBlobs(text)): string {
  if (!mayRefer) return writeJson(parts)
  const references = blobReferences(parseJson(text)).map(({ reference }) => reference)
  return namingBlobs(writeJson(showReferences(parts, references)))
}

export function storedPartsJson(format: MessageFormat, text: string, id: string): string {
  return partsJson(readMessage(format, parseStored(format, text), { id }).parts, text)
}

const TOKEN_TABLE = packagedFile('dist/o200k_base.bin')
let table: TokenTable | undefined

/** Makes the counter of tokens ready: reading 4 MB and compiling its pattern would hold the first message's event loop. */
export async function readTokenTable(): Promise<void> {
  table ??= tokenTable(await readFile(TOKEN_TABLE))
  countIn(table, 'Hello')
}

/**
 * Tokens of all that is sent with a message: its text in o200k_base, and what images, documents and recordings have by the
 * formulas of their provider. Runs of more than 128 characters without a break are counted in pieces, so their count may be
 * a few tokens too high.
 */
export function countTokens({ text, tokens }: CountedContent): number {
  if (text === '') return tokens
  table ??= tokenTable(readFileSync(TOKEN_TABLE))
  return tokens + countIn(table, text)
}
