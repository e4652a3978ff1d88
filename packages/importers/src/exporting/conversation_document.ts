import type { TimelineItem } from '@annals/client'
import { ConversationRenderer, InvalidMessage, type MessageFormat, readMessage } from '@annals/messages'
import { writeJson } from '@annals/messages/json'
import type { JsonObject } from '../records.js'
import { type ExportedSession, liveEntries, type Omissions, omit } from './live_entries.js'

/** Parts that a format has no form for: the table in docs/messages.md. */
const UNSAID: Record<'openai' | 'anthropic', ReadonlySet<string>> = {
  openai: new Set(['thinking', 'redacted_thinking', 'data']),
  anthropic: new Set(['audio', 'video', 'data']),
}

/** A session as one line `{ "messages": […] }`, as files for fine-tuning have it; for Anthropic with `system`. */
export async function* conversationDocument(
  { session, user, entries }: ExportedSession,
  format: 'openai' | 'anthropic',
  omitted: Omissions,
): AsyncGenerator<string> {
  const renderer = new ConversationRenderer(format)
  const system: string[] = []
  let count = 0
  const before = () => {
    const head = system.length > 0 ? `"system":${writeJson(system.join('\n\n'))},` : ''
    return `{${head}"messages":[`
  }
  for await (const entry of liveEntries(entries, omitted)) {
    if (entry.kind === 'event') {
      omit(omitted, `event ${entry.type}`)
      continue
    }
    const text = format === 'anthropic' && count === 0 ? systemText(entry) : undefined
    if (text !== undefined) {
      system.push(text)
      continue
    }
    if (nameUnsaid(entry, format, omitted)) continue
    const { id, parent_id, blob } = entry
    for (const item of renderer.render({ id, parent_id, blob, format: entry.format as MessageFormat })) {
      yield `${count === 0 ? before() : ','}${writeJson(item)}`
      count += 1
    }
  }
  if (count === 0) yield before()
  const configs = Object.keys(session.configs).length > 0 ? `,"metadata":${writeJson(session.configs)}` : ''
  const whose = user === undefined ? '' : `,"user":${writeJson(user)}`
  yield `]${configs}${whose},"id":"${session.id}"}\n`
}

/** Names the parts that the format has no form for. Returns whether nothing else is left. */
function nameUnsaid(
  { format, blob }: Extract<TimelineItem, { kind: 'message' }>,
  target: 'openai' | 'anthropic',
  omitted: Omissions,
): boolean {
  if (format === target) return false
  const parts = partsOf(format as MessageFormat, blob)
  const unsaid = parts.filter(
    ({ type, meta }) =>
      UNSAID[target].has(type) ||
      (type === 'thinking' && (meta?.signature == null || meta.type === 'reasoning')),
  )
  for (const type of new Set(unsaid.map((part) => part.type))) omit(omitted, `${type} of a message`)
  return parts.length > 0 && unsaid.length === parts.length
}

function partsOf(format: MessageFormat, blob: unknown): { type: string; meta: JsonObject | null }[] {
  try {
    return readMessage(format, blob).parts as { type: string; meta: JsonObject | null }[]
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return []
  }
}

/** The text of a system message; undefined for any other. */
function systemText({ format, blob }: Extract<TimelineItem, { kind: 'message' }>): string | undefined {
  try {
    const { provider_role, parts } = readMessage(format as MessageFormat, blob)
    if (provider_role !== 'system' && provider_role !== 'developer') return undefined
    return parts.map(({ text }) => text ?? '').join('\n')
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return undefined
  }
}
