import { escapeJson, isError, readByIds, stableId } from '@annals/adapter-kit'
import type { Annals } from '@annals/client'
import type { SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import { idOfUuid } from './transcript_entries.js'

/** Most messages that Claude Code may have kept beside a summary; with more, contexts show none of them twice. */
const KEPT_MAX = 200

/** What a line about a compaction says of the messages that stay as they are, in both spellings. */
interface Boundary {
  subtype?: unknown
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
    const except = keptBy(boundary as Boundary | undefined).map((uuid) => idOfUuid(session_id, uuid))
    const summary = {
      format: 'anthropic' as const,
      blob: escapeJson(entry.message as Record<string, unknown>),
    }
    const compaction = {
      to_seq: stored.seq,
      summary,
      by: 'claude-code',
      ...(except.length > 0 && { except }),
    }
    try {
      const options = { idempotency_key: stableId(session_id, 'claude/summary', id) }
      await annals.sessions.compact(session_id, compaction, options)
    } catch (error) {
      if (!isError(error, 'invalid_request', 'idempotency_key_reused', 'entry_not_found')) throw error
    }
  }
}

function keptBy(boundary: Boundary | undefined): string[] {
  const { compactMetadata, compact_metadata } = boundary ?? {}
  const uuids = compactMetadata?.preservedMessages?.uuids ?? compact_metadata?.preserved_messages?.uuids ?? []
  return uuids.length > KEPT_MAX ? [] : uuids
}
