import type { Session } from '@annals/client'
import type { ReadEntry } from '@annals/messages/session'
import type { Reading } from './log_reading.ts'

const LENGTH_MAX = 120

/** A session's title: `configs.title`, or the first thing that a user said; undefined if it has neither. */
export function titleOf({ configs }: Pick<Session, 'configs'>, { entries }: Reading): string | undefined {
  if (typeof configs.title === 'string' && configs.title.trim() !== '') return shortTitle(configs.title)
  const question = firstQuestion(entries.values())
  return question === undefined ? undefined : shortTitle(question)
}

/** What a user said first in a session. */
function firstQuestion(read: Iterable<ReadEntry>): string | undefined {
  for (const { speaker, kind, blocks } of read) {
    if (kind !== 'message' || speaker !== 'user') continue
    const text = blocks.find((block) => block.kind === 'text')?.text.trim()
    if (text) return text
  }
  return undefined
}

/** One line of bounded length. */
function shortTitle(text: string): string {
  const line = text
    .slice(0, 4 * LENGTH_MAX)
    .trim()
    .replaceAll(/\s+/g, ' ')
  return line.length > LENGTH_MAX ? `${line.slice(0, LENGTH_MAX - 1)}…` : line
}
