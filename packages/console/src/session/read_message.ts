import type { TimelineMessage } from '@annals/client'
import type { Json } from '../json/exact_json.ts'
import {
  dataAddress,
  type JsonMember,
  type MessagePart,
  objectsIn,
  type ReadMessage,
  readsLikeError,
  stringOf,
  text,
  textOfBlocks,
  valueIn,
} from './message_parts.ts'

/** Reads a message's blob. What is not understood is shown as JSON, never dropped. */
export function readMessage({
  blob,
  format,
  role,
}: Pick<TimelineMessage, 'blob' | 'format' | 'role'>): ReadMessage {
  const message = blob as JsonMember
  const speaker = stringOf(message.role) ?? role
  switch (format) {
    case 'anthropic':
      return { speaker, parts: blocksOf(message.content, readAnthropic) }
    case 'gemini':
      return { speaker, parts: objectsIn(message.parts).map(readGemini) }
    case 'acontext':
      return { speaker, parts: objectsIn(message.parts).map(readNeutral) }
    default:
      return readOpenAi(message, speaker)
  }
}

function blocksOf(content: Json | undefined, read: (block: JsonMember) => MessagePart): MessagePart[] {
  return typeof content === 'string' ? text(content) : objectsIn(content).map(read)
}

function readOpenAi(message: JsonMember, speaker: string): ReadMessage {
  const { content, tool_calls, refusal, tool_call_id, name, reasoning_content } = message
  if (speaker === 'tool' || speaker === 'function') {
    const output = textOfBlocks(content)
    return {
      speaker: 'tool',
      parts: [
        {
          type: 'result',
          id: stringOf(tool_call_id),
          name: stringOf(name),
          output,
          is_error: readsLikeError(output),
        },
      ],
    }
  }
  const calls = objectsIn(tool_calls).map(({ id, function: called, custom }): MessagePart => {
    const call = (called ?? custom ?? {}) as JsonMember
    return {
      type: 'call',
      id: stringOf(id),
      name: stringOf(call.name) ?? 'tool',
      input: valueIn(call.arguments ?? call.input),
    }
  })
  const thought = stringOf(reasoning_content)
  return {
    speaker,
    parts: [
      ...(thought ? [{ type: 'thinking', text: thought } as const] : []),
      ...blocksOf(content, readOpenAiBlock),
      ...text(refusal),
      ...calls,
    ],
  }
}

function readOpenAiBlock(block: JsonMember): MessagePart {
  const { type, text: words, image_url, refusal, file } = block
  if (typeof words === 'string') return { type: 'text', text: words }
  if (type === 'refusal') return { type: 'text', text: stringOf(refusal) ?? '' }
  const address =
    typeof image_url === 'string' ? image_url : stringOf((image_url as JsonMember | undefined)?.url)
  if (address) return { type: 'image', source: address }
  if (type === 'file')
    return { type: 'file', name: stringOf((file as JsonMember)?.filename) ?? 'file', value: block }
  return { type: 'other', value: block }
}

function readAnthropic(block: JsonMember): MessagePart {
  const { type, text: words, source } = block
  const from = (source ?? {}) as JsonMember
  switch (type) {
    case 'text':
      return { type: 'text', text: stringOf(words) ?? '' }
    case 'thinking':
      return { type: 'thinking', text: stringOf(block.thinking) ?? '' }
    case 'redacted_thinking':
      return { type: 'thinking', text: 'Redacted by the provider.' }
    case 'tool_use':
    case 'server_tool_use':
      return {
        type: 'call',
        id: stringOf(block.id),
        name: stringOf(block.name) ?? 'tool',
        input: block.input ?? null,
      }
    case 'tool_result': {
      const output = textOfBlocks(block.content)
      return {
        type: 'result',
        id: stringOf(block.tool_use_id),
        name: undefined,
        output,
        is_error: block.is_error === true,
      }
    }
    case 'image': {
      const address = stringOf(from.url) ?? dataAddress(from.media_type, from.data)
      return address ? { type: 'image', source: address } : { type: 'other', value: block }
    }
    case 'document':
      return { type: 'file', name: stringOf(block.title) ?? 'document', value: block }
    default:
      return { type: 'other', value: block }
  }
}

function readGemini(part: JsonMember): MessagePart {
  const { text: words, thought } = part
  const member = (camel: string, snake: string) => (part[camel] ?? part[snake]) as JsonMember | undefined
  const called = member('functionCall', 'function_call')
  const answered = member('functionResponse', 'function_response')
  const inline = member('inlineData', 'inline_data')
  if (typeof words === 'string') return { type: thought === true ? 'thinking' : 'text', text: words }
  if (called)
    return {
      type: 'call',
      id: stringOf(called.id),
      name: stringOf(called.name) ?? 'tool',
      input: called.args ?? null,
    }
  if (answered) {
    const output = answered.response ?? null
    return {
      type: 'result',
      id: stringOf(answered.id),
      name: stringOf(answered.name),
      output,
      is_error: readsLikeError(output),
    }
  }
  const address = inline && dataAddress(inline.mimeType ?? inline.mime_type, inline.data)
  return address ? { type: 'image', source: address } : { type: 'other', value: part }
}

function readNeutral(part: JsonMember): MessagePart {
  const meta = (part.meta ?? {}) as JsonMember
  const words = stringOf(part.text) ?? ''
  switch (part.type) {
    case 'text':
      return { type: 'text', text: words }
    case 'thinking':
      return { type: 'thinking', text: words }
    case 'tool-call':
      return {
        type: 'call',
        id: stringOf(meta.id),
        name: stringOf(meta.name) ?? 'tool',
        input: valueIn(meta.arguments),
      }
    case 'tool-result': {
      const output = valueIn(part.text)
      const is_error = meta.is_error === true || (meta.is_error === undefined && readsLikeError(output))
      return { type: 'result', id: stringOf(meta.tool_call_id), name: stringOf(meta.name), output, is_error }
    }
    case 'image': {
      const address = stringOf(meta.url) ?? dataAddress(meta.media_type, meta.data)
      return address ? { type: 'image', source: address } : { type: 'other', value: part }
    }
    case 'file':
      return { type: 'file', name: stringOf(meta.filename) ?? 'file', value: part }
    default:
      return { type: 'other', value: part }
  }
}
