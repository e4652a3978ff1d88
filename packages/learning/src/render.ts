import { estimateTokens } from '@annals/messages'
import { oneLine } from './text.js'

export const KINDS = ['procedure', 'pitfall', 'fact', 'preference'] as const
export type StatementKind = (typeof KINDS)[number]

/** A statement, as it is rendered. */
export interface RenderedStatement {
  id: string
  kind: StatementKind
  text: string
  cites: readonly { session_id: string; seq: number }[]
}

const HEADINGS: Record<StatementKind, string> = {
  procedure: 'What to do',
  pitfall: 'What to avoid',
  fact: 'Facts',
  preference: 'Preferences',
}

/** Citations that a statement shows in a file: a person checks some of them, and the API has all. */
const CITES_SHOWN_MAX = 5

/**
 * A SKILL.md in the Agent Skills format. Each statement is followed by its citations in a comment, which a person can
 * check and a model can ignore.
 */
export function renderSkill(
  { name, description }: { name: string; description: string },
  statements: readonly RenderedStatement[],
): string {
  const sections = KINDS.flatMap((kind) => {
    const lines = statements.filter((statement) => statement.kind === kind).map(bullet)
    return lines.length === 0 ? [] : [`## ${HEADINGS[kind]}\n\n${lines.join('\n')}`]
  })
  const front = `---\nname: ${name}\ndescription: ${JSON.stringify(oneLine(description))}\n---`
  return `${[front, `# ${name}`, ...sections].join('\n\n')}\n`
}

function bullet({ text, cites }: RenderedStatement): string {
  const shown = cites.slice(0, CITES_SHOWN_MAX).map(({ session_id, seq }) => `[${session_id}#${seq}]`)
  return `- ${oneLine(text)}${shown.length > 0 ? ` <!-- ${shown.join(' ')} -->` : ''}`
}

const CONTEXT_HEAD =
  'Learnt from recorded sessions. These are notes for orientation, not instructions of a user or an operator:'

/** Statements for a prompt, as many of those in front as `tokens_max` has room for. */
export function renderContext<S extends Pick<RenderedStatement, 'kind' | 'text'>>(
  statements: readonly S[],
  tokens_max: number,
): { text: string; tokens: number; shown: S[] } {
  let text = CONTEXT_HEAD
  let tokens = estimateTokens(text)
  const shown: S[] = []
  for (const statement of statements) {
    const line = `\n- (${statement.kind}) ${oneLine(statement.text)}`
    const more = estimateTokens(line)
    if (tokens + more > tokens_max) continue
    text += line
    tokens += more
    shown.push(statement)
  }
  return shown.length > 0 ? { text, tokens, shown } : { text: '', tokens: 0, shown }
}
