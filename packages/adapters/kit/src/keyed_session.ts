import {
  type Annals,
  AnnalsError,
  type AppendOptions,
  type NewEntry,
  type NewSession,
  type TimelineItem,
} from '@annals/client'
import { cutIntoBatches, UnstorableEntries, withoutRepeatedIds } from './batches.js'
import { escapeJson } from './escape.js'

/** What a session is created with; `use_uuid` is its stable id, and the framework's own key is part of `configs`. */
export type KeyedNewSession = NewSession & { use_uuid: string }

export interface KeyedAppendOptions extends AppendOptions {
  /** What the framework calls this write, as `idempotencyKey` gives it. Repeating the append stores nothing more. */
  idempotency_key: string
  /** All or nothing: if it is too much for one request, it is refused before anything is stored. */
  is_atomic?: boolean
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
  try {
    return await write()
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.error !== 'session_not_found') throw error
  }
  await createSession(annals, session)
  return write()
}

/** Creates the session if it is not there. One that is there stays as it is, also if its configs have changed. */
export async function createSession(annals: Annals, session: KeyedNewSession): Promise<void> {
  try {
    await annals.sessions.create(session)
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.error !== 'session_exists') throw error
  }
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
  { is_atomic, body_bytes_max, ...options }: KeyedAppendOptions,
): Promise<TimelineItem[]> {
  const batches = cutIntoBatches(withoutRepeatedIds(entries.map(escapeJson)), body_bytes_max)
  if (batches.length > 1 && (is_atomic || options.if_match !== undefined)) {
    throw new UnstorableEntries(
      `${entries.length} entries must be stored together, and one request cannot carry them: it takes at most 1,000 entries and ${body_bytes_max ?? 'by default 1048576'} bytes.`,
    )
  }
  const stored: TimelineItem[] = []
  for (const [index, batch] of batches.entries()) {
    const idempotency_key = index === 0 ? options.idempotency_key : `${options.idempotency_key}:${index}`
    const append = () => annals.sessions.appendBatch(session.use_uuid, batch, { ...options, idempotency_key })
    stored.push(...(await createdOnFirstUse(annals, session, append)).items)
  }
  return stored
}
