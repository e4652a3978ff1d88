import { Command } from 'commander'
import { parseObject, parseSeq, parseSession, parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'

interface ForkOptions {
  upTo?: number
  user?: string
  configs?: Record<string, unknown>
  id?: string
}

/** annals fork */
export function forkCommand(): Command {
  const command = new Command('fork')
    .description('Copy a session with its log, or with the beginning of it.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .option('--up-to <seq>', 'the last entry that the fork has; by default it has all', parseSeq)
    .option('--user <identifier>', 'owner, created if new; by default that of the session')
    .option(
      '--configs <object>',
      "a JSON object, or pairs such as agent=refunds; by default the session's",
      parseObject,
    )
    .option(
      '--id <uuid>',
      'an id of your choice; repeating it with the same values returns the existing fork',
      parseUuid,
    )
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals fork 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --up-to 12')
    .action(async (session: string, options: ForkOptions & ConnectionOptions) => {
      const { upTo, user, configs, id } = options
      const { annals, output } = await connect(options, 5)
      const fork = { up_to_seq: upTo, user, configs, use_uuid: id }
      const { new_session_id } = await annals.sessions.fork(await findSession(annals, session), fork, {
        timeout_ms: 600_000,
      })
      if (output.json) output.value(await annals.sessions.get(new_session_id))
      else output.lines([`Created session ${new_session_id}.`])
    })
}
