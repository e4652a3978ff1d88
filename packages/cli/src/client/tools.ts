import type { Annals, Session } from '@annals/client'
import type { ToolFigures } from '@annals/messages/session'
import { Command, Option } from 'commander'
import { commandLine } from '../terminal/command_name.js'
import { tell } from '../terminal/output.js'
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
Of each session, the first 1,000 entries and the first 20 failed calls are looked at.

Examples:
  annals tools --configs agent=refunds
  annals tools issue_refund`,
    )
    .action(async (tool: string | undefined, options: ToolsOptions) => {
      const { annals, output } = await connect(options)
      const { tools, failures } = await figuresOf(annals, options)
      const { failureLines } = await import('./failed_calls.js')
      const { tableLines } = await import('../terminal/table.js')
      const of = failures.filter(({ name }) => name === tool)
      if (output.json) return (tool === undefined ? tools : of).forEach(output.value)
      const { width, paint } = output
      if (tool !== undefined) {
        if (of.length === 0) return tell(`No call of ${tool} failed in these sessions.`)
        const [{ session_id, seq }] = of as [Failure]
        output.lines(of.flatMap((failure) => failureLines(failure, output)))
        return tell(`To read on: ${commandLine(['show', session_id, '--from-seq', String(seq)])}`)
      }
      if (tools.length === 0) return tell('There are no tool calls in these sessions.')
      output.lines(tableLines(TOOL_COLUMNS, tools, width, paint))
      const [first] = tools
      if (first!.failures > 0) tell(`To see its failures: ${commandLine(['tools', first!.name])}`)
    })
}

/** The tools of the newest sessions, those that failed most first, and their failed calls, newest session first. */
async function figuresOf(annals: Annals, { user, configs, sessions: sessions_max }: ToolsOptions) {
  const { figuresOfLog } = await import('@annals/messages/session')
  const limit = Math.min(sessions_max, PAGE_MAX)
  const sessions: Session[] = []
  for await (const session of annals.sessions.list({
    user,
    filter_by_configs: configs,
    time_desc: true,
    limit,
  })) {
    sessions.push(session)
    if (sessions.length === sessions_max) break
  }
  const tools = new Map<string, Tool>()
  const failures: Failure[] = []
  for (let from = 0; from < sessions.length; from += SESSIONS_AT_ONCE) {
    const some = sessions.slice(from, from + SESSIONS_AT_ONCE)
    const logs = await Promise.all(
      some.map(({ id }) => annals.sessions.timeline(id, { limit: ENTRIES_MAX }).page()),
    )
    for (const [index, { items }] of logs.entries()) {
      const { tools: used, failed } = figuresOfLog(items)
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
  return { tools: [...tools.values()].sort((a, b) => b.failures - a.failures || b.calls - a.calls), failures }
}

const TOOL_COLUMNS: Column<Tool>[] = [
  { title: 'tool', text: ({ name }) => name, style: 'cyan' },
  { title: 'failures', text: ({ failures }) => failures.toLocaleString('en') },
  { title: 'of calls', text: ({ calls }) => calls.toLocaleString('en') },
  { title: 'rate', text: ({ calls, failures }) => `${Math.round((100 * failures) / calls)} %` },
  { title: 'sessions', text: ({ sessions }) => sessions.toLocaleString('en') },
]
