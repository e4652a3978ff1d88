import { InvalidMessage, type MessageFormat, readMessage } from '../src/index.js'

/** The place and the reason that a blob is refused for, or null where it is accepted. */
export function refusalOf(format: MessageFormat, blob: unknown): string | null {
  try {
    readMessage(format, blob)
    return null
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return `${error.pointer} ${error.reason}`
  }
}

/** A part with the fields that are null in most. */
export function part(type: string, text: string | null, meta: object | null, filename: string | null = null) {
  return { type, text, asset: null, filename, meta }
}
