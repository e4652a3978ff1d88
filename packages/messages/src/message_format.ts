import { readAcontext } from './acontext_in.js'
import { type AcontextMessage, writeAcontext } from './acontext_out.js'
import { readAnthropic } from './anthropic_in.js'
import { type AnthropicMessage, emptyAnthropic, writeAnthropic } from './anthropic_out.js'
import { bytePlaces, markBlobs } from './attachments.js'
import { CallIds, InvalidMessage, isObject, type MessagePlace } from './blob_reading.js'
import type { MessageFormat } from './formats.js'
import { readGemini } from './gemini_in.js'
import { emptyGemini, type GeminiMessage, writeGemini } from './gemini_out.js'
import { parseJson, writeJson } from './json/exact_json.js'
import { readOpenAi } from './openai_in.js'
import { emptyOpenAi, type OpenAiMessage, writeOpenAi } from './openai_out.js'
import type { NeutralMessage } from './parts.js'
import { itemKind } from './response_items.js'
import { readResponses } from './responses_in.js'
import { emptyResponses, type ResponsesItem, writeResponses } from './responses_out.js'
import type { Omit } from './turns.js'

export type { AcontextMessage, AnthropicMessage, GeminiMessage, OpenAiMessage, ResponsesItem }

/** A message of any format, as the renderers write it. */
export type ProviderMessage =
  | OpenAiMessage
  | AnthropicMessage
  | GeminiMessage
  | AcontextMessage
  | ResponsesItem

/** A stored message: its blob, read by `parseJson` if numbers beyond 2^53 matter. */
export interface StoredMessage extends MessagePlace {
  format: MessageFormat
  blob: unknown
}

const READERS: Readonly<Record<MessageFormat, (blob: unknown, ids: CallIds) => NeutralMessage>> = {
  openai: readOpenAi,
  anthropic: readAnthropic,
  gemini: readGemini,
  acontext: readAcontext,
  responses: readResponses,
}

/** Writes what the format can carry, which may be nothing, and names the kinds of part that it leaves out. */
type Write = (message: NeutralMessage, omit: Omit) => ProviderMessage[]

const WRITERS: Readonly<Record<MessageFormat, Write>> = {
  openai: writeOpenAi,
  anthropic: writeAnthropic,
  gemini: writeGemini,
  acontext: writeAcontext,
  responses: writeResponses,
}

const EMPTY: Readonly<Record<MessageFormat, (message: NeutralMessage) => ProviderMessage>> = {
  openai: emptyOpenAi,
  anthropic: emptyAnthropic,
  gemini: emptyGemini,
  acontext: (message) => writeAcontext(message)[0]!,
  responses: emptyResponses,
}

/** The messages of a format that a message becomes: none, where there is nothing that the format can carry. */
export function writeItems(format: MessageFormat, message: NeutralMessage, omit: Omit): ProviderMessage[] {
  return WRITERS[format](message, omit)
}

/**
 * Checks a message and derives its neutral form. `place` provides ids for the calls of a format without ids.
 * @throws InvalidMessage if `blob` is not a message of the format; it names the field.
 */
export function readMessage(format: MessageFormat, blob: unknown, place?: MessagePlace): NeutralMessage {
  const ids = new CallIds()
  ids.enter(place)
  return READERS[format](blob, ids)
}

/** The same for a stored blob, with the calls of its conversation; undefined if it is not a message of its format. */
export function readStored(format: MessageFormat, blob: unknown, ids: CallIds): NeutralMessage | undefined {
  try {
    return READERS[format](withMarks(format, blob), ids)
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return undefined
  }
}

/** The blob with marks where it refers to bytes: a copy, if it does. */
function withMarks(format: MessageFormat, blob: unknown): unknown {
  const refers = bytePlaces(format, blob).some(({ holder, key }) => isObject(holder[key]))
  return refers ? markBlobs(format, parseJson(writeJson(blob))) : blob
}

/** Reads the messages of a conversation, oldest first. It only remembers calls that wait for their results. */
export class MessageReader {
  private readonly ids = new CallIds()

  /** See CallIds. */
  resume(open: Parameters<CallIds['resume']>[0]): void {
    this.ids.resume(open)
  }

  /** The message in the neutral form; undefined if the blob is not a message of its format. */
  read(stored: StoredMessage): NeutralMessage | undefined {
    this.ids.enter(stored)
    return readStored(stored.format, stored.blob, this.ids)
  }
}

/** Renders a conversation message by message, oldest first, so that a whole session can stream through it. */
export class ConversationRenderer {
  private readonly reader = new MessageReader()

  constructor(private readonly format: MessageFormat) {}

  /**
   * The message in the renderer's format: the stored blob itself if it has that format, otherwise one or several
   * messages, each valid by itself; none for what only configures the model of another provider. Never throws: a blob
   * that is not a message becomes an empty one.
   */
  render(stored: StoredMessage): unknown[] {
    const message = this.reader.read(stored) ?? { role: 'user', provider_role: null, name: null, parts: [] }
    if (stored.format === this.format) return [stored.blob]
    if (this.format !== 'acontext' && isSetting(message)) return []
    const items = writeItems(this.format, message, () => {})
    return items.length > 0 ? items : [EMPTY[this.format](message)]
  }
}

/** Whether nobody says anything in a message: it tells the provider how to answer from here on. */
function isSetting({ provider_role, parts }: NeutralMessage): boolean {
  const isSystem = provider_role === 'system'
  return (
    parts.length > 0 &&
    parts.every(({ type, meta }) => type === 'data' && (isSystem || itemKind(meta.data_type) === 'setting'))
  )
}
