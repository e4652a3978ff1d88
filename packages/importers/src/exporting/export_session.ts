import type { TimelineItem } from '@annals/client'
import { withoutEscapes, writeJson } from '@annals/messages/json'
import { AtifDocument } from './atif_document.js'
import { ConversationDocument } from './conversation_document.js'
import { type AboutSession, isLive, type Omissions, type SessionDocument } from './session_document.js'

export const EXPORT_FORMATS = ['atif', 'openai', 'anthropic', 'jsonl'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/**
 * Writes a session in another format, as one line of JSON, or as JSON lines; in memory that does not grow with the log.
 * What the format cannot say is counted in `omitted`, by reason, and named at the end of the line.
 */
export async function* exportSession(
  { entries, ...about }: AboutSession & { entries: AsyncIterable<TimelineItem> },
  format: ExportFormat,
  omitted: Omissions,
): AsyncGenerator<string> {
  if (format === 'jsonl') {
    yield sessionLine(about)
    for await (const entry of entries) yield `${writeJson(entry)}\n`
    return
  }
  // Of this session alone: `omitted` may be of several.
  const own: Omissions = new Map()
  const document = sessionDocument(about, format, own)
  for await (const entry of entries) yield document.add(entry)
  yield document.end()
  for (const [reason, count] of own) omitted.set(reason, (omitted.get(reason) ?? 0) + count)
}

/** The first of the lines of a session. */
export function sessionLine({ session, user }: AboutSession): string {
  return `${writeJson({ kind: 'session', user, ...session })}\n`
}

/** A session in a format that has it on one line. What adapters escaped is shown as other readers are shown it. */
export function sessionDocument(
  about: AboutSession,
  format: Exclude<ExportFormat, 'jsonl'>,
  omitted: Omissions = new Map(),
): SessionDocument {
  const document =
    format === 'atif' ? new AtifDocument(about, omitted) : new ConversationDocument(about, format, omitted)
  return {
    add: (entry) => (isLive(entry, omitted) ? withoutEscapes(document.add(entry)) : ''),
    end: () => withoutEscapes(document.end()),
  }
}
