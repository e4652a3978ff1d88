import { randomUUID } from 'node:crypto'
import { AnnalsError, type AppendOptions } from '@annals/client'
import { AnnalsError as Refusal } from '@annals/kits/errors.js'
import { MESSAGE_FORMATS, type MessageFormat } from '@annals/messages'
import { Command, Option } from 'commander'
import { EXIT_CODES } from '../exit_codes.js'
import { UsageError } from '../run_command.js'
import { commandLine } from '../terminal/command_name.js'
import { onInterrupt } from '../terminal/interrupt.js'
import { parseSeq, parseSession, readObject } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'

const RETRIES = 5

interface AppendCommandOptions {
  type?: string
  format?: MessageFormat
  data: string
  key?: string
  occurredAt?: string
  idempotencyKey?: string
  ifMatch?: number
}

type Options = AppendCommandOptions & ConnectionOptions

/** annals append */
export function appendCommand(): Command {
  const command = new Command('append')
    .description('Append an event or a message to a session. Once acknowledged, it is durable.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .option('--type <type>', 'append an event of this type')
    .addOption(
      new Option('--format <format>', "append a message, in this provider's own format").choices([
        ...MESSAGE_FORMATS,
      ]),
    )
    .requiredOption('--data <json>', "the event's data, or the message: an object, @file, or - for stdin")
    .option('--key <key>', 'what the entry is about; `annals latest` lists the newest entry of each key')
    .option('--occurred-at <time>', 'when it happened, in RFC 3339, if not now')
    .option(
      '--idempotency-key <key>',
      'store it only once, however often you repeat the command (default: a new key each time)',
    )
    .option('--if-match <seq>', 'append only if this is still the last seq; 0 for an empty log', parseSeq)
  return withService(command)
    .addHelpText(
      'after',
      `
The command retries where that can help, and stores the entry once. If it cannot find out whether the entry was
stored, it prints the command that safely retries with the same key.

Examples:
  annals append 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --type note --data '{"text":"looks good"}'
  annals append 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --format openai --data @message.json
  date | jq -R '{at:.}' | annals append 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --type tick --data -`,
    )
    .action(async (session: string, options: Options) => {
      const { type, format, key, occurredAt: occurred_at } = options
      if ((type === undefined) === (format === undefined))
        throw new UsageError('Pass --type for an event, or --format for a message.')
      const data = await readObject(options.data)
      const { annals, isReached, output } = await connect(options, RETRIES)
      const { sessions } = annals
      const session_id = await findSession(annals, session)
      const entry = await safely(
        session_id,
        options,
        isReached,
        (append): Promise<{ seq: number }> =>
          type === undefined
            ? sessions.appendMessage(session_id, { format, blob: data, key, occurred_at }, append)
            : sessions.append(session_id, { type, data, key, occurred_at }, append),
      )
      output.outcome(entry, `Appended entry ${entry.seq}.`)
    })
}

/** Sets an idempotency key, so that the append can be retried safely if its outcome is unknown. */
async function safely<T>(
  session_id: string,
  options: Options,
  isReached: () => boolean,
  append: (options: AppendOptions) => Promise<T>,
): Promise<T> {
  const idempotency_key = options.idempotencyKey ?? randomUUID()
  const abort = new AbortController()
  const end = onInterrupt(() => abort.abort())
  const outcome = () =>
    isReached()
      ? `The entry may or may not have been stored. This retry is safe and stores it once:\n${repetition(session_id, options, idempotency_key)}`
      : 'Nothing was stored: no connection was made.'
  try {
    return await append({ idempotency_key, if_match: options.ifMatch, signal: abort.signal })
  } catch (error) {
    if (abort.signal.aborted) {
      process.stderr.write(`annals: interrupted. ${outcome()}\n`)
      process.exit(EXIT_CODES.interrupted)
    }
    const isUnknown = error instanceof AnnalsError && (error.status === 0 || error.status >= 500)
    if (!isUnknown || error.error === 'invalid_request') throw error
    throw new Refusal('unavailable', `${error.message} ${outcome()}`, { cause: error })
  } finally {
    end()
  }
}

/** The same command with its idempotency key, without a given token, which is secret. */
function repetition(session_id: string, options: Options, key: string): string {
  const { type, format, data, ifMatch, url, profile, token } = options
  const given: [string, string | undefined][] = [
    ['--type', type],
    ['--format', format],
    ['--data', data],
    ['--key', options.key],
    ['--occurred-at', options.occurredAt],
    ['--if-match', ifMatch?.toString()],
    ['--url', url],
    ['--profile', profile],
    ['--token', token && 'TOKEN'],
    ['--idempotency-key', key],
  ]
  const words = given.flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
  return commandLine(['append', session_id, ...words])
}
