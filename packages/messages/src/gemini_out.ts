import { audioBytes, bytesOf, fileBytes, fileName, isAddress, type MediaBytes, mediaTypeOf } from './media.js'
import type { FilePart, MediaMeta, NeutralMessage, Part, ToolCallMeta, ToolResultPart } from './parts.js'
import { argumentsAsObject } from './tool_arguments.js'
import { NO_CONTENT, type Omit, omitPart, turnsOf } from './turns.js'

/**
 * What Google says to send with a function call that Gemini did not make: from Gemini 3 on, a call in the turn
 * at hand is refused without a signature. It goes with the first call of a message, as Gemini's own does.
 */
export const FOREIGN_SIGNATURE = 'skip_thought_signature_validator'

type GeminiPart =
  | { text: string; thought?: boolean; thoughtSignature?: string }
  | Medium
  | {
      functionCall: { id: string; name: string; args: Record<string, unknown> }
      thoughtSignature?: string
    }
  | { functionResponse: FunctionResponse }

type Medium = (
  | { inlineData: { mimeType: string; data: string } }
  | { fileData: { fileUri: string; mimeType?: string } }
) & { thoughtSignature?: string }

/** `parts`: its images and files. */
interface FunctionResponse {
  id: string
  name: string
  response: Record<string, unknown>
  parts?: Medium[]
}

/** A message as the renderer writes it: a subset of the SDK's `Content`. */
export interface GeminiMessage {
  role: 'user' | 'model'
  parts: GeminiPart[]
}

/**
 * Writes a message for Gemini. It becomes several only where one message holds what both sides said.
 *
 * System and developer messages become the user's, their text untouched: `contents` has no such role. A result
 * is `{ output: text }`, or `{ error: text }` for an error. Its function's name is needed: where the call is not
 * in the run and the result does not say it, the call's id stands for it.
 *
 * Left out: empty text, which the API refuses; `redacted_thinking`; OpenAI's reasoning; `data`; files in another provider's store;
 * names; what a spoken reply sounded like (its transcript is kept); refusals are kept as plain text; cache marks.
 */
export function writeGemini(message: NeutralMessage, omit: Omit): GeminiMessage[] {
  const messages: GeminiMessage[] = []
  for (const turn of turnsOf(message)) {
    const parts = writeParts(turn.parts, omit)
    if (parts.length > 0) messages.push({ role: turn.role === 'assistant' ? 'model' : 'user', parts })
  }
  return messages
}

/** A message with nothing that the format can carry. */
export function emptyGemini({ role }: NeutralMessage): GeminiMessage {
  return { role: role === 'assistant' ? 'model' : 'user', parts: [{ text: NO_CONTENT }] }
}

function writeParts(parts: Part[], omit: Omit): GeminiPart[] {
  const written: GeminiPart[] = []
  const results = new Map<string | undefined, FunctionResponse>()
  let calls = 0
  for (const part of parts) {
    if (part.type === 'tool-call') {
      written.push(writeCall(part.meta, calls++ === 0))
      continue
    }
    const piece = writePart(part)
    if (piece === null) {
      omitPart(part, omit)
      continue
    }
    if ('functionResponse' in piece) results.set(piece.functionResponse.id, piece.functionResponse)
    const result = isMedium(part) ? results.get(part.meta.tool_call_id) : undefined
    if (result && ('inlineData' in piece || 'fileData' in piece)) {
      result.parts ??= []
      result.parts.push(piece)
    } else written.push(piece)
  }
  return written
}

function isMedium(part: Part): part is Extract<Part, { type: 'image' | 'audio' | 'video' | 'file' }> {
  return part.type === 'image' || part.type === 'audio' || part.type === 'video' || part.type === 'file'
}

function writeCall(call: ToolCallMeta, isFirst: boolean): GeminiPart {
  const { id, name } = call
  const signature = call.thought_signature ?? (isFirst ? FOREIGN_SIGNATURE : undefined)
  return {
    functionCall: { id, name, args: argumentsAsObject(call.arguments) },
    ...(signature !== undefined && { thoughtSignature: signature }),
  }
}

function writePart(part: Part): GeminiPart | null {
  switch (part.type) {
    case 'text': {
      const signature = part.meta?.thought_signature
      // A signature may come with no text at all, and is wanted back.
      if (signature !== undefined) return { text: part.text, thoughtSignature: signature }
      return part.text === '' ? null : { text: part.text }
    }
    case 'thinking':
      // OpenAI's reasoning is a summary that belongs to the encrypted text, and to no other.
      if (part.meta?.type === 'reasoning') return null
      return writeThinking(part.text, part.meta?.type === 'thought' ? part.meta.signature : undefined)
    case 'image':
      return writeMedium(bytesOf(part.meta, 'image/png'), part.meta)
    case 'video':
      return writeMedium(bytesOf(part.meta, 'video/mp4'), part.meta)
    case 'audio':
      // OpenAI does not say what format a reply's sound has, so its transcript goes in its place.
      if (part.text && part.meta.id !== undefined) return { text: part.text }
      return writeMedium(audioBytes(part.meta), part.meta)
    case 'file':
      return writeFile(part)
    case 'tool-result':
      return writeResult(part)
    default:
      return null
  }
}

function writeThinking(text: string, signature: string | undefined): GeminiPart | null {
  if (signature !== undefined) return { text, thought: true, thoughtSignature: signature }
  return text === '' ? null : { text, thought: true }
}

function writeResult({ meta, text }: ToolResultPart): GeminiPart {
  const name = meta.name || meta.tool_call_id
  return {
    functionResponse: {
      id: meta.tool_call_id,
      name,
      response: meta.is_error === true ? { error: text } : { output: text },
    },
  }
}

function writeFile(file: FilePart): GeminiPart | null {
  const bytes = fileBytes(file)
  const hint = file.meta.media_type || mediaTypeOf(fileName(file) ?? '')
  return writeMedium(bytes, hint ? { ...file.meta, media_type: hint } : file.meta)
}

function writeMedium(bytes: MediaBytes | null, meta: MediaMeta): GeminiPart | null {
  const { thought_signature } = meta
  const signed = thought_signature === undefined ? {} : { thoughtSignature: thought_signature }
  if (bytes !== null) return { inlineData: { mimeType: bytes.media_type, data: bytes.data }, ...signed }
  if (!isAddress(meta.url)) return null
  const mimeType = meta.media_type || mediaTypeOf(meta.url)
  return { fileData: { fileUri: meta.url, ...(mimeType && { mimeType }) }, ...signed }
}
