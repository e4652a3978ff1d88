import type { Annals, Session } from '@annals/client'
import { readPrices } from '@annals/kits/configuration/prices.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { type Prices, readPriceList, SessionCost } from '@annals/messages/session'
import { Command, Option } from 'commander'
import { UsageError } from '../run_command.js'
import type { Output } from '../terminal/output.js'
import { pairsOf } from '../terminal/pairs.js'
import { agoOf, clockOf, dayOf } from '../terminal/times.js'
import { visible, visibleLine } from '../terminal/visible.js'
import { parseCount } from './arguments.js'
import {
  type Connection,
  type ConnectionOptions,
  connect,
  withConnection,
  withService,
} from './connection.js'
import { openConsole, type WebOption, withWeb } from './open_console.js'
import { pickSession, type SessionChoice, withSessionChoice } from './pick_session.js'
import { userNames } from './user_names.js'

/** Which part of a session to show. */
export interface ShowOptions {
  fromSeq?: number
  last?: number
  kind?: 'message' | 'event'
  type?: string
  tools?: boolean
  tool?: number | string
  failed?: boolean
  full?: boolean
}

type Options = ShowOptions & WebOption & SessionChoice & ConnectionOptions

/** annals show */
export function showCommand(): Command {
  const command = withSessionChoice(
    new Command('show').description('Show a session in order, each tool call with its result.'),
  )
    .option('--tools', 'only the numbered tool calls, each with its result')
    .option('--tool <number or name>', 'only this tool call, in full, or all calls of this tool', parseTool)
    .option('--failed', 'only the tool calls that failed')
    .option('--from-seq <seq>', 'start at this entry', parseCount)
    .option('--last <count>', 'only the last entries', parseCount)
    .addOption(new Option('--kind <kind>', 'only entries of this kind').choices(['message', 'event']))
    .option('--type <type>', 'only events of this type')
    .option('--full', 'show everything, however long, and noise such as progress entry by entry')
  return withService(withWeb(command))
    .addHelpText(
      'after',
      `
With a price list in ANNALS_PRICES, it shows what the session's calls of models cost (docs/cli.md).

Examples:
  annals show 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d
  annals show --user omar --configs outcome=failed            omar's newest failed run
  annals show --user omar --configs outcome=failed --tool 3   its third tool call and the result`,
    )
    .action(showSession)
}

/** annals open */
export function openCommand(): Command {
  const command = new Command('open').description('Open a session in the console.')
  return withConnection(withSessionChoice(command))
    .addHelpText('after', '\nExample:\n  annals open --user omar --configs outcome=failed')
    .action((session_id: string | undefined, options: Options) =>
      showSession(session_id, { ...options, web: true }),
    )
}

/** Prints a session, or what of it is asked for; `session_id` undefined: the newest that the options choose. */
export async function showSession(session_id: string | undefined, options: Options): Promise<void> {
  const prices = options.web ? undefined : await givenPrices()
  const connection = await connect(options)
  const { annals, output } = connection
  const session = await pickSession(annals, session_id, options)
  if (options.web)
    return openConsole(connection, `/sessions/${session.id}`, { seq: options.fromSeq?.toString() })
  await output.paged(() => printSession(connection, session, { ...options, prices }))
}

async function printSession(
  { annals, output }: Connection,
  session: Session,
  options: Options & { prices: Prices | undefined },
): Promise<void> {
  const { lastItems, printCalls, printEntries } = await import('../timeline/print_timeline.js')
  if (options.tools || options.failed || options.tool !== undefined) {
    if (!output.json) await printHead(annals, session, options, output)
    const { shown, all } = await printCalls(annals, session.id, options, output)
    if (options.tool !== undefined && shown === 0)
      throw new AnnalsError(
        'message_not_found',
        `Session ${session.id} has ${all === 0 ? 'no tool calls' : `${all} tool call${all === 1 ? '' : 's'}, and no ${options.failed ? 'failed ' : ''}call ${typeof options.tool === 'string' ? 'of ' : ''}${options.tool}`}.`,
      )
    return
  }
  if (!output.json) await printHead(annals, session, options, output)
  const { fromSeq } = options
  try {
    await printEntries(annals, session.id, options, output)
  } catch (error) {
    if ((error as { error?: string }).error !== 'seq_ahead') throw error
    // The service takes the seq for one that was read, and so for a log that has lost its end since.
    const [last] = await lastItems(annals, session.id, 1, {})
    const what = last ? `ends at entry ${last.seq}` : 'has no entries'
    throw new AnnalsError(
      'entry_not_found',
      `Session ${session.id} ${what}; there is no entry ${fromSeq} yet.`,
    )
  }
}

async function printHead(
  annals: Annals,
  session: Session,
  { user, prices }: { user?: string | undefined; prices: Prices | undefined },
  { lines, paint }: Output,
): Promise<void> {
  const { id, user_id, configs, created_at, updated_at } = session
  const name = user ?? (user_id === null ? '-' : (await userNames(annals))(user_id))
  const cost = prices && (await costOf(annals, id, prices))
  const { outcomeText, readBounds } = await import('./session_columns.js')
  const [{ title, ...bounds }, { outcomes = {} }] = await Promise.all([
    readBounds(annals, session),
    annals.key(),
  ])
  const { began_at, ended_at } = bounds
  const at = began_at ?? created_at
  const when = `${dayOf(at)} ${clockOf(at)} (${agoOf(at)}), last entry ${agoOf(ended_at ?? updated_at)}`
  const outcome = outcomeText(configs, outcomes)
  lines([
    `${paint('dim', 'session')}  ${paint('cyan', id)}`,
    ...(title === undefined ? [] : [`${paint('dim', 'title  ')}  ${visibleLine(title)}`]),
    `${paint('dim', 'user   ')}  ${visible(name)}`,
    `${paint('dim', began_at ? 'began  ' : 'created')}  ${when}`,
    ...(outcome === '' ? [] : [`${paint('dim', 'outcome')}  ${visibleLine(outcome)}`]),
    `${paint('dim', 'configs')}  ${visible(pairsOf(configs))}`,
    ...(cost === undefined ? [] : [`${paint('dim', 'cost   ')}  ${cost}`]),
    '',
  ])
}

/** The price list of ANNALS_PRICES. @throws UsageError that names the place */
async function givenPrices(): Promise<Prices | undefined> {
  const list = await readPrices(process.env.ANNALS_PRICES).catch((error: Error) => {
    throw new UsageError(error.message)
  })
  return list === undefined ? undefined : readPriceList(list)
}

/** Reads the whole log, however little of it is shown. */
async function costOf(annals: Annals, session_id: string, prices: Prices): Promise<string | undefined> {
  const cost = new SessionCost(prices)
  for await (const item of annals.sessions.timeline(session_id, { limit: 200 })) cost.add(item)
  return cost.text()
}

/** The number of a call, or the name of a tool. */
function parseTool(text: string): number | string {
  return /^\d+$/.test(text) ? parseCount(text) : text
}
