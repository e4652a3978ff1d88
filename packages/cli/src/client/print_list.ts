import type { List } from '@annals/client'
import { type Command, Option } from 'commander'
import { EXIT_CODES } from '../exit_codes.js'
import { commandLine } from '../terminal/command_name.js'
import { onInterrupt } from '../terminal/interrupt.js'
import { type Output, tell } from '../terminal/output.js'
import type { Unit } from '../terminal/progress.js'
import type { Column } from '../terminal/table.js'
import { parseCount } from './arguments.js'

const PAGE_MAX = 200
const LIMIT_DEFAULT = 20

/** How much of a list to print. */
export interface ListOptions {
  limit: number
  all?: boolean
  cursor?: string
  oldestFirst?: boolean
}

/** Adds the options for that; `ordered`: also the one for the order. */
export function withLimit(command: Command, { ordered = true } = {}): Command {
  command
    .addOption(
      new Option('--limit <count>', 'show at most this many').argParser(parseCount).default(LIMIT_DEFAULT),
    )
    .option('--all', 'show all, page by page')
    .option('--cursor <cursor>', 'resume from a printed cursor')
  return ordered ? command.option('--oldest-first', 'oldest first') : command
}

/** The query parameters of these options. */
export function pageQuery({ limit, all, oldestFirst }: ListOptions): { limit: number; time_desc: boolean } {
  return { limit: all ? PAGE_MAX : Math.min(limit, PAGE_MAX), time_desc: !oldestFirst }
}

/** Whether it may be more than a page, so that nothing should be read for each item. */
export function isLong({ limit, all }: ListOptions): boolean {
  return Boolean(all) || limit > PAGE_MAX
}

/** The name of a list's items, and the message for an empty list. */
export interface ListWords {
  unit: Unit
  nothing: () => string | Promise<string>
}

/**
 * Prints a list page by page as it arrives: a table for people, JSON lines for programs. Ctrl-C ends it between two
 * pages and prints how to resume.
 */
export async function printList<Item>(
  output: Output,
  list: List<Item>,
  columnsOf: (items: Item[]) => Column<Item>[] | Promise<Column<Item>[]>,
  options: ListOptions,
  { unit, nothing }: ListWords,
  jsonOf: (items: Item[]) => unknown[] | Promise<unknown[]> = (items) => items,
): Promise<void> {
  const { tableLines } = await import('../terminal/table.js')
  // On a terminal the rows themselves show the progress.
  const is_watched = process.stderr.isTTY && !process.stdout.isTTY
  const progress = is_watched
    ? (await import('../terminal/progress.js')).showProgress('Listing', unit, 0)
    : undefined
  let is_interrupted = false
  const end = onInterrupt(() => (is_interrupted = true))
  let left = options.all ? Number.POSITIVE_INFINITY : options.limit
  let printed = 0
  let has_more = false
  const resume = await output.paged(async () => {
    for await (const page of list.pages(options.cursor)) {
      const items = page.items.slice(0, left)
      left -= items.length
      has_more = page.has_more || items.length < page.items.length
      if (output.json) for (const value of await jsonOf(items)) output.value(value)
      else if (items.length > 0) {
        const lines = tableLines(await columnsOf(items), items, output.width, output.paint)
        output.lines(printed === 0 ? lines : lines.slice(1))
      }
      printed += items.length
      progress?.update(printed)
      await output.taking()
      if (left <= 0) break
      if (is_interrupted && page.has_more) return page.next_cursor
    }
    return undefined
  })
  end()
  if (resume !== undefined) tellHowToGoOn(resume)
  // An empty list is a valid result; a person at the terminal also wants to know why it is empty.
  if (printed === 0 && (!output.json || process.stderr.isTTY)) tell(await nothing())
  else if (has_more && !output.json) tell(`There are more: use --limit ${options.limit * 5} or --all.`)
}

/** The same command, from here on, without a given token, which is secret. */
function tellHowToGoOn(cursor: string): void {
  const words: string[] = []
  const given = process.argv.slice(2)
  for (let index = 0; index < given.length; index++) {
    const [, name, joined] = /^(--cursor|--token)(=.*)?$/.exec(given[index]!) ?? []
    if (name === undefined) words.push(given[index]!)
    else {
      if (joined === undefined) index += 1
      if (name === '--token') words.push('--token', 'TOKEN')
    }
  }
  process.stderr.write(`annals: interrupted. To resume: ${commandLine([...words, '--cursor', cursor])}\n`)
  process.exit(EXIT_CODES.interrupted)
}
