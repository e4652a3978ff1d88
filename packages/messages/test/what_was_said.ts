import type { Part } from '../src/index.js'
import { parseJson, writeJson } from '../src/json/index.js'
import { NO_CONTENT } from '../src/turns.js'

/** What a conversation says, whatever its format: each kind by itself, in order. */
export interface Said {
  texts: string[]
  calls: { id: string; name: string; arguments: unknown }[]
  results: { id: string; text: string }[]
}

/** Blank texts and the stand-in for an empty message say nothing. */
export function whatWasSaid(messages: readonly { parts: readonly Part[] }[]): Said {
  const said: Said = { texts: [], calls: [], results: [] }
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type === 'text' || part.type === 'audio') {
        if (part.text !== null && isSaid(part.text)) said.texts.push(part.text)
      } else if (part.type === 'tool-call') {
        const { id, name } = part.meta
        said.calls.push({ id, name, arguments: meaning(part.meta.arguments) })
      } else if (part.type === 'tool-result') {
        said.results.push({
          id: part.meta.tool_call_id,
          text: withoutPrefix(part.text),
        })
      }
    }
  }
  return said
}

/** Arguments as a JSON value, or as the text that they are where they are none. */
function meaning(text: string): unknown {
  try {
    // Nothing, null, or an object's text as a text, say the same as an object.
    const value = text.trim() === '' ? null : parseJson(text)
    const said = typeof value === 'string' && value.startsWith('{') ? parseJson(value) : value
    return { json: writeJson(said ?? {}) }
  } catch {
    return { text }
  }
}

/** OpenAI's format says that a result is an error in its text. */
function withoutPrefix(text: string): string {
  const said = text.replace(/^Error: /, '')
  return isSaid(said) ? said : ''
}

function isSaid(text: string): boolean {
  return text.trim() !== '' && text !== NO_CONTENT
}
