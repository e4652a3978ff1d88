import { isJsonObject } from '@annals/messages/json'
import type { JsonObject } from '../records.js'
import { CLOSE_BRACE, CLOSE_BRACKET, DocumentReader } from './documents.js'
import { LINE_FEED, SPACE } from './lines.js'
import { readJson } from './pieces.js'

/** How much of a source is looked at to find its format. */
export const HEAD_BYTES = 256 * 1024
/** The same of one document, of which the first member may be that long. */
export const HEAD_BYTES_MAX = 8 * 1024 * 1024
const SAMPLES_MAX = 50
const TEXT_LENGTH = 1_000

/** The beginning of a source. */
export interface Head {
  /** The first objects: lines, the elements of an array, or one document. Of an object that goes on, its first members. */
  samples: JsonObject[]
  /** Whether each line is a value of its own. Undefined: only if the format always has it so. */
  is_lines: boolean | undefined
  /** Whether the samples are elements of one array. */
  is_list: boolean
  /** How it begins. */
  text: string
}

/** Whether there is more than one line: those of a document are indented, but for its end. */
export function hasLines(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) {
    const next = bytes[at + 1] ?? SPACE
    if (next > SPACE && next !== CLOSE_BRACKET && next !== CLOSE_BRACE) return true
  }
  return false
}

/** What the beginning of a source shows. */
export function headOf(bytes: Uint8Array, is_whole: boolean): Head {
  const all = new TextDecoder().decode(bytes)
  return { ...samplesOf(bytes, all, is_whole), text: all.slice(0, TEXT_LENGTH) }
}

function samplesOf(bytes: Uint8Array, text: string, is_whole: boolean): Omit<Head, 'text'> {
  const start = text.trimStart()
  if (start.startsWith('['))
    return { samples: elementsOf(bytes, start.slice(1)), is_lines: false, is_list: true }
  const lines = text.split('\n')
  // The last one may be cut by the end of the head.
  const whole = is_whole ? lines : lines.slice(0, -1)
  const values = whole.slice(0, SAMPLES_MAX).map(objectOf)
  const found = values.filter(isJsonObject)
  if (found.length > 0) return { samples: found, is_lines: true, is_list: false }
  // One after the other without line feeds between, over several lines each, or with commas or other marks between.
  const documents = wholeIn(bytes)
  if (documents.length > 1) return { samples: documents, is_lines: false, is_list: false }
  const samples = documents.length > 0 ? documents : [firstMembers(start)]
  return { samples, is_lines: start.startsWith('{') ? undefined : true, is_list: false }
}

/** A line that is an object. Within a document, lines are indented. */
function objectOf(line: string): unknown {
  if (!line.startsWith('{')) return undefined
  try {
    return readJson(line)
  } catch {
    return undefined
  }
}

function elementsOf(bytes: Uint8Array, text: string): JsonObject[] {
  const samples = wholeIn(bytes)
  return samples.length > 0 ? samples : [firstMembers(text)]
}

function wholeIn(bytes: Uint8Array): JsonObject[] {
  const samples: JsonObject[] = []
  for (const { value } of new DocumentReader(new Set(), bytes.length).push(bytes)) {
    // A list of lists, as an API of traces returns them.
    for (const one of Array.isArray(value) ? value : [value])
      if (isJsonObject(one) && samples.length < SAMPLES_MAX) samples.push(one)
    if (samples.length === SAMPLES_MAX) break
  }
  return samples
}

/** The members of an object whose text goes on: those that are whole, and nothing in the one that is not. */
function firstMembers(text: string): JsonObject {
  let depth = 0
  let is_string = false
  let ends = -1
  const commas: number[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (is_string) {
      if (char === '\\') at += 1
      else if (char === '"') is_string = false
    } else if (char === '"') is_string = true
    else if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') depth -= 1
    else if (char === ',' && depth === 1) commas.push(at)
    else if (char === ':' && depth === 1) ends = at
  }
  const start = text.indexOf('{')
  const last = commas.at(-1) ?? start
  const whole = text.slice(start + 1, last)
  const opening = text.slice(ends + 1).trimStart()[0]
  const nothing = opening === '[' ? '[]' : opening === '{' ? '{}' : 'null'
  const cut = ends > last ? `${text.slice(last + 1, ends + 1)}${nothing}` : ''
  try {
    const value = readJson(`{${[whole, cut].filter((part) => part !== '').join(',')}}`)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}
