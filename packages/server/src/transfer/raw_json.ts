import { endOfString } from '@annals/messages/json'

/**
 * Parts of a JSON text as text. What is taken out of a line to be stored elsewhere keeps its spelling so, every
 * digit included, which a value that went through JSON.parse would not. Each text must be valid JSON.
 */

/** The members of an object, by key; of a repeated key the last, as everywhere. */
export function rawMembers(text: string): Map<string, string> {
  const members = new Map<string, string>()
  for (const item of rawItems(text)) {
    const colon = endOfString(item, 0)
    members.set(JSON.parse(item.slice(0, colon)) as string, item.slice(item.indexOf(':', colon) + 1).trim())
  }
  return members
}

/** The elements of an array, or the `key: value` pairs of an object, each without space around it. */
export function rawItems(text: string): string[] {
  const items: string[] = []
  let depth = 0
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at) - 1
    } else if (character === '{' || character === '[') {
      depth += 1
      if (depth === 1) from = at + 1
    } else if (character === '}' || character === ']') {
      depth -= 1
      if (depth === 0) items.push(text.slice(from, at).trim())
    } else if (character === ',' && depth === 1) {
      items.push(text.slice(from, at).trim())
      from = at + 1
    }
  }
  return items.length === 1 && items[0] === '' ? [] : items
}
