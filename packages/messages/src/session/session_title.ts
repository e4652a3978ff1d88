import type { ReadEntry } from './entry.js'

const LENGTH_MAX = 120

/** A session's title: `configs.title`, or the first thing that a user said; undefined if it has neither. */
export function sessionTitle(
  { title }: Record<string, unknown>,
  read: Iterable<ReadEntry>,
): string | undefined {
  if (typeof title === 'string' && title.trim() !== '') return shortTitle(title)
  for (const { speaker, kind, blocks } of read) {
    if (kind !== 'message' || speaker !== 'user') continue
    const text = askedIn(blocks)
    if (text) return shortTitle(text)
  }
  return undefined
}

/** What Claude Code writes as its user's message, though the user asked for nothing by it: local commands, reminders. */
const NOT_ASKED = ['local-command-caveat', 'local-command-stdout', 'local-command-stderr', 'command-name']
const REMINDER = 'system-reminder'

/** What a user asked for in a message: a command of Claude Code by its name and arguments, else the first text. */
export function askedIn(blocks: ReadEntry['blocks']): string | undefined {
  for (const block of blocks) {
    if (block.kind !== 'text') continue
    const text = block.text.trim()
    if (text === '' || NOT_ASKED.some((tag) => text.startsWith(`<${tag}>`))) continue
    if (text.startsWith(`<${REMINDER}>`) && text.endsWith(`</${REMINDER}>`)) continue
    if (!text.startsWith('<command-message>')) return text
    const command = [insideOf('command-name', text), insideOf('command-args', text)].filter(Boolean)
    return command.length > 0 ? command.join(' ') : text
  }
  return undefined
}

function insideOf(tag: string, text: string): string | undefined {
  const from = text.indexOf(`<${tag}>`)
  const to = text.indexOf(`</${tag}>`, from)
  return from === -1 || to === -1 ? undefined : text.slice(from + tag.length + 2, to).trim()
}

/** One line of bounded length. */
function shortTitle(text: string): string {
  const line = text
    .slice(0, 4 * LENGTH_MAX)
    .trim()
    .replaceAll(/\s+/g, ' ')
  return line.length > LENGTH_MAX ? `${line.slice(0, LENGTH_MAX - 1)}…` : line
}
