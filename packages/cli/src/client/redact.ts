import type { Annals } from '@annals/client'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { countOf } from '../terminal/count.js'
import { type Output, tell } from '../terminal/output.js'
import type { Column } from '../terminal/table.js'
import { parseSession } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'
import type { Redacted } from './redact_sessions.js'

interface RedactOptions extends ConnectionOptions {
  all?: boolean
  dryRun?: boolean
}

/** annals redact */
export function redactCommand(): Command {
  const command = new Command('redact')
    .description("Make a redacted copy of each of these sessions, by the project's rules.")
    .argument('[sessions...]', 'their ids, or the beginnings of these', (id: string, ids: string[] = []) => [
      ...ids,
      parseSession(id),
    ])
    .option('--all', 'all sessions of the project, except copies that this command made')
    .option('--dry-run', 'only report what the rules find')
  return withService(command)
    .addHelpText(
      'after',
      `
It applies the rules for writing, and needs an API key with the scopes admin, read and write. The originals stay as
they are: delete them once you have checked the copies. A session in which nothing is found gets no copy. The ids of
copies and entries follow from the originals and the rules, so you can repeat the command: it continues where it was
interrupted, and adds what was appended to the original since. Attachments are counted, not examined.

Examples:
  annals redact --all --dry-run
  annals redact 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d`,
    )
    .action(async (named: string[] | undefined, options: RedactOptions) => {
      const { all = false, dryRun = false } = options
      const given = named?.length ? named : undefined
      if ((given !== undefined) === all) throw new UsageError('Name sessions, or pass --all.')
      const { annals, output } = await connect(options, 5)
      const { runLongWork } = await import('../database/with_database.js')
      await runLongWork(
        (signal) => redact(annals, output, given, dryRun, signal),
        'Run the command again: it continues where it ended.',
      )
    })
}

async function redact(
  annals: Annals,
  output: Output,
  given: string[] | undefined,
  is_dry: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { openRedaction } = await import('./redact_sessions.js')
  const redaction = await openRedaction(annals, is_dry, signal)
  if (redaction.are_default) tell('Redaction is off: this is what the default rules would find.')
  const done: Redacted[] = []
  try {
    for await (const id of idsOf(annals, given, signal)) {
      const one = await redaction.redact(id)
      if (output.json) output.value(one)
      done.push(one)
    }
  } finally {
    if (!output.json) await print(output, done)
  }
}

async function* idsOf(
  annals: Annals,
  given: string[] | undefined,
  signal: AbortSignal,
): AsyncGenerator<string> {
  if (given) {
    // All are looked up first, so that a wrong one is refused before anything is made.
    const ids: string[] = []
    for (const one of given) ids.push(await findSession(annals, one))
    yield* new Set(ids)
    return
  }
  const { isCopy } = await import('./redact_sessions.js')
  for await (const session of annals.sessions.list({ limit: 200 }, { signal }))
    if (!isCopy(session)) yield session.id
}

const number = (count: number) => count.toLocaleString('en')

const COLUMNS: Column<Redacted>[] = [
  { title: 'session', text: ({ session_id }) => session_id, style: 'cyan' },
  { title: 'entries', text: ({ entries }) => number(entries) },
  { title: 'found', text: ({ found }) => foundText(found), shrinks: true },
  { title: 'attachments not examined', text: ({ attachments }) => number(attachments) },
]

async function print(output: Output, done: Redacted[]): Promise<void> {
  const { tableLines } = await import('../terminal/table.js')
  const sum: Record<string, number> = {}
  for (const { found } of done)
    for (const [name, count] of Object.entries(found)) sum[name] = (sum[name] ?? 0) + count
  if (done.length > 0) output.lines(tableLines(COLUMNS, done, output.width, output.paint))
  output.lines([`${countOf(done.length, 'sessions')}: ${foundText(sum)}.`])
  for (const { session_id, copy } of done)
    if (copy)
      output.lines([
        `Copied ${session_id} to ${copy.session_id}: ${countOf(copy.added, 'entries')} added, ${number(copy.entries)} in all.`,
      ])
}

function foundText(found: Record<string, number>): string {
  const names = Object.entries(found).map(([name, count]) => `${name} ${number(count)}`)
  return names.length > 0 ? names.join(', ') : 'nothing found'
}
