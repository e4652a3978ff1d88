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

/** What Claude Code writes as its user's message, though the user asked for nothing by it: local commands. */
const NOT_ASKED = ['local-command-caveat', 'local-command-stdout', 'local-command-stderr', 'command-name']
/** What agents put around or before what their user asked for: reminders, the editor's state, a skill. */
const ADDED =
  /^<(system-reminder|ide_[a-z_]{1,40}|environment_(?:context|details)|user_instructions|skill)\b([^>]{0,500})>/

/** What a user asked for in a message: a command of Claude Code by its name and arguments, else the first text. */
export function askedIn(blocks: ReadEntry['blocks']): string | undefined {
  let skill: string | undefined
  for (const block of blocks) {
    if (block.kind !== 'text') continue
    const { text, named } = withoutAdded(block.text.trim())
    skill ??= named
    if (text === '' || NOT_ASKED.some((tag) => text.startsWith(`<${tag}>`))) continue
    if (!text.startsWith('<command-message>')) return text
    const command = [insideOf('command-name', text), insideOf('command-args', text)].filter(Boolean)
    return command.length > 0 ? command.join(' ') : text
  }
  return skill
}

/** The text after what an agent added, and the name of a skill in that. */
function withoutAdded(given: string): { text: string; named?: string | undefined } {
  let text = given
  let named: string | undefined
  for (;;) {
    const [opening, tag, attributes = ''] = ADDED.exec(text) ?? []
    const end = tag === undefined ? -1 : text.indexOf(`</${tag}>`)
    if (opening === undefined || end === -1) return { text, named }
    named ??= /\bname="([^"]{1,100})"/.exec(attributes)?.[1]
    text = text.slice(end + tag!.length + 3).trimStart()
  }
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
