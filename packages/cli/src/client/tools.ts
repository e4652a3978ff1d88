import { setTimeout as sleep } from 'node:timers/promises'
import type { Tool, ToolFailures, ToolsQuery } from '@annals/client'
import { Command } from 'commander'
import { commandLine } from '../terminal/command_name.js'
import { countOf } from '../terminal/count.js'
import { type Output, tell } from '../terminal/output.js'
import type { Column } from '../terminal/table.js'
import { durationOf } from '../terminal/times.js'
import { visibleLine } from '../terminal/visible.js'
import { parseMoment, parseObject } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'

interface ToolsOptions extends ConnectionOptions {
  user?: string
  configs?: Record<string, unknown>
  from?: number
  to?: number
}

/** How far what an answer counts is all. */
type Counted = Pick<ToolFailures, 'complete' | 'counted_from' | 'indexing'>

const TOOLS_MAX = 200
const GROUPS_MAX = 50
/** Tools without results that are named. */
const NAMED_MAX = 5
/** How long the command waits while sessions are being read, as they are for seconds after the first import. */
const READING_MS_MAX = 15_000
const READING_POLL_MS = 500

/** annals tools */
export function toolsCommand(): Command {
  const command = new Command('tools')
    .description(
      'Show which tools failed most, or what a tool returned when it failed and what the agent said next.',
    )
    .argument('[tool]', 'the failures of this tool, by what their messages have in common')
    .option('--user <identifier>', "only this user's sessions")
    .option(
      '--configs <filter>',
      'only sessions whose configs contain this: JSON, or agent=refunds',
      parseObject,
    )
    .option('--from <time>', 'only calls since: a duration such as 2d, or a time', parseMoment)
    .option('--to <time>', 'only calls until: a duration such as 2d, or a time', parseMoment)
  return withService(command)
    .addHelpText(
      'after',
      `
All calls of all sessions are counted. The first use starts reading the stored sessions, and the command waits for up
to 15 seconds until they are read. ≥ before a number marks a lower bound: not all sessions have been read, or there are
more than 500,000 calls.

Examples:
  annals tools --configs agent=refunds
  annals tools issue_refund --from 7d`,
    )
    .action(async (tool: string | undefined, options: ToolsOptions) => {
      const { annals, output } = await connect(options)
      const { user, configs, from, to } = options
      const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())
      const query: ToolsQuery = { user, filter_by_configs: configs, from: time(from), to: time(to) }
      if (tool !== undefined)
        return showFailures(await onceRead(() => annals.tool(tool, { ...query, limit: GROUPS_MAX })), output)
      const page = await onceRead(() => annals.tools({ ...query, limit: TOOLS_MAX }))
      const { items, has_more, complete } = page
      if (output.json) {
        for (const one of items) output.value({ ...one, complete })
        if (items.length > 0 || !process.stderr.isTTY) return
      }
      const { tableLines } = await import('../terminal/table.js')
      if (items.length === 0)
        tell(complete ? 'There are no tool calls.' : 'No tool call has been counted yet.')
      else output.lines(tableLines(toolColumns(page), items, output.width, output.paint))
      tellWhatIsLeft(page)
      if (items.length > 0 && items.every(({ p50_ms }) => p50_ms === null))
        tell('How long calls took is not known: their sessions do not say when they ended.')
      tellWithoutResults(items)
      if (has_more) tell(`Only the first ${TOOLS_MAX} tools are shown.`)
      const [first] = items
      if (first && first.failures > 0) tell(`To see its failures: ${commandLine(['tools', first.name])}`)
    })
}

/** The answer once all calls are counted, or after the wait. */
async function onceRead<T extends Counted>(ask: () => Promise<T>): Promise<T> {
  const until = performance.now() + READING_MS_MAX
  let found = await ask()
  while (!found.complete && found.counted_from === null && performance.now() < until) {
    await sleep(READING_POLL_MS)
    found = await ask()
  }
  return found
}

async function showFailures(found: ToolFailures, output: Output): Promise<void> {
  const { name, calls, failures, sessions, groups, has_more, complete } = found
  if (output.json) {
    for (const group of groups) output.value({ ...group, complete })
    if (failures > 0 || !process.stderr.isTTY) return
  }
  tellWhatIsLeft(found)
  const least = complete ? '' : '≥ '
  if (failures === 0) {
    const of =
      calls === 0
        ? 'was not called; `annals tools` lists those that were'
        : `did not fail in ${least}${countOf(calls, 'calls')}`
    return tell(complete || calls > 0 ? `${name} ${of}.` : `No call of ${name} has been counted yet.`)
  }
  const { groupLines } = await import('./failed_calls.js')
  const of = `${least}${failures.toLocaleString('en')} of ${least}${countOf(calls, 'calls')}`
  const lines = [
    `${output.paint('cyan', name)} failed in ${of}, which are in ${least}${countOf(sessions, 'sessions')}.`,
    ...groups.flatMap((group) => ['', ...groupLines(group, least, output)]),
  ]
  await output.paged(async () => output.lines(lines))
  if (has_more) tell(`Only the ${GROUPS_MAX} most frequent kinds of failures are shown.`)
  const [example] = groups[0]?.examples ?? []
  if (example)
    tell(`To read on: ${commandLine(['show', example.session_id, '--from-seq', String(example.seq)])}`)
}

function tellWhatIsLeft({ counted_from, indexing }: Counted): void {
  if (indexing) {
    const { sessions_done, sessions } = indexing
    const done = `${sessions_done.toLocaleString('en')} of ${countOf(sessions, 'sessions')}`
    tell(`The sessions that are stored are being read: ${done} so far. Numbers are lower bounds until then.`)
  }
  if (counted_from !== null)
    tell(
      `Only the newest 500,000 calls are counted: those since ${counted_from}. --from and --to choose others.`,
    )
}

/** Of tools without a single result, nobody knows how often they failed. */
function tellWithoutResults(items: readonly Tool[]): void {
  const names = items.filter(({ calls, unanswered }) => unanswered === calls).map(({ name }) => name)
  if (names.length === 0) return
  const shown = names.slice(0, NAMED_MAX).map(visibleLine).join(', ')
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ''
  tell(`No call of ${shown}${more} has a result here: whether they failed is not known.`)
}

function toolColumns({ complete }: Counted): Column<Tool>[] {
  const count = (value: number) => `${complete ? '' : '≥ '}${value.toLocaleString('en')}`
  const time = (ms: number | null) => (ms === null ? '' : durationOf(ms))
  return [
    { title: 'tool', text: ({ name }) => name, style: 'cyan' },
    { title: 'failures', text: ({ failures }) => count(failures) },
    { title: 'of calls', text: ({ calls }) => count(calls) },
    {
      title: complete ? 'rate' : 'rate of these',
      text: ({ calls, failures, unanswered }) =>
        unanswered === calls ? '' : `${Math.round((100 * failures) / calls)} %`,
    },
    { title: 'sessions', text: ({ sessions }) => count(sessions) },
    { title: 'p50', text: ({ p50_ms }) => time(p50_ms), from_width: 80 },
    { title: 'p95', text: ({ p95_ms }) => time(p95_ms), from_width: 80 },
  ]
}
