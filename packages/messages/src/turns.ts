import type { NeutralMessage, Part, Role } from './parts.js'

/** The text for a message with nothing that the format can carry, if the format allows no empty one. */
export const NO_CONTENT = '(no content)'

/** Hears of the kind of a part that a writer leaves out, and of the part itself. */
export type Omit = (what: string, part: Part) => void

/** Tells of a part that is left out, unless it says nothing. */
export function omitPart(part: Part, omit: Omit): void {
  if (part.type === 'data') omit(part.meta.data_type, part)
  else if (part.type !== 'text' || part.text.trim() !== '') omit(part.type, part)
}

/** Consecutive parts that one side spoke. */
export interface Turn {
  role: Role
  parts: Part[]
}

/**
 * Divides a message between the two sides: calls and thinking are the assistant's, results the user's, whatever the
 * role of the message; the rest has the message's own role. Most messages are one turn. In a user turn the results
 * come first, because every provider wants them directly after the calls.
 */
export function turnsOf(message: NeutralMessage): Turn[] {
  const turns: Turn[] = []
  for (const part of message.parts) {
    const role = speakerOf(part, message.role)
    const current = turns.at(-1)
    if (current?.role === role) current.parts.push(part)
    else turns.push({ role, parts: [part] })
  }
  for (const turn of turns) {
    if (turn.role === 'user') turn.parts = resultsFirst(turn.parts)
  }
  return turns
}

function speakerOf(part: Part, role: Role): Role {
  switch (part.type) {
    case 'tool-call':
    case 'thinking':
    case 'redacted_thinking':
      return 'assistant'
    case 'tool-result':
      return 'user'
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return part.meta.tool_call_id === undefined ? role : 'user'
    default:
      return role
  }
}

function resultsFirst(parts: Part[]): Part[] {
  const results = parts.filter((part) => part.type === 'tool-result')
  return results.length === 0 ? parts : [...results, ...parts.filter((part) => part.type !== 'tool-result')]
}

/** OpenAI's system and developer messages contain only text; with anything else, the message becomes the user's. */
export function instructionRole(message: NeutralMessage, isText: boolean): 'system' | 'developer' | null {
  const role = message.provider_role
  return isText && (role === 'system' || role === 'developer') ? role : null
}
