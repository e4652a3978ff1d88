import { isObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { memberObjects } from '../json/json_text.js'

/** The type of the events that let a summary stand for the entries before it. */
export const COMPACTION_TYPE = 'annals.compaction'

/** A compaction, as far as contexts need it. */
export interface Compaction {
  from_seq: number
  to_seq: number
  /** Messages in the range that stay whole. */
  except_seqs: number[]
  /** Tokens of the summary. */
  tokens: number
  summary: Array<{ format: MessageFormat; blob: string }>
}

/**
 * Reads the data of a compaction, as JSON text. undefined: it is none, such as a caller's own event of that type from before
 * the service had compactions.
 */
export function readCompaction(text: string): Compaction | undefined {
  const { from_seq, to_seq, except_seqs, tokens, summary } = JSON.parse(text) as Record<string, unknown>
  const areSeqs = [from_seq, to_seq, tokens].every(Number.isSafeInteger)
  if (!areSeqs || !Array.isArray(except_seqs) || !Array.isArray(summary)) return undefined
  if (!except_seqs.every(Number.isSafeInteger)) return undefined
  if (!summary.every((one) => typeof one?.format === 'string' && isObject(one.blob))) return undefined
  const blobs = memberObjects(text, 'summary').map(({ members }) => members.get('blob')!)
  const formats = summary.map((one: { format: MessageFormat }) => one.format)
  return {
    ...{ from_seq, to_seq, except_seqs, tokens },
    summary: blobs.map((blob, index) => ({ format: formats[index]!, blob })),
  } as Compaction
}
