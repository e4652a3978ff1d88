import { escapeJson, isError, readByIds, stableId } from '@annals/adapter-kit'
import type { Annals } from '@annals/client'
import type { SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import { idOfUuid } from './transcript_entries.js'

/** Most messages that Claude Code may have kept beside a summary; with more, contexts show none of them twice. */
const KEPT_MAX = 200

/** What a line about a compaction says of the messages that stay as they are, in both spellings. */
interface Boundary {
  type?: string
  compactMetadata?: { preservedMessages?: { uuids?: string[] } }
  compact_metadata?: { preserved_messages?: { uuids?: string[] } }
}

/**
 * Lets a summary of Claude Code's stand for what it summarises, so that contexts begin with it: for all ahead of it, apart
 * from messages that its boundary keeps. Where the service refuses that, for example because a call would be parted from
 * its result, contexts stay as they were; the transcript has all lines in any case.
 */
export async function compactAtSummaries(
  annals: Annals,
  session_id: string,
  entries: readonly SessionStoreEntry[],
): Promise<void> {
  for (const [at, entry] of entries.entries()) {
    if (entry.isCompactSummary !== true || entry.uuid === undefined) continue
    const id = idOfUuid(session_id, entry.uuid)
    const [stored] = await readByIds(annals, session_id, [id])
    if (stored?.kind !== 'message') continue
    const boundary = entries.slice(0, at).findLast(({ subtype }) => subtype === 'compact_boundary')
    const except = keptBy(boundary).map((uuid) => idOfUuid(session_id, uuid))
    const compaction = { to_seq: stored.seq, summary: entry.message, except }
    await compact(annals, session_id, compaction, `claude/summary/${id}`)
  }
}

/** Stores a compaction once. Where the service refuses it, contexts stay as they were. */
export async function compact(
  annals: Annals,
  session_id: string,
  { to_seq, summary, except }: { to_seq: number; summary: unknown; except: string[] },
  key: string,
): Promise<void> {
  const blob = escapeJson(summary as Record<string, unknown>)
  const shown = except.length > 0 ? { except } : {}
  try {
    await annals.sessions.compact(
      session_id,
      { to_seq, summary: { format: 'anthropic', blob }, by: 'claude-code', ...shown },
      { idempotency_key: stableId(session_id, key) },
    )
  } catch (error) {
    if (!isError(error, 'invalid_request', 'idempotency_key_reused', 'entry_not_found')) throw error
  }
}

/** The messages that stay as they are beside a summary, by what its boundary says. */
export function keptBy(boundary: SessionStoreEntry | undefined): string[] {
  const { compactMetadata, compact_metadata }: Boundary = boundary ?? {}
  const uuids = compactMetadata?.preservedMessages?.uuids ?? compact_metadata?.preserved_messages?.uuids ?? []
  return uuids.length > KEPT_MAX ? [] : uuids
}
