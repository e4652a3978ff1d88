import { wordsOf } from '@annals/messages/search'
import { lineOf } from './line.js'
import { tellingWords } from './question.js'
import { scoreLines } from './score.js'

/** Words of a task that are looked for: the first ones that tell something. */
const TASK_WORDS_MAX = 64

/**
 * Finds, among the items, those whose texts have any word of a task, best first; equal ones in their order. A task is any
 * text: quotes and other signs mean nothing.
 */
export function findByTask<Item>(
  items: readonly Item[],
  textOf: (item: Item) => string,
): (task: string) => Item[] {
  const lines = items.map((item, index) => ({
    session_id: String(index),
    seq: 1,
    words: `@text ${lineOf(textOf(item))}`,
  }))
  return (task) => {
    const asked = wordsOf(task).map(({ text }) => ({ word: text, is_prefix: false }))
    const words = tellingWords(asked).slice(0, TASK_WORDS_MAX)
    // How much a word tells is what these texts say of it.
    const weights = words.map(() => 0)
    const { entries } = scoreLines(lines, { words, required: [], excluded: [], dates: [] }, weights)
    return entries.map(({ session_id }) => items[Number(session_id)]!)
  }
}
