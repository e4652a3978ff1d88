import { markBlobs, mayReferToBlobs, showAssets } from './attachments.js'
import { isObject } from './blob_reading.js'
import { editBlob, type MessageEdit } from './context/edit_blob.js'
import type { MessageFormat } from './formats.js'
import { parseJson, writeJson } from './json/exact_json.js'
import { withoutEscapes } from './json/visible.js'
import { ConversationRenderer } from './message_format.js'
import type { Part } from './parts.js'

/** A message as it is stored: its blob as JSON text. */
export interface StoredText {
  id: string
  parent_id: string | null
  format: MessageFormat
  blob: string
  /** The parts that it is shown without. */
  edit?: MessageEdit | undefined
  /** The Message as JSON text, without its parts: what the item shows beside them, in the neutral form. */
  whole?: string | undefined
}

/** Whether a message is shown in a format just as it is stored. */
export function isAsStored({ format: own, blob, edit }: StoredText, format: MessageFormat): boolean {
  return own === format && !edit && !mayReferToBlobs(blob)
}

/** Reads a stored message. Marks stand for the bytes of the blobs that it refers to. */
export function parseStored(format: MessageFormat, text: string): unknown {
  const blob = parseJson(text)
  return mayReferToBlobs(text) ? markBlobs(format, blob) : blob
}

/** Writes stored messages in a format, one after the other, oldest first, as JSON texts. */
export class StoredRenderer {
  private readonly conversation: ConversationRenderer

  constructor(private readonly format: MessageFormat) {
    this.conversation = new ConversationRenderer(format)
  }

  /**
   * The items that a message becomes. A message that already has the format is returned as its stored text, digits
   * and all, but still goes through the conversation, which learns of its tool calls.
   */
  render(message: StoredText): string[] {
    const { id, parent_id, format, edit } = message
    const stored = parseStored(format, withoutEscapes(message.blob))
    const blob = edit ? editBlob(format, stored, edit) : stored
    const items = this.conversation.render({ id, parent_id, format, blob })
    if (message.whole !== undefined) return items.map((item) => wholeMessage(item, message.whole!))
    return isAsStored(message, this.format) ? [message.blob] : items.map(writeJson)
  }
}

/** An item in the neutral form with all that the message has. What the item's own `meta` says stands in it, too. */
function wholeMessage(item: unknown, whole: string): string {
  const said = isObject(item) ? item : {}
  if (Array.isArray(said.parts)) showAssets(said.parts.filter(isObject) as unknown as Part[])
  const message = parseJson(whole) as Record<string, unknown>
  const [given, own] = [message.meta, said.meta].map((meta) => (isObject(meta) ? meta : {}))
  return writeJson({ ...said, ...message, meta: { ...given, ...own } })
}
