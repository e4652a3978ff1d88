import { audioFormat, imageUrl, openAiFile } from './media.js'
import type { AudioMeta, ImageMeta, NeutralMessage, Part, ToolCallMeta } from './parts.js'
import { textSaysFailed } from './session/failures.js'
import { parseObject } from './tool_arguments.js'
import { instructionRole, type Omit, omitPart, type Turn, turnsOf } from './turns.js'

interface TextContent {
  type: 'text'
  text: string
}
interface RefusalContent {
  type: 'refusal'
  refusal: string
}
type UserContent =
  | TextContent
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } }
  | { type: 'input_audio'; input_audio: { data: string; format: 'wav' | 'mp3' } }
  | { type: 'file'; file: { file_id: string } | { file_data: string; filename: string } }
type ToolCall =
  | {
      id: string
      type: 'function'
      function: { name: string; arguments: string }
      /** Where Google's service takes Gemini's signature. */
      extra_content?: { google: { thought_signature: string } }
    }
  | { id: string; type: 'custom'; custom: { name: string; input: string } }

/** A message as the renderer writes it: a subset of the SDK's `ChatCompletionMessageParam`. */
export type OpenAiMessage =
  | { role: 'system' | 'developer'; content: string | TextContent[]; name?: string }
  | { role: 'user'; content: string | UserContent[]; name?: string }
  | {
      role: 'assistant'
      content: string | (TextContent | RefusalContent)[] | null
      tool_calls?: ToolCall[]
      audio?: { id: string }
      name?: string
    }
  | { role: 'tool'; tool_call_id: string; content: string }

/**
 * Writes a message for Chat Completions. One message becomes several where it holds results: each is a `tool`
 * message of its own, ahead of what else the user said.
 *
 * Left out: thinking; `data`; what is not text in a reply or an instruction; video; sound other than wav and
 * mp3; files and images in another provider's store; files behind a URL; cache marks. A result that is an
 * error begins with `Error: `, unless it says so already.
 */
export function writeOpenAi(message: NeutralMessage, omit: Omit): OpenAiMessage[] {
  const messages: OpenAiMessage[] = []
  for (const turn of turnsOf(message)) {
    if (turn.role === 'assistant') {
      const reply = writeReply(turn.parts, message.name, omit)
      if (reply !== null) messages.push(reply)
    } else writeUserTurn(turn, message, messages, omit)
  }
  return messages
}

/** A message with nothing that the format can carry. */
export function emptyOpenAi(message: NeutralMessage): OpenAiMessage {
  const name = message.name === null ? {} : { name: message.name }
  return { role: instructionRole(message, true) ?? message.role, content: '', ...name }
}

function writeReply(parts: Part[], name: string | null, omit: Omit): OpenAiMessage | null {
  const texts: (TextContent | RefusalContent)[] = []
  const tool_calls: ToolCall[] = []
  let audio: { id: string } | undefined
  for (const part of parts) {
    if (part.type === 'text') texts.push(...writeText(part.text, part.meta?.is_refusal === true))
    else if (part.type === 'tool-call') tool_calls.push(writeCall(part.meta))
    else if (part.type === 'audio') {
      // The transcript first: OpenAI forgets a spoken reply after an hour, and then refuses its id.
      if (part.text) texts.push({ type: 'text', text: part.text })
      else if (part.meta.id !== undefined) audio = { id: part.meta.id }
      else omitPart(part, omit)
    } else omitPart(part, omit)
  }
  if (texts.length === 0 && tool_calls.length === 0 && audio === undefined) return null
  return {
    role: 'assistant',
    content: texts.length === 0 ? null : unwrapped(texts),
    ...(tool_calls.length > 0 && { tool_calls }),
    ...(audio !== undefined && { audio }),
    ...(name !== null && { name }),
  }
}

function writeText(text: string, isRefusal: boolean): (TextContent | RefusalContent)[] {
  if (text === '') return []
  return [isRefusal ? { type: 'refusal', refusal: text } : { type: 'text', text }]
}

function writeCall(call: ToolCallMeta): ToolCall {
  const { name } = call
  if (call.type === 'custom') {
    const given = parseObject(call.arguments)
    const input = given !== undefined && Object.keys(given).length === 1 ? given.input : undefined
    if (typeof input === 'string') return { id: call.id, type: 'custom', custom: { name, input } }
  }
  const { thought_signature } = call
  return {
    id: call.id,
    type: 'function',
    function: { name, arguments: call.arguments },
    ...(thought_signature !== undefined && { extra_content: { google: { thought_signature } } }),
  }
}

function writeUserTurn(turn: Turn, message: NeutralMessage, messages: OpenAiMessage[], omit: Omit): void {
  const content: UserContent[] = []
  for (const part of turn.parts) {
    if (part.type === 'tool-result') {
      const { tool_call_id, is_error } = part.meta
      // The format has no field for it, and a model answers an error differently.
      const prefix = is_error === true && !textSaysFailed(part.text) ? 'Error: ' : ''
      messages.push({ role: 'tool', tool_call_id, content: prefix + part.text })
    } else {
      const written = writeContent(part)
      if (written === null) omitPart(part, omit)
      else content.push(written)
    }
  }
  if (content.length === 0) return
  const name = message.name === null ? {} : { name: message.name }
  const role = instructionRole(message, content.every(isText))
  if (role === null) messages.push({ role: 'user', content: unwrapped(content), ...name })
  else messages.push({ role, content: unwrapped(content.filter(isText)), ...name })
}

function isText(content: { type: string }): content is TextContent {
  return content.type === 'text'
}

/** One text is written as a string, which every service that speaks this format understands. */
function unwrapped<Content extends { type: string }>(content: Content[]): string | Content[] {
  const [only] = content
  return content.length === 1 && only !== undefined && isText(only) ? only.text : content
}

function writeContent(part: Part): UserContent | null {
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : { type: 'text', text: part.text }
    case 'image':
      return writeImage(part.meta)
    case 'audio':
      return writeAudio(part.meta) ?? (part.text ? { type: 'text', text: part.text } : null)
    case 'file': {
      const file = openAiFile(part)
      return file === null ? null : { type: 'file', file }
    }
    default:
      return null
  }
}

function writeImage(meta: ImageMeta): UserContent | null {
  const url = imageUrl(meta)
  if (url === null) return null
  const { detail } = meta
  if (detail !== 'auto' && detail !== 'low' && detail !== 'high')
    return { type: 'image_url', image_url: { url } }
  return { type: 'image_url', image_url: { url, detail } }
}

function writeAudio(meta: AudioMeta): UserContent | null {
  if (meta.data === undefined) return null
  const format = meta.format ?? audioFormat(meta.media_type ?? '')
  if (format !== 'wav' && format !== 'mp3') return null
  return { type: 'input_audio', input_audio: { data: meta.data, format } }
}
