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
        said.results.push({ id: part.meta.tool_call_id, text: isSaid(part.text) ? part.text : '' })
      }
    }
  }
  return said
}

/** Arguments as a JSON value, or as the text that they are where they are none. */
function meaning(text: string): unknown {
  try {
    return { json: writeJson(parseJson(text)) }
  } catch {
    return { text }
  }
}

function isSaid(text: string): boolean {
  return text.trim() !== '' && text !== NO_CONTENT
}
