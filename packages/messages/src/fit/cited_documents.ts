import { isObject, type JsonObject } from '../blob_reading.js'
import type { Item } from './pieces.js'

/**
 * Anthropic takes citations of all documents of a request or of none, and of search results likewise. The first one
 * decides, so that a prefix that was sent stays as it is. Changes the items.
 */
export function citeAllOrNone(items: readonly Item[]): void {
  for (const wanted of ['document', 'search_result']) {
    const all = items.flatMap(({ item }) =>
      blocksOf(item.content).flatMap((block) => [
        block,
        ...(block.type === 'tool_result' ? blocksOf(block.content) : []),
      ]),
    )
    const documents = all.filter(({ type }) => type === wanted)
    const [first] = documents
    for (const document of documents)
      if (isCited(document) !== isCited(first!)) {
        if (isCited(first!)) document.citations = { enabled: true }
        else delete document.citations
      }
  }
}

function isCited({ citations }: JsonObject): boolean {
  return isObject(citations) && citations.enabled === true
}

function blocksOf(content: unknown): JsonObject[] {
  return Array.isArray(content) ? content.filter(isObject) : []
}
