import type { NewCompaction } from '@annals/client'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { parseSeq, parseSession, parseUuid, readSource } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'

interface CompactOptions extends ConnectionOptions {
  to: number
  from?: number
  except?: string[]
  summary: string
  by?: string
  model?: string
}

/** annals compact */
export function compactCommand(): Command {
  const command = new Command('compact')
    .description('Replace the beginning of a session with a summary in contexts; the log stays whole.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .requiredOption('--to <seq>', 'the last entry that the summary stands for', parseSeq)
    .requiredOption('--summary <text>', 'the summary: a text, @file, or - for stdin')
    .option('--from <seq>', 'the first one (default: the first of the session)', parseSeq)
    .option('--except <id>', 'a message to keep whole; may be repeated', (id: string, ids: string[] = []) => [
      ...ids,
      parseUuid(id),
    ])
    .option('--by <name>', 'who wrote the summary')
    .option('--model <name>', 'the model that wrote it')
  return withService(command)
    .addHelpText(
      'after',
      '\nExample:\n  annals compact 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --to 40 --summary @summary.txt',
    )
    .action(async (session: string, options: CompactOptions) => {
      const content = (await readSource(options.summary)).trim()
      if (content === '')
        throw new UsageError('--summary is empty. Write a text, or name a file that has one.')
      const { to, from, except, by, model } = options
      const compaction: NewCompaction = {
        to_seq: to,
        summary: { blob: { role: 'user', content } },
        ...(from !== undefined && { from_seq: from }),
        ...(except && { except }),
        ...(by !== undefined && { by }),
        ...(model !== undefined && { model }),
      }
      const { annals, output } = await connect(options)
      const event = await annals.sessions.compact(await findSession(annals, session), compaction)
      const { entries, from_seq, to_seq } = event.data as Record<string, unknown>
      output.outcome(
        event,
        `The summary at seq ${event.seq} stands for ${entries === 1 ? '1 entry' : `${entries} entries`}, seq ${from_seq} to ${to_seq}. To take it back: annals retract ${event.session_id} ${event.id}`,
      )
    })
}
