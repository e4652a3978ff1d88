import type { Annals, Session } from '@annals/client'
import { type Command, Option } from 'commander'
import { notFound } from '../../errors.js'
import { UsageError } from '../run_command.js'
import { parseObject, parseUuid } from './arguments.js'

/** Which session is meant: by its id, or the newest of a user or with certain configs. */
export interface SessionChoice {
  user?: string
  configs?: Record<string, unknown>
}

/** Adds the argument and the options that choose a session. */
export function withSessionChoice(command: Command): Command {
  return withFilter(
    command.argument('[session]', "the session's id; without it the newest that fits is taken", parseUuid),
  )
}

/** Adds the options that filter sessions. */
export function withFilter(command: Command): Command {
  return command
    .option('--user <identifier>', 'of this user')
    .addOption(
      new Option(
        '--configs <filter>',
        'whose configs contain this: a JSON object, or pairs such as agent=refunds,outcome=failed',
      ).argParser(parseObject),
    )
}

/** The session that is meant. @throws AnnalsError, not found, if there is none */
export async function pickSession(
  annals: Annals,
  session_id: string | undefined,
  { user, configs }: SessionChoice,
): Promise<Session> {
  if (session_id !== undefined) {
    if (user !== undefined || configs !== undefined)
      throw new UsageError('Give a session or a filter (--user, --configs), not both.')
    return annals.sessions.get(session_id)
  }
  const query = { user, filter_by_configs: configs, time_desc: true, limit: 1 }
  const { items } = await annals.sessions.list(query).page()
  if (!items[0]) throw notFound('session')
  return items[0]
}
