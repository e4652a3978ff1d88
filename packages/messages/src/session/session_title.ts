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
    const text = blocks.find((block) => block.kind === 'text')?.text.trim()
    if (text) return shortTitle(text)
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
