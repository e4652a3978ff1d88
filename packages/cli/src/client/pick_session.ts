import { type Annals, AnnalsError as Refusal, type Session } from '@annals/client'
import { AnnalsError } from '@annals/kits/errors.js'
import { parseId } from '@annals/kits/ids.js'
import { writeJson } from '@annals/messages/json'
import { type Command, Option } from 'commander'
import { UsageError } from '../run_command.js'
import { commandLine } from '../terminal/command_name.js'
import { countOf } from '../terminal/count.js'
import { parseObject, parseSession } from './arguments.js'
import { knownUsers } from './user_names.js'

/** Most similar names to suggest for an unknown user. */
const ALIKE_MAX = 3

/** The chosen session: by its id, or the newest of a user or with certain configs. */
export interface SessionChoice {
  user?: string
  configs?: Record<string, unknown>
}

/** Adds the argument and the options that choose a session. */
export function withSessionChoice(command: Command): Command {
  return withFilter(
    command.argument(
      '[session]',
      "the session's id, or its beginning (default: the newest that matches)",
      parseSession,
    ),
  )
}

/** Adds the options that filter sessions. */
export function withFilter(command: Command): Command {
  return command
    .option('--user <identifier>', 'only of this user')
    .addOption(
      new Option(
        '--configs <filter>',
        'only those whose configs contain this: a JSON object, or pairs such as agent=refunds,outcome=failed',
      ).argParser(parseObject),
    )
}

/** The chosen session. @throws AnnalsError, not found, if there is none */
export async function pickSession(
  annals: Annals,
  session_id: string | undefined,
  { user, configs }: SessionChoice,
): Promise<Session> {
  if (session_id !== undefined) {
    if (user !== undefined || configs !== undefined)
      throw new UsageError('Pass a session or a filter (--user, --configs), not both.')
    return annals.sessions.get(await findSession(annals, session_id))
  }
  const query = { user, filter_by_configs: configs, time_desc: true, limit: 1 }
  const { items } = await annals.sessions.list(query).page()
  if (!items[0]) throw await noneFits(annals, user, configs)
  return items[0]
}

/** Explains which part of the choice has no match, and which command lists what exists. */
export async function noneFits(
  annals: Annals,
  user: string | undefined,
  configs: Record<string, unknown> | undefined,
): Promise<AnnalsError> {
  const that = configs && `configs that contain ${writeJson(configs)}`
  if (user === undefined) {
    const all = commandLine(['sessions', 'list'])
    const sentence = that ? `No session has ${that}: see \`${all}\`.` : 'There are no sessions.'
    return new AnnalsError('session_not_found', sentence)
  }
  try {
    const { sessions_count } = (await annals.users.resources(user)).counts
    const count = countOf(sessions_count, 'sessions')
    if (!that || sessions_count === 0) return new AnnalsError('session_not_found', `${user} has no session.`)
    const sessions = commandLine(['sessions', 'list', '--user', user])
    return new AnnalsError(
      'session_not_found',
      `${user} has ${count}, and none has ${that}: see \`${sessions}\`.`,
    )
  } catch (error) {
    if (!(error instanceof Refusal) || error.error !== 'user_not_found') throw error
    return new AnnalsError('user_not_found', `There is no user ${user}: ${await hintAt(annals, user)}`)
  }
}

/** Users with similar names, or the command that lists all. */
async function hintAt(annals: Annals, user: string): Promise<string> {
  const names = [...(await knownUsers(annals)).values()]
  const alike = names.filter((name) => name.toLowerCase().includes(user.toLowerCase())).slice(0, ALIKE_MAX)
  return alike.length > 0 ? `is it ${alike.join(' or ')}?` : `see \`${commandLine(['users', 'list'])}\`.`
}

/** Most sessions to name where several ids begin with what was given. */
const CANDIDATES_MAX = 5

/**
 * The id of a session, given it or its beginning.
 * @throws AnnalsError session_not_found, UsageError if several ids begin so
 */
export async function findSession(annals: Annals, given: string): Promise<string> {
  const id = parseId(given)
  if (id !== undefined) return id
  const { items } = await annals.sessions.list({ id_prefix: given, limit: CANDIDATES_MAX + 1 }).page()
  const [session] = items
  if (!session)
    throw new AnnalsError(
      'session_not_found',
      `No session has an id that begins with ${given}: see \`annals sessions list\`.`,
    )
  if (items.length === 1) return session.id
  const candidates = items.slice(0, CANDIDATES_MAX).map(({ id }) => `\n  ${id}`)
  const more = items.length > CANDIDATES_MAX ? '\n  and more' : ''
  throw new UsageError(`Several sessions begin with ${given}:${candidates.join('')}${more}`)
}
