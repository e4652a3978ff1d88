import type { Annals, FoundEntry } from '@annals/client'
import { Command, Option } from 'commander'
import { commandLine } from '../terminal/command_name.js'
import { tell } from '../terminal/output.js'
import { shortIds } from '../terminal/short_ids.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { parseCount, parseMoment, parseObject, parseSession } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { openConsole, type WebOption, withWeb } from './open_console.js'
import { findSession } from './pick_session.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'

interface FilterOptions {
  user?: string
  configs?: Record<string, unknown>
  session?: string
  kind?: 'message' | 'event'
  type?: string
  role?: string
  from?: number
  to?: number
}

interface SearchOptions extends FilterOptions, ListOptions, ConnectionOptions, WebOption {
  relevance?: boolean
  noise?: boolean
  show?: number
}

interface AskOptions extends FilterOptions, ConnectionOptions {
  limit: number
}

/** annals search */
export function searchCommand(): Command {
  const command = withFilters(takingHyphens(new Command('search')))
    .description('Search the text of all entries in all sessions, newest first.')
    .argument('<query...>', 'words, "words in this order", -without, begin*')
    .option('--noise', 'also what imports marked as noise, such as lines of progress')
    .option('--relevance', 'sort the newest 200 that match, best first')
    .option('--show <number>', 'show the session from this hit on, 1 for the first one', parseCount)
  return withService(withWeb(withLimit(command, { ordered: false })))
    .addHelpText(
      'after',
      `
The operator switches search on for a project: \`annals project set <name> --search on\`.

Examples:
  annals search 'refund -paid'
  annals search '"no refund"' --user omar --from 7d
  annals search 'refund -paid' --show 1`,
    )
    .action(async (words: string[], options: SearchOptions) => {
      const query = words.join(' ')
      const connection = await connect(options)
      const { annals, output } = connection
      if (options.web) return openConsole(connection, '/search', { q: query })
      const list = annals.search(query, await queryOf(annals, options))
      if (options.show !== undefined) return showHit(list, options.show, options)
      let shown: FoundEntry[] | undefined
      const columnsOf = (items: FoundEntry[]) => {
        shown ??= items
        return [...placeColumns(items, output.width), BY, LINE]
      }
      await printList(output, list, columnsOf, options, {
        unit: 'entries',
        nothing: async () => {
          const { indexing } = await list.page()
          const hint = indexing
            ? ''
            : ` \`${commandLine(['ask'])}\` finds what answers a question in plain words.`
          return nothingOf(indexing) + hint
        },
      })
      const [first] = shown ?? []
      if (first)
        tell(`To read on: ${commandLine(['show', first.session_id, '--from-seq', String(first.seq)])}`)
    })
}

/** annals ask */
export function askCommand(): Command {
  const command = withFilters(takingHyphens(new Command('ask')))
    .description('Ask a question in plain words: find the sessions that answer it, best first.')
    .argument('<question...>', 'a question in plain words')
    .addOption(
      new Option('--limit <count>', 'show at most this many sessions, up to 50')
        .argParser(parseCount)
        .default(5),
    )
  return withService(command)
    .addHelpText(
      'after',
      `
The operator switches search on for a project: \`annals project set <name> --search on\`.

Examples:
  annals ask 'When did Omar last complain about a refund?'
  annals ask 'which tool timed out' --role tool --from 7d`,
    )
    .action(async (words: string[], options: AskOptions) => {
      const { annals, output } = await connect(options)
      const query = { ...(await filtersOf(annals, options)), limit: options.limit }
      const { items, indexing } = await annals.recall(words.join(' '), query)
      if (output.json) for (const item of items) output.value(item)
      else if (items.length > 0) {
        const { tableLines } = await import('../terminal/table.js')
        const entries = items.flatMap(({ title, entries }) => entries.map((entry) => ({ ...entry, title })))
        output.lines(
          tableLines(
            [...placeColumns(entries, output.width), TITLE, LINE],
            entries,
            output.width,
            output.paint,
          ),
        )
        const { session_id, seq } = entries[0]!
        tell(`To read on: ${commandLine(['show', session_id, '--from-seq', String(seq)])}`)
      }
      if (items.length === 0 && (!output.json || process.stderr.isTTY)) tell(nothingOf(indexing))
    })
}

