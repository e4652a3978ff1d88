import { writeJson } from '@annals/messages/json'
import { atifDocument } from './atif_document.js'
import { conversationDocument } from './conversation_document.js'
import type { ExportedSession, Omissions } from './live_entries.js'

export const EXPORT_FORMATS = ['atif', 'openai', 'anthropic', 'jsonl'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/**
 * Writes a session in another format, as one line of JSON, or as JSON lines; in memory that does not grow with the log.
 * What the format cannot say is counted in `omitted`, by reason.
 */
export async function* exportSession(
  { session, user, entries }: ExportedSession,
  format: ExportFormat,
  omitted: Omissions,
): AsyncGenerator<string> {
  if (format === 'atif') yield* atifDocument({ session, user, entries }, omitted)
  else if (format === 'jsonl') {
    yield `${writeJson({ kind: 'session', user, ...session })}\n`
    for await (const entry of entries) yield `${writeJson(entry)}\n`
  } else yield* conversationDocument({ session, user, entries }, format, omitted)
}
