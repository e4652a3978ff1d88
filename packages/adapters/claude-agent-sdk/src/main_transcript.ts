import {
  BODY_BYTES_MAX,
  createdOnFirstUse,
  cutIntoBatches,
  escapeJson,
  isError,
  type KeyedNewSession,
  readByIds,
  unescapeJson,
} from '@annals/adapter-kit'
import type { Annals, NewEntry } from '@annals/client'
import {
  foldSessionSummary,
  type SessionKey,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from '@anthropic-ai/claude-agent-sdk'

/** Where a transcript's summary stands in its session's configs. */
export const SUMMARY_CONFIG = 'claude_summary'

/** Room in a request besides its entries. A summary has a few texts, which the SDK cuts. */
const SUMMARY_BYTES_MAX = 16 * 1024

/** An entry of the transcript, and what stores it. */
export interface StoredAs {
  entry: SessionStoreEntry
  id: string
  parts: NewEntry[]
}

/**
 * What is known of the end of a session's log.
 *
 * - unknown: it is read before the next append, and so is which entries are stored already;
 * - known: the last append was ours, and all of it was new. If somebody else appends, the next append finds out.
 */
interface Head {
  seq: number
  summary: SessionSummaryEntry | undefined
}

/**
 * Appends to a main transcript and keeps its summary with it: entries and summary change in one transaction, which holds
 * only if nobody has appended since the summary was read. So any number of processes keep it right.
 */
export class MainTranscript {
  #head: Head | undefined

  constructor(
    private readonly annals: Annals,
    private readonly session: KeyedNewSession,
    private readonly key: SessionKey,
    private readonly body_bytes_max: number | undefined,
  ) {}

  async append(entries: readonly StoredAs[]): Promise<void> {
    const owners = new Map(
      entries.flatMap((one) => one.parts.map((part) => [escapeJson(part), one] as const)),
    )
    const body_bytes_max = (this.body_bytes_max ?? BODY_BYTES_MAX) - SUMMARY_BYTES_MAX
    for (const batch of cutIntoBatches([...owners.keys()], body_bytes_max)) {
      const ends = batch.filter((part) => part.id === owners.get(part)!.id)
      await this.#appendBatch(batch, new Map(ends.map((part) => [part, owners.get(part)!.entry])))
    }
  }

  /** `ends` are the parts with which an entry of the transcript is complete. */
  async #appendBatch(batch: NewEntry[], ends: Map<NewEntry, SessionStoreEntry>): Promise<void> {
    for (;;) {
      try {
        const isKnown = this.#head !== undefined
        const head = this.#head ?? (await this.#readHead())
        const fresh = isKnown ? batch : await this.#notStored(batch)
        if (fresh.length === 0) return
        this.#head = undefined
        const added = fresh.flatMap((part) => ends.get(part) ?? [])
        const summary = added.length > 0 ? foldSessionSummary(head.summary, this.key, added) : head.summary
        const [answer] = (
          await this.annals.sessions.appendToSessions([
            {
              session_id: this.session.use_uuid,
              entries: fresh,
              if_match: head.seq,
              ...(summary && { configs_patch: escapeJson({ [SUMMARY_CONFIG]: summary.data }) }),
            },
          ])
        ).appends
        const seqs = answer!.items.map(({ seq }) => seq)
        if (isKnown && Math.min(...seqs) <= head.seq) return
        this.#head = { seq: Math.max(...seqs), summary }
        return
      } catch (error) {
        this.#head = undefined
        if (!isPassing(error)) throw error
      }
    }
  }

  /** The seq is read first: if another process appends before the summary is read, the append on this seq is refused. */
  async #readHead(): Promise<Head> {
    const { use_uuid } = this.session
    const newest = () => this.annals.sessions.timeline(use_uuid, { time_desc: true, limit: 1 }).page()
    const { items } = await createdOnFirstUse(this.annals, this.session, newest)
    const { configs } = await this.annals.sessions.configs.get(use_uuid)
    const data = configs[SUMMARY_CONFIG] as unknown as Record<string, unknown> | undefined
    const { sessionId } = this.key
    return {
      seq: items[0]?.seq ?? 0,
      summary: data && { sessionId, mtime: 0, data: unescapeJson(data) },
    }
  }

  async #notStored(batch: NewEntry[]): Promise<NewEntry[]> {
    const ids = batch.map(({ id }) => id!)
    const stored = new Set((await readByIds(this.annals, this.session.use_uuid, ids)).map(({ id }) => id))
    return batch.filter(({ id }) => !stored.has(id!))
  }
}

/**
 * Whether an append can be tried again with what is stored now: somebody else has appended, has stored an entry with
 * one of its ids, or has deleted the session.
 */
function isPassing(error: unknown): boolean {
  return isError(error, 'seq_conflict', 'idempotency_key_reused', 'session_not_found')
}
