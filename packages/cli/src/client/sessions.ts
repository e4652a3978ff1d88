import type { Session } from '@annals/client'
import { Command, Option } from 'commander'
import { confirm } from '../terminal/ask.js'
import { tell } from '../terminal/output.js'
import { parseObject, parseParent, parseSeconds, parseSession, parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withConnection, withService } from './connection.js'
import { openConsole, type WebOption, withWeb } from './open_console.js'
import { findSession, noneFits, type SessionChoice, withFilter } from './pick_session.js'
import { isLong, type ListOptions, pageQuery, printList, withLimit } from './print_list.js'
import { knownUsers, userNames } from './user_names.js'

/** annals sessions list|create|delete */
export function sessionsCommand(): Command {
  return new Command('sessions')
    .description('List, create and delete sessions.')
    .addCommand(listCommand())
    .addCommand(createCommand())
    .addCommand(deleteCommand())
}

type Order = 'created-at' | 'last-activity'

interface Chosen extends SessionChoice, WebOption {
  sort?: Order
  /** The name of `sort` before. */
  orderBy?: Order
  parent?: string
}

function listCommand(): Command {
  const sort = new Option('--sort <order>', 'by when sessions were created (the default), or last changed')
  const orders: Order[] = ['created-at', 'last-activity']
  const command = withFilter(new Command('list').description('List sessions, newest first.'))
    .option(
      '--parent <session>',
      'only those directly below this session; none: only those without a parent',
      parseParent,
    )
    .addOption(sort.choices(orders))
    .addOption(new Option('--order-by <order>').choices(orders).conflicts('sort').hideHelp())
  return withService(withWeb(withLimit(command)))
    .addHelpText(
      'after',
      `
Examples:
  annals sessions list --user omar --configs outcome=failed
  annals sessions list --sort last-activity
  annals sessions list --configs '{"experiment":{"arm":"b"}}' --all --json | jq -r .id`,
    )
    .action(async (options: Chosen & ListOptions & ConnectionOptions) => {
      const { user, configs, sort, orderBy, parent: given } = options
      const connection = await connect(options)
      const { annals, output } = connection
      if (options.web)
        return openConsole(connection, '/sessions', { user, filter: configs && JSON.stringify(configs) })
      const parent = given === undefined || given === 'none' ? given : await findSession(annals, given)
      const list = annals.sessions.list({
        user,
        filter_by_configs: configs,
        parent,
        ...((sort ?? orderBy) === 'last-activity' && { order_by: 'last_activity' }),
        ...pageQuery(options),
      })
      const nameOf = output.json || user !== undefined ? () => user ?? '-' : await userNames(annals)
      const names = output.json && user === undefined ? await knownUsers(annals) : undefined
      const nothing = async () =>
        parent === undefined
          ? (await noneFits(annals, user, configs)).message
          : 'No session has such a parent.'
      const words = { unit: 'sessions', nothing } as const
      const { factsOf, sessionColumns } = await import('./session_columns.js')
      const { outcomes = {} } = await annals.key()
      const how = { counted: !isLong(options), width: output.width, words: outcomes }
      const columnsOf = (items: Session[]) => sessionColumns(annals, items, nameOf, how)
      const jsonOf = async (items: Session[]) => {
        const facts = await factsOf(annals, items, how)
        return items.map((session, index) => ({
          ...withUser(session, user ?? names?.get(session.user_id ?? '')),
          ...facts[index],
        }))
      }
      await printList(output, list, columnsOf, options, words, jsonOf)
    })
}

interface NewSessionOptions {
  id?: string
  parent?: string
  expiresIn?: number
}

function createCommand(): Command {
  const command = new Command('create')
    .description('Create a session.')
    .option('--user <identifier>', 'owner; created if new')
    .option('--configs <object>', 'a JSON object, or pairs such as agent=refunds,env=test', parseObject)
    .option('--parent <session>', 'the parent session, with which this one is deleted', parseSession)
    .option(
      '--expires-in <duration>',
      'delete it after this long without a change, such as 2h or 30d',
      parseSeconds,
    )
    .option(
      '--id <uuid>',
      'an id of your choice; repeating it with the same values returns the existing session',
      parseUuid,
    )
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals sessions create --user omar --configs agent=refunds,env=test')
    .action(async (options: SessionChoice & NewSessionOptions & ConnectionOptions) => {
      const { user, configs, parent, expiresIn, id } = options
      const { annals, output } = await connect(options, 5)
      const session = await annals.sessions.create({
        user,
        configs,
        parent: parent && (await findSession(annals, parent)),
        expires_in_s: expiresIn,
        use_uuid: id,
      })
      output.outcome(session, `Created session ${session.id}.`)
    })
}

function deleteCommand(): Command {
  const command = new Command('delete')
    .description('Delete a session and its log, and the sessions below it.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .option('--yes', 'skip the confirmation')
  return withConnection(command)
    .addHelpText('after', '\nExample:\n  annals sessions delete 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d')
    .action(async (session: string, options: { yes?: boolean } & ConnectionOptions) => {
      const { annals, url } = await connect(options, 5)
      const session_id = await findSession(annals, session)
      await annals.sessions.get(session_id)
      await confirm(
        `This deletes the session ${session_id} with its log, and the sessions below it, at ${url}.`,
        'delete',
        options.yes,
      )
      await annals.sessions.delete(session_id)
      tell(`Deleted session ${session_id}.`)
    })
}

/** The session's user, by identifier if known. */
function withUser(session: Session, user: string | undefined): Session & { user?: string } {
  return user === undefined ? session : { ...session, user }
}
