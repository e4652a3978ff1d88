import { writeJson } from '@annals/messages/json'
import type { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { PagedLines, pagerOf } from './pager.js'
import { type Paint, painter } from './paint.js'
import { visible, visibleJson } from './visible.js'

/** Options of every command that prints something. */
export interface OutputOptions {
  json?: boolean
  fields?: string[]
}

/** Adds `--json`, `--no-json` and `--fields`. */
export function withOutput(command: Command): Command {
  return command
    .option('--json', 'print JSON lines (the default in a pipe or a file)')
    .option('--no-json', 'print for people, even in a pipe or a file')
    .option(
      '--fields <names>',
      'print JSON lines with these fields only, such as id,configs.agent',
      (names) => names.split(',').map((name) => name.trim()),
    )
}

/** How a command prints: for programs or for people, and for people with which width and colours. */
export interface Output {
  json: boolean
  width: number
  paint: Paint
  /** One value as a JSON line, with every digit that the service returned. */
  value(value: unknown): void
  lines(lines: string[]): void
  /** Shows what `work` prints for people in a pager, if it does not fit on the terminal. */
  paged<Result>(work: () => Promise<Result>): Promise<Result>
  /** Resolves once more lines are wanted. */
  taking(): Promise<void>
  /** A command's result: the value for programs, the sentence for people. */
  outcome(value: unknown, sentence: string): void
}

/** The requested output: JSON unless stdout is a terminal. */
export function openOutput({ json, fields }: OutputOptions): Output {
  const { stdout } = process
  let pages: PagedLines | undefined
  const lines = (all: string[]) => {
    if (pages) pages.print(all)
    else stdout.write(all.map((line) => `${line}\n`).join(''))
  }
  let is_first = true
  const value = (one: unknown) => {
    if (is_first && fields) refuseUnknown(one, fields)
    is_first = false
    lines([visibleJson(writeJson(fields ? fieldsOf(one, fields) : one))])
  }
  const is_json = fields !== undefined || (json ?? !stdout.isTTY)
  return {
    json: is_json,
    width: widthOfTerminal(),
    paint: painter(stdout),
    value,
    lines,
    paged: async (work) => {
      const pager = stdout.isTTY && !is_json ? pagerOf(process.env) : undefined
      if (pager === undefined || pages) return work()
      pages = new PagedLines(pager, stdout)
      try {
        return await work()
      } finally {
        await pages.end()
        pages = undefined
      }
    },
    taking: async () => pages?.taking(),
    outcome: (one, sentence) => (is_json ? value(one) : lines([sentence])),
  }
}

/** Fields that not every entry, session or line has. */
const OPTIONAL_FIELDS = new Set([
  ...[
    'user',
    'parent_id',
    'forked_from',
    'forked_at_seq',
    'expires_in_s',
    'type',
    'data',
    'role',
    'format',
    'blob',
  ],
  ...[
    'meta',
    'parts',
    'key',
    'occurred_at',
    'retracted_by',
    'entries',
    'tokens',
    'outcome',
    'title',
    'score',
  ],
  ...['before', 'after', 'number', 'result', 'said', 'error'],
])

/** A field that no value has is a slip of the finger. @throws UsageError */
function refuseUnknown(value: unknown, fields: string[]): void {
  if (typeof value !== 'object' || value === null) return
  const known = Object.keys(value)
  const unknown = fields.find((path) => {
    const [name = ''] = path.split('.')
    return !known.includes(name) && !OPTIONAL_FIELDS.has(name)
  })
  if (unknown !== undefined)
    throw new UsageError(`There is no field ${JSON.stringify(unknown)}. There are: ${known.join(', ')}.`)
}

/** Some fields of a value, by their names or paths; null for those it does not have. */
function fieldsOf(value: unknown, fields: string[]): Record<string, unknown> {
  return Object.fromEntries(fields.map((path) => [path, path.split('.').reduce(memberOf, value) ?? null]))
}

function memberOf(value: unknown, name: string): unknown {
  const isObject = typeof value === 'object' && value !== null
  return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}

/** A file has no width; text for people in it should not be cut off, but prose still wrapped. */
function widthOfTerminal(): number {
  const asked = Number(process.env.COLUMNS)
  if (process.stdout.isTTY) return process.stdout.columns || 80
  return asked > 0 ? asked : 200
}

/** Prints a note for people, apart from the output. It may quote what is stored. */
export function tell(sentence: string): void {
  process.stderr.write(`${painter(process.stderr)('dim', visible(sentence))}\n`)
}
