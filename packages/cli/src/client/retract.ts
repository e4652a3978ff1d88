import type { Retraction } from '@annals/client'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { parseCount, parseSeq, parseSession, parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'

interface RetractOptions extends ConnectionOptions {
  last?: number
  after?: number
}

/** annals retract */
export function retractCommand(): Command {
  const command = new Command('retract')
    .description('Retract entries of a session: messages and contexts omit them; nothing is deleted.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .argument('[entries...]', 'their ids', (id: string, ids: string[] = []) => [...ids, parseUuid(id)])
    .option('--last <count>', 'this many of the newest entries instead', parseCount)
    .option('--after <seq>', 'all after this one instead', parseSeq)
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals retract 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --last 1')
    .action(async (session: string, ids: string[] | undefined, options: RetractOptions) => {
      const which = whichOf(ids ?? [], options)
      const { annals, output } = await connect(options)
      const retracted = await annals.sessions.retract(await findSession(annals, session), which)
      const seqs = retracted.items.map(({ seq }) => seq).join(', ')
      const { seq } = retracted.retraction
      output.outcome(
        retracted,
        seqs === '' ? 'There was nothing to retract.' : `Retracted seq ${seqs}, by the event at seq ${seq}.`,
      )
    })
}

function whichOf(ids: string[], { last, after }: RetractOptions): Retraction {
  const given = [
    ids.length > 0 && { ids },
    last !== undefined && { last },
    after !== undefined && { after_seq: after },
  ]
  const [which, ...more] = given.filter((one) => one !== false)
  if (!which || more.length > 0)
    throw new UsageError('Name the entries by their ids, or with --last or --after.')
  return which
}
