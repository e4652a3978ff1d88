import type { Session, TimelineItem } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import type { Project } from '../access/project_context.tsx'
import { conversationMarkdown } from './conversation_markdown.ts'
import type { Format } from './converted_messages.ts'

export const FILE_KINDS = ['json', 'ndjson', 'md'] as const
export type FileKind = (typeof FILE_KINDS)[number]

export const FILE_KIND_NAMES: Record<FileKind, string> = { json: 'JSON', ndjson: 'NDJSON', md: 'Markdown' }
export const MEDIA_TYPES: Record<FileKind, string> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  md: 'text/markdown',
}

const PAGE = 200

/**
 * A whole session as a file, in pieces: all entries as the API's timeline has them, or, with a format, all messages in
 * that format; as Markdown it is always the conversation as the console shows it.
 */
export async function conversationFile(
  { annals }: Project,
  session: Session,
  kind: FileKind,
  format: Format | undefined,
): Promise<string[]> {
  if (kind === 'md') return conversationMarkdown(session, await entriesOf(annals, session.id))
  const items: unknown[] = format
    ? await messagesOf(annals, session.id, format)
    : await entriesOf(annals, session.id)
  const lines = items.map((item) => writeJson(item))
  if (kind === 'ndjson') return lines.map((line) => `${line}\n`)
  return ['[\n', ...lines.map((line, index) => `${line}${index < lines.length - 1 ? ',' : ''}\n`), ']\n']
}

async function entriesOf(annals: Project['annals'], id: string): Promise<TimelineItem[]> {
  const items: TimelineItem[] = []
  for await (const page of annals.sessions.timeline(id, { limit: PAGE }).pages()) items.push(...page.items)
  return items
}

async function messagesOf(annals: Project['annals'], id: string, format: Format): Promise<unknown[]> {
  const items: unknown[] = []
  for await (const page of annals.sessions.messages(id, { format }).pages()) items.push(...page.items)
  return items
}
