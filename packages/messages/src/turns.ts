import type { NeutralMessage, Part, Role } from './parts.js'

/** What a format says for a message that holds nothing which the format can carry, where it takes no empty one. */
export const NO_CONTENT = '(no content)'

/** Consecutive parts that one side spoke. */
export interface Turn {
  role: Role
  parts: Part[]
}

/**
 * Divides a message among the two sides: calls and thinking are the assistant's, results the user's, whatever
 * the role of the message that holds them; the rest is of the message's own role. Most messages are one turn.
 * In a user turn the results come first, because every provider wants them right behind the calls.
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

/** System and developer messages of OpenAI hold text alone; with anything else in it, the message is the user's. */
export function instructionRole(message: NeutralMessage, isText: boolean): 'system' | 'developer' | null {
  const role = message.provider_role
  return isText && (role === 'system' || role === 'developer') ? role : null
}