function withFilters(command: Command): Command {
  return command
    .option('--user <identifier>', "only this user's sessions")
    .option(
      '--configs <filter>',
      'only sessions whose configs contain this: JSON, or agent=refunds',
      parseObject,
    )
    .option('--session <session>', "only this session: its id, or the id's beginning", parseSession)
    .addOption(new Option('--kind <kind>', 'only entries of this kind').choices(['message', 'event']))
    .option('--type <type>', 'only events of this type')
    .option('--role <role>', 'only messages with this role')
    .option('--from <time>', 'only entries stored since then: a duration such as 2d, or a time', parseMoment)
    .option('--to <time>', 'only entries stored until then', parseMoment)
}

/** A query may begin with a word to leave out, such as -paid: what is no option with two hyphens belongs to the query. */
function takingHyphens(command: Command): Command {
  const checked = command as unknown as { unknownOption(flag: string): void }
  const refuse = checked.unknownOption.bind(command)
  checked.unknownOption = (flag) => {
    if (flag.startsWith('--')) refuse(flag)
  }
  return command
}

async function queryOf(annals: Annals, options: SearchOptions) {
  const order = options.relevance ? ('relevance' as const) : undefined
  return {
    ...(await filtersOf(annals, options)),
    limit: pageQuery(options).limit,
    order,
    noise: options.noise ?? false,
  }
}

async function filtersOf(
  annals: Annals,
  { user, configs, session, kind, type, role, from, to }: FilterOptions,
) {
  return {
    ...{ user, kind, type, role },
    session_id: session && (await findSession(annals, session)),
    filter_by_configs: configs,
    from: from === undefined ? undefined : new Date(from).toISOString(),
    to: to === undefined ? undefined : new Date(to).toISOString(),
  }
}

type Hits = AsyncIterable<FoundEntry>

async function showHit(hits: Hits, number: number, options: SearchOptions): Promise<void> {
  let count = 0
  for await (const { session_id, seq } of hits) {
    count += 1
    if (count < number) continue
    const { showSession } = await import('./show.js')
    const { kind: _kind, type: _type, ...rest } = options
    return showSession(session_id, { ...rest, fromSeq: seq })
  }
  tell(count === 0 ? 'Nothing was found.' : `There are only ${count} hits.`)
}

function nothingOf(indexing: { sessions_done: number; sessions: number } | null): string {
  if (!indexing) return 'Nothing was found.'
  const { sessions_done, sessions } = indexing
  return `Nothing was found yet: ${sessions_done} of ${sessions} sessions are indexed.`
}

function placeColumns(found: FoundEntry[], width: number): Column<FoundEntry>[] {
  const shortId = shortIds(
    found.map(({ session_id }) => session_id),
    width,
  )
  return [
    { title: 'session', text: ({ session_id }) => shortId(session_id), style: 'cyan' },
    { title: 'seq', text: ({ seq }) => String(seq) },
    { title: 'when', text: ({ occurred_at, created_at }) => agoOf(occurred_at ?? created_at) },
  ]
}

const LINE: Column<FoundEntry> = { title: 'line', text: ({ snippet }) => aroundHit(snippet), shrinks: true }
const BY: Column<FoundEntry> = {
  title: 'by',
  text: ({ type, role }) => type ?? role ?? '',
  shrinks: true,
}
const TITLE: Column<FoundEntry & { title: string | null }> = {
  title: 'title',
  text: ({ title }) => title ?? '',
  shrinks: true,
}

/** Characters before the first hit: what follows it matters more where a line is cut off. */
const BEFORE_HIT = 30

function aroundHit({ text, hits }: FoundEntry['snippet']): string {
  const from = Math.max(0, (hits[0]?.[0] ?? 0) - BEFORE_HIT)
  return (from > 0 ? '…' : '') + text.slice(from).replaceAll(/\s+/g, ' ')
}
