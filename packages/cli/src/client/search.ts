import type { FoundEntry } from '@annals/client'
import { Command, Option } from 'commander'
import { commandLine } from '../terminal/command_name.js'
import { tell } from '../terminal/output.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { parseCount, parseMoment, parseObject, parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { openConsole, type WebOption, withWeb } from './open_console.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'

interface SearchOptions extends ListOptions, ConnectionOptions, WebOption {
  user?: string
  configs?: Record<string, unknown>
  session?: string
  kind?: 'message' | 'event'
  type?: string
  role?: string
  from?: number
  to?: number
  relevance?: boolean
  show?: number
}

/** annals search */
export function searchCommand(): Command {
  const command = takingHyphens(new Command('search'))
    .description('Find entries of all sessions by what is said in them, newest first.')
    .argument('<query...>', 'words, "words in this order", -without, begin*')
    .option('--user <identifier>', "only this user's sessions")
    .option('--configs <json or key=value>', 'only sessions whose configs contain this', parseObject)
    .option('--session <session>', 'only this session', parseUuid)
    .addOption(new Option('--kind <kind>', 'only entries of this kind').choices(['message', 'event']))
    .option('--type <type>', 'only events of this type')
    .option('--role <role>', 'only messages with this role')
    .option('--from <time>', 'only what was stored since: a duration such as 2d, or a time', parseMoment)
    .option('--to <time>', 'only what was stored until then', parseMoment)
    .option('--relevance', 'of the newest 200 that match, the best ones first')
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
      const list = annals.search(query, queryOf(options))
      if (options.show !== undefined) return showHit(list, options.show, options)
      let first: FoundEntry | undefined
      const columnsOf = (items: FoundEntry[]) => {
        first ??= items[0]
        return COLUMNS
      }
      await printList(output, list, columnsOf, options, {
        unit: 'entries',
        nothing: async () => nothingOf((await list.page()).indexing),
      })
      if (first)
        tell(`To read on: ${commandLine(['show', first.session_id, '--from-seq', String(first.seq)])}`)
    })
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

function queryOf(options: SearchOptions) {
  const { user, configs, session, kind, type, role, from, to, relevance } = options
  return {
    ...{ user, kind, type, role, limit: pageQuery(options).limit },
    session_id: session,
    filter_by_configs: configs,
    from: from === undefined ? undefined : new Date(from).toISOString(),
    to: to === undefined ? undefined : new Date(to).toISOString(),
    order: relevance ? ('relevance' as const) : undefined,
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

const COLUMNS: Column<FoundEntry>[] = [
  { title: 'session', text: ({ session_id }) => session_id, style: 'cyan' },
  { title: 'seq', text: ({ seq }) => String(seq) },
  { title: 'stored', text: ({ created_at }) => agoOf(created_at) },
  { title: 'by', text: ({ type, role }) => type ?? role ?? '', shrinks: true },
  { title: 'line', text: ({ snippet }) => aroundHit(snippet), shrinks: true },
]

/** Characters before the first hit: what follows it matters more where a line is cut off. */
const BEFORE_HIT = 30

function aroundHit({ text, hits }: FoundEntry['snippet']): string {
  const from = Math.max(0, (hits[0]?.[0] ?? 0) - BEFORE_HIT)
  return (from > 0 ? '…' : '') + text.slice(from).replaceAll(/\s+/g, ' ')
}
