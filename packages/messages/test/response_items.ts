import { readFileSync } from 'node:fs'

/** An item of the Responses API, and what it is by itself. */
export interface ItemVector {
  name: string
  /** The sides on which the SDK's types have the item. */
  of: ('input' | 'output')[]
  item: { type?: string }
  role: string
  parts: { type: string; meta: { data_type: string } }[]
  openai: unknown[]
  anthropic: unknown[]
  gemini: unknown[]
}

const FILE = new URL('vectors/response_items.json', import.meta.url)

export const ITEM_VECTORS = (JSON.parse(readFileSync(FILE, 'utf8')) as { vectors: ItemVector[] }).vectors
