import { mayReferToBlobs } from '../attachments.js'
import { isObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { memberTexts } from '../json/json_text.js'
import { withoutEscapes } from '../json/visible.js'
import { readMessage } from '../message_format.js'
import { parseStored } from '../stored_renderer.js'

/** The type of the events that hold the texts of a message which an adapter could not send whole. */
export const MESSAGE_PART_TYPE = 'adapter.part'
/** As many parts hold 25 MiB. */
export const MESSAGE_PARTS_MAX = 160

/** The note that an adapter adds to a text that it shortened: see `packages/adapters/kit/src/large_messages.ts`. */
const SHORTENED = /… \[\d+ characters in all\]/

/** Whether long texts of a stored message may be in parts. */
export function isShortened(blob: string): boolean {
  return SHORTENED.test(blob)
}

/** Escapes that JSON in PostgreSQL cannot hold, in a text that JSON.stringify wrote; any other escape matches as a whole. */
const UNSTORABLE = /\\(?:u0000|u[dD][89a-fA-F][0-9a-fA-F]{2}|u|[^u])/g

/** The message that parts hold together, as JSON text; undefined where they hold none of this format. */
export function joinedMessage(format: MessageFormat, parts: readonly string[]): string | undefined {
  try {
    const whole = withoutEscapes(parts.join(''))
    if (!isObject(JSON.parse(whole))) return undefined
    const blob = memberTexts(whole).get('blob')
    if (blob === undefined) return undefined
    const text = blob.replace(UNSTORABLE, (whole) => (whole.length === 6 ? '\\ufffd' : whole))
    // Nobody has looked whether the blobs are there that it might refer to.
    if (mayReferToBlobs(text)) return undefined
    readMessage(format, parseStored(format, text))
    return text
  } catch {
    return undefined
  }
}
