import type { List } from '@annals/client'
import { type Command, Option } from 'commander'
import { type Output, tell } from '../terminal/output.js'
import type { Column } from '../terminal/table.js'
import { parseCount } from './arguments.js'

const PAGE_MAX = 200
const LIMIT_DEFAULT = 20

/** How much of a list is wanted. */
export interface ListOptions {
  limit: number
  all?: boolean
  oldestFirst?: boolean
}

/** Adds the options that say how much of a list is wanted. */
export function withLimit(command: Command): Command {
  return command
    .addOption(new Option('--limit <count>', 'how many at most').argParser(parseCount).default(LIMIT_DEFAULT))
    .option('--all', 'all there are, page by page')
    .option('--oldest-first', 'the oldest first, and not the newest')
}

/** The part of a query that goes with the options. */
export function pageQuery({ limit, all, oldestFirst }: ListOptions): { limit: number; time_desc: boolean } {
  return { limit: all ? PAGE_MAX : Math.min(limit, PAGE_MAX), time_desc: !oldestFirst }
}

/** Prints a list as it comes, page by page: a table for people, a line of JSON for each for programs. */
export async function printList<Item>(
  output: Output,
  list: List<Item>,
  columnsOf: (items: Item[]) => Column<Item>[],
  options: ListOptions,
  nothing: string,
  jsonOf: (item: Item) => unknown = (item) => item,
): Promise<void> {
  const { tableLines } = await import('../terminal/table.js')
  let left = options.all ? Number.POSITIVE_INFINITY : options.limit
  let printed = 0
  let has_more = false
  for await (const page of list.pages()) {
    const items = page.items.slice(0, left)
    left -= items.length
    has_more = page.has_more || items.length < page.items.length
    if (output.json) for (const item of items) output.value(jsonOf(item))
    else if (items.length > 0) {
      const lines = tableLines(columnsOf(items), items, output.width, output.paint)
      output.lines(printed === 0 ? lines : lines.slice(1))
    }
    printed += items.length
    if (left <= 0) break
  }
  if (output.json) return
  if (printed === 0) tell(nothing)
  else if (has_more) tell(`There are more: --limit ${options.limit * 5}, or --all.`)
}
