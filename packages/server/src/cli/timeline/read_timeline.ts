import type { TimelineItem, TimelineMessage } from '@annals/client'
import { ConversationRenderer, type Part } from '@annals/messages'
import { writeJson } from '@annals/messages/json'
import { looksLikeError, type ToolCall, ToolCalls, type ToolResult } from './tool_calls.js'

/** A piece of an entry, as a person looks at it. */
export type Block =
  | { kind: 'text' | 'thinking' | 'attachment'; text: string }
  | { kind: 'call'; call: ToolCall }
  | { kind: 'result'; call: ToolCall | undefined; result: ToolResult }
  | { kind: 'data'; value: unknown }

/** An entry of a log, read for a person. */
export interface Entry {
  seq: number
  created_at: string
  at: number
  /** Who speaks, in the provider's own word, or the event's type. */
  speaker: string
  kind: 'message' | 'event'
  blocks: Block[]
}

/** A message in the neutral form, as the renderer of that form gives it. */
interface Neutral {
  role: string
  parts: Part[]
  meta?: { provider_role?: string; name?: string }
}

/**
 * Reads the entries of one session, in order, whatever format each message has, and ties results to their calls.
 *
 * Calls are parts of messages. Events of type `tool_call` and `tool_result` count as calls and results too, as long
 * as no message of the session has made a call: many log both, and each call should be counted once.
 */
export class TimelineReader {
  private readonly renderer = new ConversationRenderer('acontext')
  private readonly calls: ToolCalls
  private messages_call = false

  /** @param is_whole whether the log is read from its beginning, so that calls can be numbered */
  constructor(is_whole: boolean) {
    this.calls = new ToolCalls(is_whole)
  }

  read(item: TimelineItem): Entry {
    const at = Date.parse(item.created_at)
    const { seq, created_at } = item
    if (item.kind === 'event') {
      const blocks = this.readEvent(item.type, item.data, seq, at)
      return { seq, created_at, at, speaker: item.type, kind: 'event', blocks }
    }
    const [rendered] = this.renderer.render(item) as Neutral[]
    const parts = Array.isArray(rendered?.parts) ? rendered.parts : []
    const blocks = parts.flatMap((part) => this.readPart(part, seq, at))
    return { seq, created_at, at, speaker: speakerOf(item, rendered, blocks), kind: 'message', blocks }
  }

  private readPart(part: Part, seq: number, at: number): Block[] {
    switch (part.type) {
      case 'text':
        return part.text ? [{ kind: 'text', text: part.text }] : []
      case 'thinking':
        return [{ kind: 'thinking', text: part.text }]
      case 'redacted_thinking':
        return [{ kind: 'thinking', text: '(redacted)' }]
      case 'tool-call': {
        this.messages_call = true
        const { id, name, arguments: text } = part.meta
        return [{ kind: 'call', call: this.calls.begin({ id, name, arguments: text ?? '', seq, at }) }]
      }
      case 'tool-result': {
        const { tool_call_id, name, is_error } = part.meta
        const text = part.text ?? ''
        const result = { text, is_error: is_error ?? looksLikeError(text), seq, at }
        return [{ kind: 'result', call: this.calls.end(tool_call_id, name, result), result }]
      }
      case 'data':
        return [{ kind: 'data', value: part.meta }]
      default:
        return [{ kind: 'attachment', text: describeMedium(part) }]
    }
  }

  private readEvent(type: string, data: Record<string, unknown>, seq: number, at: number): Block[] {
    const { name, arguments: given } = data
    const id = [data.id, data.tool_call_id, data.call_id].find((one) => typeof one === 'string')
    if (!this.messages_call && type === 'tool_call' && typeof name === 'string') {
      const text = typeof given === 'string' ? given : given === undefined ? '' : writeJson(given)
      return [{ kind: 'call', call: this.calls.begin({ id, name, arguments: text, seq, at }) }]
    }
    if (!this.messages_call && type === 'tool_result') {
      const text = writeJson(data)
      const is_error = data.is_error === true || ('error' in data && Boolean(data.error))
      const result = { text, is_error, seq, at }
      const call = this.calls.end(id, typeof name === 'string' ? name : undefined, result)
      return [{ kind: 'result', call, result }]
    }
    return [{ kind: 'data', value: data }]
  }
}

function speakerOf(item: TimelineMessage, rendered: Neutral | undefined, blocks: Block[]): string {
  const isAnswerOfTools = blocks.length > 0 && blocks.every(({ kind }) => kind === 'result')
  if (isAnswerOfTools) return 'tool'
  const role = rendered?.meta?.provider_role ?? item.role
  const name = rendered?.meta?.name
  return name ? `${role} ${name}` : role
}

/** What a picture or a file is, in place of what a terminal cannot show. */
function describeMedium(part: Extract<Part, { type: 'image' | 'audio' | 'video' | 'file' }>): string {
  const { url, data, media_type, file_id } = part.meta
  const filename = part.filename ?? ('filename' in part.meta ? part.meta.filename : undefined)
  const size = data ? `${Math.floor((data.length * 3) / 4).toLocaleString('en')} bytes` : undefined
  const where = url?.startsWith('data:') ? `${url.slice(5, url.search(/[;,]/))}, inline` : url
  return [part.type, filename, media_type, size, where, file_id].filter(Boolean).join(', ')
}
