import type { MessageFormatName } from '../contract/message_format.js'
import { ConversationRenderer, parseJson, writeJson } from './message_format.js'

/** A message as it is stored: its blob as JSON text. */
export interface StoredText {
  id: string
  parent_id: string | null
  format: MessageFormatName
  blob: string
}

/**
 * Writes consecutive stored messages, oldest first, in a format, as JSON texts: for each message the items that
 * it becomes. One that is in the format already is the text that was stored, untouched, digits and all.
 * `before` is the message before them, whose tool calls they may answer.
 */
export function renderStored(
  messages: StoredText[],
  format: MessageFormatName,
  before?: StoredText,
): string[][] {
  if (messages.every((message) => message.format === format)) return messages.map(({ blob }) => [blob])
  const renderer = new ConversationRenderer(format)
  const render = (message: StoredText) => renderer.render({ ...message, blob: parseJson(message.blob) })
  if (before) render(before)
  return messages.map((message) => {
    // Its own format as well goes through the renderer, which so learns of its calls.
    const items = render(message)
    return message.format === format ? [message.blob] : items.map(writeJson)
  })
}
