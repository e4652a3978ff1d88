import type { TimelineItem } from '@annals/client'
import { ConversationRenderer, InvalidMessage, type MessageFormat, readMessage } from '@annals/messages'
import { writeJson } from '@annals/messages/json'
import type { JsonObject } from '../records.js'
import { type AboutSession, type Omissions, omit, type SessionDocument } from './session_document.js'

/** Parts that a format has no form for: the table in docs/messages.md. */
const UNSAID: Record<'openai' | 'anthropic', ReadonlySet<string>> = {
  openai: new Set(['thinking', 'redacted_thinking', 'data']),
  anthropic: new Set(['audio', 'video', 'data']),
}

/** Characters of instructions that are collected ahead of the first other message. */
const SYSTEM_LENGTH_MAX = 4 * 1024 * 1024

/** A session as one line `{ "messages": […] }`, as files for fine-tuning have it; for Anthropic with `system`. */
export class ConversationDocument implements SessionDocument {
  private readonly renderer: ConversationRenderer
  private readonly system: string[] = []
  private system_length = 0
  private count = 0

  constructor(
    private readonly about: AboutSession,
    private readonly format: 'openai' | 'anthropic',
    private readonly omitted: Omissions,
  ) {
    this.renderer = new ConversationRenderer(format)
  }

  add(entry: TimelineItem): string {
    const { format, omitted } = this
    if (entry.kind === 'event') {
      omit(omitted, `event ${entry.type}`)
      return ''
    }
    const text = format === 'anthropic' && this.count === 0 ? systemText(entry) : undefined
    if (text !== undefined && this.system_length + text.length <= SYSTEM_LENGTH_MAX) {
      this.system.push(text)
      this.system_length += text.length
      return ''
    }
    if (nameUnsaid(entry, format, omitted)) return ''
    const { id, parent_id, blob } = entry
    const items = this.renderer.render({ id, parent_id, blob, format: entry.format as MessageFormat })
    let written = ''
    for (const item of items) {
      written += `${this.count === 0 ? this.head() : ','}${writeJson(item)}`
      this.count += 1
    }
    return written
  }

  end(): string {
    const { session, user } = this.about
    const head = this.count === 0 ? this.head() : ''
    const rest = {
      ...(Object.keys(session.configs).length > 0 && { metadata: session.configs }),
      ...(user !== undefined && { user }),
      id: session.id,
      ...(this.omitted.size > 0 && { omitted: Object.fromEntries(this.omitted) }),
    }
    return `${head}],${writeJson(rest).slice(1)}\n`
  }

  private head(): string {
    const system = this.system.length > 0 ? `"system":${writeJson(this.system.join('\n\n'))},` : ''
    return `{${system}"messages":[`
  }
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
