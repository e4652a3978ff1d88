import { isObject, type JsonObject, pushAll } from '../blob_reading.js'
import type { Item, Omitted } from './pieces.js'

/**
 * Anthropic takes a system message in a list only after what the user said, or after the result of a tool of its own, and
 * before an answer or at the end. What any other one says becomes the user's words, as in other formats; what it does
 * beside that (a change of tools) is left out. One that only says how to answer may stand anywhere.
 */
export function placeSystemMessages(items: readonly Item[]): { items: Item[]; omitted: Omitted[] } {
  const omitted: Omitted[] = []
  if (!items.some(isSystem)) return { items: [...items], omitted }
  const placed: Item[] = []
  for (let at = 0; at < items.length; ) {
    let end = at
    while (end < items.length && isSystem(items[end]!)) end++
    const section = items.slice(at, Math.max(end, at + 1))
    const is_fit = end === at || (mayFollow(placed.at(-1)) && roleOf(items[end]) !== 'user')
    pushAll(placed, is_fit ? section : section.flatMap((item) => asUser(item, omitted)))
    at += section.length
  }
  return { items: placed, omitted }
}

function isSystem({ item }: Item): boolean {
  return item.role === 'system' && item.content !== undefined
}

function roleOf(item: Item | undefined): unknown {
  if (item?.raw === undefined) return item?.item.role
  return item.raw.startsWith('{"role": "user"') ? 'user' : 'assistant'
}

function mayFollow(before: Item | undefined): boolean {
  if (roleOf(before) === 'user') return true
  const content = before?.item.content
  const last: unknown = Array.isArray(content) ? content.at(-1) : undefined
  return isObject(last) && String(last.type).endsWith('_tool_result')
}

function asUser({ item, source }: Item, omitted: Omitted[]): Item[] {
  const { content, output_config } = item
  const settings: Item[] =
    output_config === undefined ? [] : [{ source, item: { role: 'system', output_config } }]
  if (typeof content === 'string') return [...settings, { source, item: { role: 'user', content } }]
  const blocks = (Array.isArray(content) ? content : []).filter(isObject)
  const texts: JsonObject[] = blocks.filter(({ type }) => type === 'text')
  for (const { type } of blocks)
    if (type !== 'text') omitted.push({ id: source.id, reason: 'not_in_format', what: String(type) })
  const said = texts.length > 0 ? [{ source, item: { role: 'user', content: texts } }] : []
  return [...settings, ...said]
}
