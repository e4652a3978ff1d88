import type { Annals } from '@annals/client'
import { Command, Option } from 'commander'
import { EXIT_CODES } from '../exit_codes.js'
import { UsageError } from '../run_command.js'
import { commandName } from '../terminal/command_name.js'
import { type Output, tell } from '../terminal/output.js'
import { parseCount, parseMoment, parsePosition } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { pickSession, type SessionChoice, withSessionChoice } from './pick_session.js'

const LAST_DEFAULT = 10

interface TailOptions {
  since?: number
  after?: ReturnType<typeof parsePosition>
  last?: number
  kind?: 'message' | 'event'
  type?: string
  full?: boolean
}

type Options = TailOptions & SessionChoice & ConnectionOptions

/** annals tail */
export function tailCommand(): Command {
  const command = withSessionChoice(
    new Command('tail').description(
      'Follow a session: show its last entries, then each new one as it is stored.',
    ),
  )
    .option('--since <time>', 'start this long ago (30s, 5m, 2h, 1d) or at a time', parseMoment)
    .option(
      '--after <seq>',
      'start after this seq, or after the position that an earlier tail ended with',
      parsePosition,
    )
    .option(
      '--last <count>',
      `start with this many of the last entries (default: ${LAST_DEFAULT})`,
      parseCount,
    )
    .addOption(new Option('--kind <kind>', 'only entries of this kind').choices(['message', 'event']))
    .option('--type <type>', 'only events of this type')
    .option('--full', 'show everything, however long')
  return withService(command)
    .addHelpText(
      'after',
      `
It reconnects when the connection breaks, and shows every entry once. Ctrl-C ends it and prints how to resume.

Examples:
  annals tail 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --since 5m
  annals tail --user omar --type tool_call --json | jq .data.name`,
    )
    .action(async (session_id: string | undefined, options: Options) => {
      const starts = [options.since, options.after, options.last].filter((one) => one !== undefined)
      if (starts.length > 1) throw new UsageError('Pass only one of --since, --after and --last.')
      const { annals, output } = await connect(options, 5)
      const session = await pickSession(annals, session_id, options)
      await follow(annals, session.id, options, output)
    })
}

async function follow(
  annals: Annals,
  session_id: string,
  options: TailOptions,
  output: Output,
): Promise<void> {
  const print = await printer(options, output)
  const stop = new AbortController()
  const end = () => stop.abort()
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
  let after = options.after ?? (await startOf(annals, session_id, options))
  let is_away = false
  const { kind, type } = options
  const items = annals.sessions.tail(session_id, {
    after,
    kind,
    type,
    signal: stop.signal,
    on_disconnect: ({ message }) => {
      if (!is_away && !stop.signal.aborted)
        tell(`annals: the connection was lost; reconnecting. (${message})`)
      is_away = true
    },
  })
  for await (const item of items) {
    is_away = false
    after = { seq: item.seq, created_at: item.created_at }
    print(item)
  }
  process.removeListener('SIGINT', end)
  process.removeListener('SIGTERM', end)
  const seq = typeof after === 'object' ? after.seq : after
  const position = typeof after === 'object' ? `${seq}@${after.created_at}` : seq
  const go_on = `${commandName()} tail ${session_id} --after ${position}`
  // The terminal wrote ^C at the beginning of this line.
  const line = process.stderr.isTTY ? '\n' : ''
  process.stderr.write(`${line}annals: stopped. To resume after entry ${seq}: ${go_on}\n`)
  process.exitCode = EXIT_CODES.interrupted
}

/** The seq to start after. */
async function startOf(annals: Annals, session_id: string, options: TailOptions): Promise<number> {
  const { lastItems } = await import('../timeline/print_timeline.js')
  const { since, last = LAST_DEFAULT, kind, type } = options
  const count = since === undefined ? last : Number.POSITIVE_INFINITY
  const [first] = await lastItems(annals, session_id, count, { kind, type, since })
  if (first) return first.seq - 1
  const [newest] = await lastItems(annals, session_id, 1, {})
  return newest?.seq ?? 0
}

async function printer(options: TailOptions, output: Output) {
  if (output.json) return output.value
  const { SessionReader } = await import('@annals/messages/session')
  const { TimelineText } = await import('../timeline/timeline_text.js')
  const reader = new SessionReader()
  const { width, paint } = output
  const text = new TimelineText({ width, paint, full: options.full ?? false, joins: false })
  return (item: Parameters<typeof reader.read>[0]) => output.lines(text.entry(reader.read(item)))
}
