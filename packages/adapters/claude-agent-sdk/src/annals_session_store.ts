import { createHash } from 'node:crypto'
import {
  appendToKeyed,
  createSession,
  escapeJson,
  idempotencyKey,
  ifFound,
  isError,
  type KeyedNewSession,
  stableId,
  unescapeJson,
} from '@annals/adapter-kit'
import type { Annals, Session } from '@annals/client'
import type {
  SessionKey,
  SessionStore,
  SessionStoreEntry,
  SessionSummaryEntry,
} from '@anthropic-ai/claude-agent-sdk'
import { followBranch } from './branches.js'
import { compactAtSummaries } from './compactions.js'
import { MainTranscript, type StoredAs, SUMMARY_CONFIG } from './main_transcript.js'
import { entryIds, newEntries, newNonce, transcriptEntry } from './transcript_entries.js'

export interface AnnalsSessionStoreOptions {
  /** The user that new transcripts belong to, as the service names users. */
  user?: string | undefined
  /** The limit of a body as the service is set, in bytes; default 1 MiB. */
  body_bytes_max?: number | undefined
}

/** The transcript, as in the session's configs. `subpath` is null for a main transcript. */
interface TranscriptConfigs {
  project_key: string
  session_id: string
  subpath: string | null
}

const CONFIG = 'claude_session'
const PAGE_LIMIT = 200
/** Most transcripts whose state is kept; those that were not used for the longest time are read again. */
const TRANSCRIPTS_KEPT_MAX = 200
/** Most batches that failed and may be sent again. */
const IN_DOUBT_MAX = 100

/** Keeps the transcripts of the Claude Agent SDK in Annals: a transcript is a session, a sub-agent's one below it. */
export class AnnalsSessionStore implements SessionStore {
  readonly #annals: Annals
  readonly #options: AnnalsSessionStoreOptions
  /** The last append of each transcript: within a process, they are stored in the order of their calls. */
  readonly #queues = new Map<string, Promise<void>>()
  readonly #transcripts = new Map<string, MainTranscript>()
  /** The nonces of batches whose outcome is unknown, by their digests: sent again, a batch is the same batch. */
  readonly #inDoubt = new Map<string, string>()

