import { imageUrl, openAiFile, publicUrl } from './media.js'
import type { FilePart, ImageMeta, NeutralMessage, Part, ThinkingPart } from './parts.js'
import { instructionRole, type Omit, omitPart, type Turn, turnsOf } from './turns.js'

interface InputText {
  type: 'input_text'
  text: string
}
interface InputImage {
  type: 'input_image'
  detail: (typeof IMAGE_DETAILS)[number]
  image_url?: string
  file_id?: string
}
interface InputFile {
  type: 'input_file'
  file_id?: string
  file_data?: string
  file_url?: string
  filename?: string
}
type InputContent = InputText | InputImage | InputFile

interface MessageItem {
  type: 'message'
  role: 'user' | 'assistant' | 'system' | 'developer'
  content: string | InputContent[]
}
interface OutputItem {
  type: 'function_call_output'
  call_id: string
  output: string | InputContent[]
  /** Of a result that is an error. */
  status?: 'incomplete'
}

/** An item as the renderer writes it: a subset of the SDK's `ResponseInputItem`. */
export type ResponsesItem =
  | MessageItem
  | { type: 'function_call'; call_id: string; name: string; arguments: string }
  | OutputItem
  | {
      type: 'reasoning'
      id: string
      summary: { type: 'summary_text'; text: string }[]
      encrypted_content?: string
    }

const IMAGE_DETAILS = ['low', 'high', 'auto', 'original'] as const

/**
 * Writes a message as items of the Responses API's `input`. Each text of a reply, each call and each result is an
 * item of its own. A custom tool's call is a function's call with `{"input": …}`: its result does not say that it
 * answers such a one, and may be on a page of its own.
 *
 * Left out: thinking that is not OpenAI's; `data`; what is not text in a reply or an instruction; video; sound (its
 * transcript is kept); files and images in another provider's store; names; cache marks
 * and signatures; refusals are kept as plain text.
 */
export function writeResponses(message: NeutralMessage, omit: Omit): ResponsesItem[] {
  const items: ResponsesItem[] = []
  for (const turn of turnsOf(message)) {
    if (turn.role === 'user') writeUserTurn(turn, message, items, omit)
    else
      for (const part of turn.parts) {
        const item = writeReply(part)
        if (item === null) omitPart(part, omit)
        else items.push(item)
      }
  }
  return items
}

/** A message with nothing that the format can carry. */
export function emptyResponses(message: NeutralMessage): ResponsesItem {
  return { type: 'message', role: instructionRole(message, true) ?? message.role, content: '' }
}

function writeReply(part: Part): ResponsesItem | null {
  switch (part.type) {
    case 'text':
    case 'audio':
      return part.text ? { type: 'message', role: 'assistant', content: part.text } : null
    case 'tool-call': {
      const { id, name, arguments: text } = part.meta
      return { type: 'function_call', call_id: id, name, arguments: text }
    }
    case 'thinking':
      return writeReasoning(part)
    default:
      return null
  }
}

/** OpenAI accepts only its own reasoning back. */
function writeReasoning({ meta, text }: ThinkingPart): ResponsesItem | null {
  if (meta?.type !== 'reasoning' || meta.id === undefined) return null
  return {
    type: 'reasoning',
    id: meta.id,
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(meta.signature !== undefined && { encrypted_content: meta.signature }),
  }
}

function writeUserTurn(turn: Turn, message: NeutralMessage, items: ResponsesItem[], omit: Omit): void {
  const content: InputContent[] = []
  const results = new Map<string | undefined, OutputItem>()
  for (const part of turn.parts) {
    if (part.type === 'tool-result') {
      const { tool_call_id } = part.meta
      const item: OutputItem = {
        type: 'function_call_output',
        call_id: tool_call_id,
        output: part.text,
        ...(part.meta.is_error === true && { status: 'incomplete' }),
      }
      results.set(tool_call_id, item)
      items.push(item)
      continue
    }
    const written = writeContent(part)
    if (written === null) {
      omitPart(part, omit)
      continue
    }
    const isMedium = part.type === 'image' || part.type === 'file'
    const result = isMedium ? results.get(part.meta.tool_call_id) : undefined
    if (result === undefined) content.push(written)
    else addTo(result, written)
  }
  if (content.length === 0) return
  const role = instructionRole(message, content.every(isText)) ?? 'user'
  const [only] = content
  const isOneText = content.length === 1 && only !== undefined && isText(only)
  items.push({ type: 'message', role, content: isOneText ? only.text : content })
}

/** A result's images and files go back into it. */
function addTo(result: OutputItem, content: InputContent): void {
  if (typeof result.output !== 'string') result.output.push(content)
  else if (result.output === '') result.output = [content]
  else result.output = [{ type: 'input_text', text: result.output }, content]
}

function isText(content: InputContent): content is InputText {
  return content.type === 'input_text'
}

function writeContent(part: Part): InputContent | null {
  switch (part.type) {
    case 'text':
    case 'audio':
      return part.text ? { type: 'input_text', text: part.text } : null
    case 'image':
      return writeImage(part.meta)
    case 'file':
      return writeFile(part)
    default:
      return null
  }
}

function writeImage(meta: ImageMeta): InputImage | null {
  const detail = IMAGE_DETAILS.find((known) => known === meta.detail) ?? 'auto'
  const { file_id } = meta
  if (file_id !== undefined) return meta.type === 'file' ? null : { type: 'input_image', detail, file_id }
  const image_url = imageUrl(meta)
  return image_url === null ? null : { type: 'input_image', detail, image_url }
}

function writeFile(file: FilePart): InputContent | null {
  const own = openAiFile(file)
  if (own !== null) return { type: 'input_file', ...own }
  const file_url = publicUrl(file.meta)
  return file_url === null ? null : { type: 'input_file', file_url }
}
