import type { PassedStatement } from './gates.js'
import { oneLine, skillName } from './text.js'

/** The skill that a statement about a tool belongs to; null: about tasks in general. */
export function skillOf(tool: string | null): { skill: string; description: string } {
  const about = tool === null ? 'such tasks' : `the tool ${oneLine(tool)}`
  return {
    skill: skillName(tool ?? 'general'),
    description: `What recorded sessions have shown about ${about}. Use it before calling the tool, and when a call fails.`,
  }
}

/** What is stored for a statement that a model made of sessions, beside its ids. */
export function statementOf({ kind, text, tool }: PassedStatement, session_ids: readonly string[]) {
  return {
    ...skillOf(tool),
    kind,
    text,
    marker: kind === 'procedure' ? tool : null,
    // Whatever the model was shown may be in its words, cited or not.
    origins: Object.fromEntries(session_ids.map((id) => [id, true])),
  }
}

/** A statement after another session supported or contradicted it. */
export interface TouchedStatement {
  kind: string
  state: string
  author: string
  marker: string | null
  contradicts: number
  supporters: Independent
  contradictors: Independent
}

/** Sessions and users that do not merely repeat each other. */
interface Independent {
  sessions: number
  users: number
}

/** Sessions, or users in a space of the project, that make a statement active, or put one in doubt. */
const SUPPORT_MIN = 2

/**
 * The state that a statement changes to, if it does. What rules or persons wrote never becomes active by itself, and a
 * procedure only with evidence about the runs that its marker tells apart.
 */
export function nextState(
  { state, author, kind, marker, contradicts, supporters, contradictors }: TouchedStatement,
  { is_auto, is_of_user }: { is_auto: boolean; is_of_user: boolean },
): 'active' | 'conflict' | { active_if_evident: string } | undefined {
  const isEnough = ({ sessions, users }: Independent) =>
    sessions >= SUPPORT_MIN && (is_of_user || users >= SUPPORT_MIN)
  if (state === 'active') return isEnough(contradictors) ? 'conflict' : undefined
  if (!is_auto || state !== 'proposed' || author !== 'model' || contradicts > 0) return undefined
  if (!isEnough(supporters)) return undefined
  if (kind !== 'procedure') return 'active'
  return marker === null ? undefined : { active_if_evident: marker }
}
