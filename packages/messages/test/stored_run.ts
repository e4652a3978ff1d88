import { ConversationRenderer, type MessageFormat, type StoredMessage } from '../src/index.js'

/** Blobs of one format as the consecutive messages of a session. */
export function storedAs(format: MessageFormat, blobs: readonly unknown[]): StoredMessage[] {
  return blobs.map((blob, i) => ({
    format,
    blob,
    id: messageId(i),
    parent_id: i === 0 ? null : messageId(i - 1),
  }))
}

export function messageId(nth: number): string {
  return `0190d3a8-0000-7000-8000-${String(nth).padStart(12, '0')}`
}

/** The id that the n-th call without one in the message of that number gets. */
export function derivedId(message: number, nth: number): string {
  return `call_${messageId(message).replaceAll('-', '')}_${nth}`
}

/** The messages that a run becomes in a format, each with the stored message that it comes from. */
export function renderMessages(
  stored: readonly StoredMessage[],
  format: MessageFormat,
): { index: number; message: unknown }[] {
  const renderer = new ConversationRenderer(format)
  return stored.flatMap((message, index) => renderer.render(message).map((message) => ({ index, message })))
}

/** The messages that a run becomes in a format. */
export function rendered(stored: readonly StoredMessage[], format: MessageFormat): unknown[] {
  return renderMessages(stored, format).map(({ message }) => message)
}

/** What one message becomes in another format. */
export function converted(from: MessageFormat, to: MessageFormat, ...blobs: unknown[]): unknown[] {
  return rendered(storedAs(from, blobs), to)
}
