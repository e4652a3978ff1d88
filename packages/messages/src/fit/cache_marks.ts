import { isObject, type JsonObject } from '../blob_reading.js'
import type { Item, Omitted } from './pieces.js'

/** As many cache marks as Anthropic takes in one request. */
const MARKS_MAX = 4

/**
 * Leaves the newest marks of what was there when the list was begun, and as many of later ones as there is room for: a
 * prefix that was sent keeps its marks. A mark of an hour behind one of five minutes becomes one of five minutes, because
 * the API wants the longer ones first. Changes the items.
 */
export function limitCacheMarks(items: readonly Item[], begun_seq: number): Omitted[] {
  const marked = items.flatMap(({ item, source }) =>
    blocksOf(item.content).flatMap((block) =>
      [block, ...blocksOf(block.content), ...blocksOf(isObject(block.source) ? block.source.content : [])]
        .filter(({ cache_control }) => cache_control != null)
        .map((holder) => ({ holder, source })),
    ),
  )
  if (marked.length === 0) return []
  const begun = marked.filter(({ source }) => source.seq <= begun_seq).length
  const first = Math.max(0, begun - MARKS_MAX)
  const omitted: Omitted[] = []
  let has_short = false
  for (const [nth, { holder, source }] of marked.entries()) {
    const mark = holder.cache_control
    if (nth < first || nth >= first + MARKS_MAX) {
      delete holder.cache_control
      omitted.push({ id: source.id, reason: 'cache_marks' })
    } else if (isObject(mark) && mark.ttl !== '1h') has_short = true
    else if (has_short && isObject(mark)) {
      const { ttl: _, ...short } = mark
      holder.cache_control = short
    }
  }
  return omitted
}

function blocksOf(content: unknown): JsonObject[] {
  return Array.isArray(content) ? content.filter(isObject) : []
}
