import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  BODY_BYTES_MAX,
  escapeJson,
  readEventData,
  readWholeMessage,
  splitLargeEvent,
  splitLargeMessage,
} from '@annals/adapter-kit'
import type { Annals, NewEntry, TimelineItem } from '@annals/client'
import { readMessage } from '@annals/messages'
import type { UIMessage } from 'ai'

/**
 * A message of the SDK is stored as one of the format `acontext`, so that everything that reads a session finds its
 * texts, files, calls and results. What that format has no place for stands beside it in `ui`, as JSON text: there it is
 * neither too deep nor taken for something else.
 */
const MESSAGE_TYPE = 'ai_sdk.message'
/** Leaves room in a request for the ids of the messages that it retracts. */
const MESSAGE_BYTES_MAX = BODY_BYTES_MAX * 0.9

type Json = Record<string, unknown>

/** What stores a message: the parts of one that is too large for a request, and last the entry that counts. */
export function newEntries(message: UIMessage): NewEntry[] {
  const blob = blobOf(message)
  const id = randomUUID()
  const stored =
    blob && splitLargeMessage({ kind: 'message', format: 'acontext', id, blob }, 2 * MESSAGE_BYTES_MAX)
  const data = { message: JSON.stringify(message) }
  const entries = (stored ?? splitLargeEvent({ kind: 'event', type: MESSAGE_TYPE, id, data })).map(escapeJson)
  // What replaces others is stored without an id.
  return [...entries.slice(0, -1), { ...entries.at(-1)!, id: undefined }]
}

/** The message that an entry of the log holds; undefined for one that holds none, or was retracted. */
export async function givenMessage(
  annals: Annals,
  session_id: string,
  item: TimelineItem,
): Promise<UIMessage | undefined> {
  if (item.retracted_by !== undefined && item.retracted_by !== null) return undefined
  if (item.kind === 'message')
    return typeof item.blob.ui === 'string'
      ? messageOf((await readWholeMessage(annals, session_id, item)).blob)
      : undefined
  if (item.type !== MESSAGE_TYPE) return undefined
  const { message } = await readEventData(annals, session_id, item)
  return JSON.parse(String(message))
}

/** Undefined if the message is not what the SDK says it is, so that it would not come back as it was. */
function blobOf({ parts, ...message }: UIMessage): Json | undefined {
  const isSystem = message.role === 'system'
  try {
    const blob = {
      role: isSystem ? 'user' : message.role,
      parts: parts.flatMap((part) => storedParts(part as Json)),
      ...(isSystem && { meta: { provider_role: 'system' } }),
      ui: JSON.stringify(message),
    }
    readMessage('acontext', blob)
    return isDeepStrictEqual(messageOf(blob), { ...message, parts }) ? blob : undefined
  } catch {
    return undefined
  }
}

function messageOf({ parts, ui }: Json): UIMessage {
  const restored: Json[] = []
  for (const part of parts as Json[]) {
    if (part.type !== 'tool-result') restored.push(givenPart(part))
    else if (part.ui === 'error') restored.at(-1)!.errorText = part.text
    else if (part.ui !== 'denied')
      restored.at(-1)!.output = part.ui === 'json' ? JSON.parse(String(part.text)) : part.text
  }
  return { ...JSON.parse(String(ui)), parts: restored }
}

function storedParts(part: Json): Json[] {
  const { text, url, input, output, errorText, ...rest } = part
  const { type, mediaType, filename, toolCallId, toolName } = rest
  const ui = JSON.stringify(rest)
  if (type === 'text') return [{ type, text, meta: signatureOf(rest, 'google'), ui }]
  const redacted = type === 'reasoning' && text === '' ? saidBy(rest, 'anthropic').redactedData : undefined
  if (typeof redacted === 'string') return [{ type: 'redacted_thinking', meta: { data: redacted }, ui }]
  if (type === 'reasoning') return [{ type: 'thinking', text, meta: signatureOf(rest, 'anthropic'), ui }]
  if (type === 'file') {
    const medium = /^(image|audio|video)\//.exec(String(mediaType))?.[1] ?? type
    return [
      { type: medium, filename, meta: { media_type: mediaType, ...placeOf(String(url), mediaType) }, ui },
    ]
  }
  const isTool = type === 'dynamic-tool' || String(type).startsWith('tool-')
  if (!isTool) return [{ type: 'data', meta: { data_type: type, json: JSON.stringify(part) } }]
  const name = toolName ?? String(type).slice('tool-'.length)
  const call = {
    type: 'tool-call',
    meta: { id: toolCallId, name, arguments: JSON.stringify(input) ?? '', ...signatureOf(rest, 'google') },
    ui,
  }
  const result = { type: 'tool-result', meta: { tool_call_id: toolCallId } }
  if (errorText !== undefined)
    return [call, { ...result, meta: { ...result.meta, is_error: true }, text: errorText, ui: 'error' }]
  const { approved, reason } = (rest.approval ?? {}) as Json
  if (output === undefined && approved === false)
    return [call, { ...result, text: reason ?? 'The call was not allowed.', ui: 'denied' }]
  if (output === undefined) return [call]
  if (typeof output === 'string') return [call, { ...result, text: output, ui: 'text' }]
  return [call, { ...result, text: JSON.stringify(output), ui: 'json' }]
}

/** What the provider signed, where Annals looks for it: Anthropic's thoughts, and texts and calls of Gemini's. */
function signatureOf(part: Json, provider: 'anthropic' | 'google'): Json | undefined {
  const { signature, thoughtSignature } = saidBy(part, provider)
  const given = provider === 'google' ? thoughtSignature : signature
  if (typeof given !== 'string') return undefined
  return provider === 'google' ? { thought_signature: given } : { signature: given }
}

/** What a provider said beside a part: Google's models may be Vertex AI's. */
function saidBy({ providerMetadata, callProviderMetadata }: Json, provider: 'anthropic' | 'google'): Json {
  const said = (callProviderMetadata ?? providerMetadata) as Partial<Record<string, Json>> | null | undefined
  return said?.[provider] ?? (provider === 'google' ? said?.vertex : undefined) ?? {}
}

/** The bytes of a `data:` URL stand where Annals looks for bytes, and keeps large ones apart. */
function placeOf(url: string, mediaType: unknown): Json {
  const prefix = `data:${mediaType};base64,`
  return url.startsWith(prefix) ? { data: url.slice(prefix.length) } : { url }
}

function givenPart({ type, text, meta, ui }: Json): Json {
  const { json, arguments: input, data, url, media_type } = (meta ?? {}) as Record<string, string>
  if (type === 'data') return JSON.parse(json!)
  const rest = JSON.parse(String(ui))
  if (type === 'redacted_thinking') return { ...rest, text: '' }
  if (type === 'text' || type === 'thinking') return { ...rest, text }
  if (type === 'tool-call') return input === '' ? rest : { ...rest, input: JSON.parse(input!) }
  return { ...rest, url: data === undefined ? url : `data:${media_type};base64,${data}` }
}
