import { isObject } from '../blob_reading.js'
import { writeJson } from '../json/exact_json.js'

/** How a call or a result was recorded. */
export type Source = 'message' | 'event'

/** A call as one entry records it. */
export interface CallRecord {
  id: string | undefined
  name: string
  arguments: string
}

/** A result as one entry records it. */
export interface ResultRecord {
  id: string | undefined
  /** Whether the id must be the call's. */
  is_certain: boolean
  name: string | undefined
  text: string
  is_failed: boolean
  /** How long the call took, if its recorder measured it. */
  took_ms?: number | undefined
}

/** The kind of record that an entry, or a part of one, is: a call, a result, both (if it was written at the end), or neither. */
export interface EntryRecords {
  call: CallRecord | undefined
  result: ResultRecord | undefined
}

/** The position of an entry. */
export interface Place {
  seq: number
  created_at: string
}

/** Content as text if all of it is text, otherwise as JSON. */
export function textOfContent(content: unknown): string {
  if (typeof content === 'string') return content
  const texts = Array.isArray(content) ? content.map((one) => (isObject(one) ? one.text : undefined)) : []
  return texts.length > 0 && texts.every((text) => typeof text === 'string')
    ? texts.join('\n')
    : writeJson(content ?? null)
}
