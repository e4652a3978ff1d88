import type { Annals, AppendOptions, NewEntry, NewSession, TimelineItem } from '@annals/client'
import { AnnalsError } from '@annals/client'
import { cutIntoBatches, UnstorableEntries, withoutRepeatedIds } from './batches.js'
import { escapeJson } from './escape.js'
import { readByIds } from './read_by_ids.js'
import { stableId } from './stable_names.js'

/** The fields with which a session is created; `use_uuid` is its stable id, and the framework's own key is part of `configs`. */
export type KeyedNewSession = NewSession & { use_uuid: string }

export interface KeyedAppendOptions extends AppendOptions {
  /** The framework's name for this write, from `idempotencyKey`. Repeating the append stores nothing more. */
  idempotency_key: string
  /** All or nothing: if it is too much for one request, it is refused before anything is stored. */
  is_atomic?: boolean
  /** The first entry with an id wins: one whose id is stored already, with other content, is left out. */
  keeps_stored?: boolean
  /** The limit of a body as the service is set, in bytes; default 1 MiB. */
  body_bytes_max?: number | undefined
}

/**
 * Runs a write, and creates the session if the write finds none. Any number of callers at once create one session.
 * @throws what the write throws
 */
export async function createdOnFirstUse<Answer>(
  annals: Annals,
  session: KeyedNewSession,
  write: () => Promise<Answer>,
): Promise<Answer> {
  return write().catch(async (error: unknown) => {
    if (!isError(error, 'session_not_found')) throw error
    await createSession(annals, session)
    return write()
  })
}

/** Creates the session, or leaves the one that is there as it is, also if its configs have changed. */
export async function createSession(annals: Annals, session: KeyedNewSession): Promise<void> {
  await annals.sessions.create(session).catch((error: unknown) => {
    if (!isError(error, 'session_exists')) throw error
  })
}

/**
 * Appends to a session, which the first append creates, and returns the stored entries. Entries that repeat an id are
 * stored once. What PostgreSQL cannot hold is escaped; `unescapeJson` restores it. More than one request can carry is
 * appended in several, unless `is_atomic` or `if_match` forbids that.
 * @throws UnstorableEntries before anything is stored; AnnalsError
 */
export async function appendToKeyed(
  annals: Annals,
  session: KeyedNewSession,
  entries: readonly NewEntry[],
  { is_atomic, keeps_stored, body_bytes_max, ...options }: KeyedAppendOptions,
): Promise<TimelineItem[]> {
  // With an id each, what is left of a batch is stored once whichever part of it was stored before.
  const named = keeps_stored
    ? entries.map((entry, index) => ({ id: stableId(options.idempotency_key, `${index}`), ...entry }))
    : entries
  const batches = cutIntoBatches(withoutRepeatedIds(named.map(escapeJson)), body_bytes_max)
  if (batches.length > 1 && (is_atomic || options.if_match !== undefined)) {
    throw new UnstorableEntries(
      `${entries.length} entries must be stored together, and one request cannot carry them: it takes at most 1,000 entries and ${body_bytes_max ?? 'by default 1048576'} bytes.`,
    )
  }
  const append = async (batch: NewEntry[], idempotency_key: string): Promise<TimelineItem[]> => {
    const write = () => annals.sessions.appendBatch(session.use_uuid, batch, { ...options, idempotency_key })
    try {
      return (await createdOnFirstUse(annals, session, write)).items
    } catch (error) {
      if (!keeps_stored || !isError(error, 'idempotency_key_reused')) throw error
      const ids = batch.map(({ id }) => id!)
      const stored = new Set((await readByIds(annals, session.use_uuid, ids)).map(({ id }) => id))
      const rest = batch.filter(({ id }) => !stored.has(id!.toLowerCase()))
      if (rest.length === batch.length) throw error
      return rest.length === 0 ? [] : append(rest, stableId(idempotency_key, JSON.stringify(rest)))
    }
  }
  const stored: TimelineItem[] = []
  for (const [n, batch] of batches.entries()) {
    const part = n === 0 ? '' : `:${n}`
    stored.push(...(await append(batch, options.idempotency_key + part)))
  }
  return stored
}

/** Whether the service answered with one of these errors. */
export function isError(error: unknown, ...names: string[]): error is AnnalsError {
  return error instanceof AnnalsError && names.includes(error.error)
}

/** What a request answers, or `otherwise` where it does not find the session. */
export function ifFound<Answer, Other>(request: Promise<Answer>, otherwise: Other): Promise<Answer | Other> {
  return request.catch((error: unknown) => {
    if (isError(error, 'session_not_found')) return otherwise
    throw error
  })
}
