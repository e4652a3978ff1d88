import type { Annals, Session } from '@annals/client'
import type { ToolFigures } from '@annals/messages/session'
import { Command, Option } from 'commander'
import { commandLine } from '../terminal/command_name.js'
import { countOf } from '../terminal/count.js'
import { type Output, tell } from '../terminal/output.js'
import type { Column } from '../terminal/table.js'
import { parseCount, parseObject } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import type { Failure } from './failed_calls.js'

const SESSIONS_DEFAULT = 200
const SESSIONS_AT_ONCE = 8
/** The beginning of a log that is looked at; the help names it. */
const ENTRIES_MAX = 1_000
const PAGE_MAX = 200

interface ToolsOptions extends ConnectionOptions {
  user?: string
  configs?: Record<string, unknown>
  sessions: number
}

interface Tool extends Omit<ToolFigures, 'durations_ms'> {
  sessions: number
}

/** What the figures were taken from. */
interface LookedAt {
  sessions: number
  /** Whether there are older sessions. */
  has_older: boolean
  /** Sessions of which only the first entries were read. */
  cut: number
}

/** annals tools */
export function toolsCommand(): Command {
  const command = new Command('tools')
    .description(
      'Show which tools failed most, or what a tool returned when it failed and what the agent said next.',
    )
    .argument('[tool]', 'the failed calls of this tool')
    .option('--user <identifier>', "only this user's sessions")
    .option('--configs <json or key=value>', 'only sessions whose configs contain this', parseObject)
    .addOption(
      new Option('--sessions <count>', 'look at so many of the newest sessions')
        .argParser(parseCount)
        .default(SESSIONS_DEFAULT),
    )
  return withService(command)
    .addHelpText(
      'after',
      `
Of each session, the first 1,000 entries are looked at, and up to 20 failed calls are shown. Where there is more,
numbers say ≥.

Examples:
  annals tools --configs agent=refunds
  annals tools issue_refund`,
    )
    .action(async (tool: string | undefined, options: ToolsOptions) => {
      const { annals, output } = await connect(options)
      const { tools, failures, looked_at } = await figuresOf(annals, options, tool)
      if (tool !== undefined) return showFailures(tool, { tools, failures, looked_at }, output)
      const is_partial = isPartial(looked_at)
      if (output.json) {
        for (const one of tools) output.value({ ...one, ...(is_partial && { is_partial }) })
        return
      }
      const { tableLines } = await import('../terminal/table.js')
      const { width, paint } = output
      if (tools.length === 0) return tell(`There are no tool calls${whereText(looked_at)}`)
      output.lines(tableLines(toolColumns(is_partial), tools, width, paint))
      if (is_partial) tell(`Counted${whereText(looked_at)}`)
      const [first] = tools
      if (first!.failures > 0) tell(`To see its failures: ${commandLine(['tools', first!.name])}`)
    })
}

type Figures = Awaited<ReturnType<typeof figuresOf>>

/** The failed calls of a tool, and how far this is all. */
async function showFailures(tool: string, { tools, failures, looked_at }: Figures, output: Output) {
  const { failureLines } = await import('./failed_calls.js')
  const more = (tools.find(({ name }) => name === tool)?.failures ?? 0) - failures.length
  if (output.json) failures.forEach(output.value)
  else output.lines(failures.flatMap((failure) => failureLines(failure, output)))
  const [first] = failures
  if (!first) return tell(`No call of ${tool} failed${whereText(looked_at)}`)
  if (more > 0) tell(`${countOf(more, 'more failed calls')} of the same sessions are not shown.`)
  if (isPartial(looked_at)) tell(`Looked${whereText(looked_at)}`)
  if (!output.json)
    tell(`To read on: ${commandLine(['show', first.session_id, '--from-seq', String(first.seq)])}`)
}

function isPartial({ has_older, cut }: LookedAt): boolean {
  return has_older || cut > 0
}

/** The end of a sentence: ` in 3 sessions.`, or what was looked at and what was not. */
function whereText({ sessions, has_older, cut }: LookedAt): string {
  if (sessions === 0) return ', because no session matches.'
  const count = countOf(sessions, 'sessions')
  const of = has_older ? `the newest ${sessions === 1 ? 'session' : count}` : count
  const read = cut > 0 ? ` (of ${cut} only the first ${ENTRIES_MAX.toLocaleString('en')} entries)` : ''
  return ` in ${of}${read}.${has_older ? ' Older ones were not looked at; --sessions looks at more.' : ''}`
}

/**
 * The tools of the newest sessions, those that failed most first, and failed calls, of one tool or of all, newest
 * session first.
 */
async function figuresOf(annals: Annals, options: ToolsOptions, tool_name: string | undefined) {
  const { user, configs, sessions: sessions_max } = options
  const { figuresOfLog } = await import('@annals/messages/session')
  const limit = Math.min(sessions_max, PAGE_MAX)
  const sessions: Session[] = []
  let has_older = false
  const list = annals.sessions.list({ user, filter_by_configs: configs, time_desc: true, limit })
  for await (const { items, has_more } of list.pages()) {
    const some = items.slice(0, sessions_max - sessions.length)
    sessions.push(...some)
    has_older = has_more || some.length < items.length
    if (sessions.length === sessions_max) break
  }
  const tools = new Map<string, Tool>()
  const failures: Failure[] = []
  let cut = 0
  for (let from = 0; from < sessions.length; from += SESSIONS_AT_ONCE) {
    const some = sessions.slice(from, from + SESSIONS_AT_ONCE)
    const logs = await Promise.all(
      some.map(({ id }) => annals.sessions.timeline(id, { limit: ENTRIES_MAX }).page()),
    )
    for (const [index, { items, has_more }] of logs.entries()) {
      if (has_more) cut += 1
      const { tools: used, failed } = figuresOfLog(items, tool_name)
      failures.push(...failed.map((call) => ({ session_id: some[index]!.id, ...call })))
      for (const { name, calls, failures } of used) {
        const tool = tools.get(name) ?? { name, calls: 0, failures: 0, sessions: 0 }
        tools.set(name, tool)
        tool.calls += calls
        tool.failures += failures
        tool.sessions += 1
      }
    }
  }
  const looked_at: LookedAt = { sessions: sessions.length, has_older, cut }
  const by_failures = [...tools.values()].sort((a, b) => b.failures - a.failures || b.calls - a.calls)
  return { tools: by_failures, failures, looked_at }
}

function toolColumns(is_partial: boolean): Column<Tool>[] {
  const count = (value: number) => `${is_partial ? '≥ ' : ''}${value.toLocaleString('en')}`
  return [
    { title: 'tool', text: ({ name }) => name, style: 'cyan' },
    { title: 'failures', text: ({ failures }) => count(failures) },
    { title: 'of calls', text: ({ calls }) => count(calls) },
    {
      title: is_partial ? 'rate of these' : 'rate',
      text: ({ calls, failures }) => `${Math.round((100 * failures) / calls)} %`,
    },
    { title: 'sessions', text: ({ sessions }) => count(sessions) },
  ]
}