  constructor(annals: Annals, options: AnnalsSessionStoreOptions = {}) {
    this.#annals = annals
    this.#options = options
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    if (entries.length === 0) return
    const { use_uuid } = this.#sessionOf(key)
    const before = this.#queues.get(use_uuid) ?? Promise.resolve()
    const appended = before.catch(() => {}).then(() => this.#append(key, entries))
    this.#queues.set(use_uuid, appended)
    try {
      await appended
    } finally {
      if (this.#queues.get(use_uuid) === appended) this.#queues.delete(use_uuid)
    }
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const { use_uuid } = this.#sessionOf(key)
    const entries: SessionStoreEntry[] = []
    const read = async () => {
      for await (const item of this.#annals.sessions.timeline(use_uuid, { limit: 1_000 })) {
        const entry = await transcriptEntry(this.#annals, use_uuid, item)
        if (entry !== undefined) entries.push(entry)
      }
    }
    await ifFound(read(), undefined)
    return entries.length > 0 ? entries : null
  }

  async listSessions(projectKey: string): Promise<Array<{ sessionId: string; mtime: number }>> {
    const sessions = await this.#mainSessions(projectKey)
    return sessions.map((session) => ({
      sessionId: transcriptOf(session).session_id,
      mtime: mtimeOf(session),
    }))
  }

  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const sessions = await this.#mainSessions(projectKey)
    return sessions.map((session) => ({
      sessionId: transcriptOf(session).session_id,
      mtime: mtimeOf(session),
      data: unescapeJson(session.configs[SUMMARY_CONFIG] as unknown as Record<string, unknown>),
    }))
  }

  /** Deletes a transcript; a main one with those of its sub-agents. */
  async delete(key: SessionKey): Promise<void> {
    const { use_uuid } = this.#sessionOf(key)
    this.#transcripts.delete(use_uuid)
    await ifFound(this.#annals.sessions.delete(use_uuid), undefined)
  }

  async listSubkeys({ projectKey, sessionId }: { projectKey: string; sessionId: string }): Promise<string[]> {
    const { use_uuid: parent } = this.#sessionOf({ projectKey, sessionId })
    const subpaths: string[] = []
    const read = async () => {
      const query = { parent, filter_by_configs: { [CONFIG]: {} }, limit: PAGE_LIMIT }
      for await (const session of this.#annals.sessions.list(query))
        subpaths.push(transcriptOf(session).subpath ?? '')
    }
    await ifFound(read(), undefined)
    return subpaths
  }

  async #append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const { use_uuid } = this.#sessionOf(key)
    const digest = createHash('sha256')
      .update(JSON.stringify([use_uuid, entries]))
      .digest('base64')
    const nonce = this.#inDoubt.get(digest) ?? newNonce()
    try {
      await this.#store(key, entries, nonce, true).catch((error: unknown) => {
        // A service of another version may judge messages differently. It takes any event.
        if (!isError(error, 'invalid_request')) throw error
        return this.#store(key, entries, nonce, false)
      })
      this.#inDoubt.delete(digest)
    } catch (error) {
      keepNewest(this.#inDoubt, digest, nonce, IN_DOUBT_MAX)
      throw error
    }
  }

  async #store(
    key: SessionKey,
    entries: SessionStoreEntry[],
    nonce: string,
    as_messages: boolean,
  ): Promise<void> {
    const session = this.#sessionOf(key)
    const { body_bytes_max } = this.#options
    const ids = entryIds(session.use_uuid, entries, nonce)
    const seen = new Set<string>()
    const stored: StoredAs[] = entries.flatMap((entry, index) => {
      const id = ids[index]!
      if (seen.has(id)) return []
      seen.add(id)
      // Earlier versions of Claude Code have what sub-agents say among the lines of the conversation. Its context has none
      // of that, and none of what the command wrote in the model's place, such as that a limit is reached.
      const isOfAgent = key.subpath === undefined && entry.isSidechain === true
      const isBeside = isOfAgent || entry.isApiErrorMessage === true
      const how = { as_messages: as_messages && !isBeside, body_bytes_max }
      return [{ entry, id, parts: newEntries(entry, id, how) }]
    })
    if (key.subpath === undefined) {
      await this.#transcript(key, session).append(stored)
      await compactAtSummaries(this.#annals, session.use_uuid, entries)
      await followBranch(this.#annals, session.use_uuid, entries)
      return
    }
    const { projectKey, sessionId } = key
    const parent = this.#sessionOf({ projectKey, sessionId })
    const append = () =>
      appendToKeyed(
        this.#annals,
        { ...session, parent: parent.use_uuid },
        stored.flatMap(({ parts }) => parts),
        { idempotency_key: idempotencyKey(session.use_uuid, nonce), keeps_stored: true, body_bytes_max },
      )
    await append().catch(async (error: unknown) => {
      if (!isError(error, 'session_not_found')) throw error
      await createSession(this.#annals, parent)
      await append()
    })
  }

  #transcript(key: SessionKey, session: KeyedNewSession): MainTranscript {
    const kept =
      this.#transcripts.get(session.use_uuid) ??
      new MainTranscript(this.#annals, session, key, this.#options.body_bytes_max)
    keepNewest(this.#transcripts, session.use_uuid, kept, TRANSCRIPTS_KEPT_MAX)
    return kept
  }

  #sessionOf({ projectKey, sessionId, subpath }: SessionKey): KeyedNewSession {
    const names = subpath === undefined ? [projectKey, sessionId] : [projectKey, sessionId, subpath]
    const configs = { project_key: projectKey, session_id: sessionId, subpath: subpath ?? null }
    return {
      use_uuid: stableId('claude-agent-sdk', ...names),
      configs: escapeJson({ [CONFIG]: configs }),
      user: this.#options.user,
    }
  }

  /** The main transcripts that something was appended to. */
  async #mainSessions(projectKey: string): Promise<Session[]> {
    const filter = escapeJson({ [CONFIG]: { project_key: projectKey, subpath: null }, [SUMMARY_CONFIG]: {} })
    const sessions: Session[] = []
    for await (const session of this.#annals.sessions.list({ filter_by_configs: filter, limit: PAGE_LIMIT }))
      sessions.push(session)
    return sessions
  }
}

function transcriptOf({ configs }: Session): TranscriptConfigs {
  return unescapeJson(configs[CONFIG] as unknown as TranscriptConfigs)
}

/** Milliseconds since 1970, by the service's clock. */
function mtimeOf({ updated_at }: Session): number {
  return Math.floor(Date.parse(updated_at))
}

/** Sets an entry as the newest one, and drops the oldest beyond `max`. */
function keepNewest<Value>(map: Map<string, Value>, name: string, value: Value, max: number): void {
  map.delete(name)
  map.set(name, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}
