import { Command } from 'commander'
import { type ConnectionOptions, connect, isConnectionGiven, withConnection } from '../client/connection.js'
import { expectDatabase, runLongWork, withDatabaseForLong } from '../database/with_database.js'
import { commandName } from '../terminal/command_name.js'
import { countOf } from '../terminal/count.js'
import { painter } from '../terminal/paint.js'
import type { DemoTotals } from './demo_document.js'

const AGAIN = 'Run the same command again to load the rest.'

interface Options extends ConnectionOptions {
  project?: string
}

/** annals demo */
export function demoCommand(): Command {
  const command = new Command('demo')
    .description(
      'Add a small, realistic set of demo sessions to a project. Running it again adds no duplicates.',
    )
    .option('--project <name or id>', 'a project of the local database (default: default)')
  return withConnection(command)
    .addHelpText(
      'after',
      `
With the local database (the embedded one, or DATABASE_URL), search is switched on, and the sessions are dated to the
last three days. With a service named by --url, --token, the environment or \`annals login\`, the entries say that they
happened then; the sessions themselves are dated now, and search is on only if the project's operator switched it on.
All have "demo": true in their configs; \`annals users erase\` removes a user's sessions.

Example:
  annals demo`,
    )
    .action(async (options: Options) => {
      const is_here = options.project !== undefined || !isConnectionGiven(options)
      if (is_here) expectDatabase()
      await runLongWork((signal) => (is_here ? loadHere(options, signal) : loadThere(options, signal)), AGAIN)
    })
}

async function loadHere({ project = 'default' }: Options, signal: AbortSignal): Promise<void> {
  const { readDemo } = await import('./demo_document.js')
  const { restoreDemo } = await import('./restore_demo.js')
  const demo = await readDemo()
  const totals = await withDatabaseForLong(
    (database, usage) => restoreDemo({ database, usage }, project, demo, signal),
    signal,
  )
  summarize(`The project "${project}"`, totals)
}

async function loadThere(options: Options, signal: AbortSignal): Promise<void> {
  const { readDemo } = await import('./demo_document.js')
  const { postDemo } = await import('./post_demo.js')
  const { withProgress } = await import('../terminal/progress.js')
  const demo = await readDemo()
  const { annals, url } = await connect(options, 5)
  const total = demo.sessions.reduce((sum, { entries }) => sum + entries.length, 0)
  const totals = await withProgress('Loading', 'entries', total, (progress) =>
    postDemo(annals, demo, signal, progress),
  )
  const { isSearchOn } = await import('./post_demo.js')
  summarize(`The project at ${url}`, totals, await isSearchOn(annals, signal))
}

function summarize(where: string, { sessions, entries, spaces }: DemoTotals, can_search = true): void {
  const { stdout } = process
  const made =
    sessions.stored === 0
      ? `${where} already has the demo: nothing was added.`
      : `${where} has ${countOf(sessions.stored, 'new sessions')}, with ${countOf(entries, 'entries')}, and ${countOf(spaces, 'learning spaces')}.`
  const known =
    sessions.known > 0 && sessions.stored > 0
      ? ` ${countOf(sessions.known, 'sessions')} already existed.`
      : ''
  stdout.write(`${made}${known}\n`)
  const paint = painter(stdout)
  const name = commandName()
  const next: [string, string][] = [
    [`${name} sessions list`, 'all sessions, newest first'],
    [`${name} show --user omar --configs outcome=failed`, "omar's newest failed run"],
    [`${name} show --user omar --configs outcome=failed --tool 3`, 'its third tool call, and the result'],
    ...(can_search
      ? [[`${name} search 'refund -paid'`, 'what was said, in any session'] as [string, string]]
      : []),
    [`${name} tail --user lena`, 'a session that is still running'],
  ]
  const width = Math.max(...next.map(([command]) => command.length))
  const lines = next.map(
    ([command, what]) => `  ${paint('cyan', command.padEnd(width))}  ${paint('dim', what)}`,
  )
  if (!can_search)
    stdout.write(
      'Search is off in this project. An operator switches it on: annals project set <project> --search on\n',
    )
  stdout.write(`\nTry next, while the service runs:\n${lines.join('\n')}\n`)
}
