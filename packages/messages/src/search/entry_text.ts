import type { MessageFormat } from '../formats.js'
import { ExactNumber, parseJson } from '../json/exact_json.js'
import { withoutEscapes } from '../json/visible.js'
import { readMessage } from '../message_format.js'
import type { Part } from '../parts.js'
import { parseStored } from '../stored_renderer.js'
import { parseMarkedJson, withoutBase64 } from '../text_bytes.js'

/** Characters of an entry that are searched; the rest is not found. */
export const SEARCHED_LENGTH_MAX = 64 * 1024

/** An entry of a log as it is stored; `data` is an event's data or a message's blob, as JSON text. */
export interface SearchedEntry {
  type: string | null
  format: MessageFormat | null
  data: string
}

/**
 * What a search looks at: of a message its text, and the names, arguments and results of its tools; of an event its type
 * and the values in its data. A line each, of values in JSON as well; names of fields are left out.
 */
export function entryText(entry: SearchedEntry): string {
  return readEntry(entry).text
}

/** Of a message: whether it has results of tools alone, which some formats send as a user's. */
export interface Told {
  is_tool_result: boolean
}

/** The same, and who told it. */
export function readEntry({ type, format, data: stored }: SearchedEntry): Told & { text: string } {
  const text = new LimitedText()
  const data = withoutEscapes(stored)
  if (type !== null) text.add(type)
  let is_tool_result = false
  if (format === null) text.addValues(parseJson(data))
  else is_tool_result = addMessage(text, format, parseStored(format, data))
  return { text: text.lines.join('\n'), is_tool_result }
}

function addMessage(text: LimitedText, format: MessageFormat, blob: unknown): boolean {
  let parts: Part[]
  try {
    parts = readMessage(format, blob).parts
  } catch {
    // Stored before the format had this rule: its values are still worth finding.
    text.addValues(blob)
    return false
  }
  for (const part of parts) {
    if (part.filename) text.add(part.filename)
    if (part.type === 'tool-call') {
      text.add(part.meta.name)
      text.addJson(part.meta.arguments)
    } else if (part.type === 'tool-result') text.addJson(part.text)
    else if (part.type === 'data') text.addValues(part.meta)
    else if (part.text) text.add(part.text)
  }
  return parts.length > 0 && parts.every(({ type }) => type === 'tool-result')
}

/** Lines up to a length; the rest is dropped. */
class LimitedText {
  readonly lines: string[] = []
  private room = SEARCHED_LENGTH_MAX

  add(line: string): void {
    if (this.room <= 0 || line === '') return
    const { text } = withoutBase64(line)
    this.lines.push(text.slice(0, this.room))
    this.room -= text.length + 1
  }

  /** What tools take and give is often JSON, in which `\n` before a word is not part of it. */
  addJson(text: string): void {
    const isJson = /^\s*[[{]/.test(text)
    let value: unknown = text
    try {
      if (isJson) value = parseMarkedJson(text)
    } catch {
      // Models write broken JSON, too.
    }
    this.addValues(value)
  }

  /** Strings and numbers in the order in which they stand. A loop: arguments may nest deeper than the stack. */
  addValues(root: unknown): void {
    const left: unknown[] = [root]
    while (left.length > 0 && this.room > 0) {
      const value = left.pop()
      if (typeof value === 'string') this.add(value)
      else if (typeof value === 'number') this.add(String(value))
      else if (value instanceof ExactNumber) this.add(value.digits)
      else if (typeof value === 'object' && value !== null) {
        const members = Object.values(value)
        for (let at = members.length - 1; at >= 0; at--) left.push(members[at])
      }
    }
  }
}
