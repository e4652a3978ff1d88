import type { LearningSpace } from '@annals/client'
import { Command } from 'commander'
import { confirm } from '../terminal/ask.js'
import { tell } from '../terminal/output.js'
import { pairsOf } from '../terminal/pairs.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { visible, visibleLine } from '../terminal/visible.js'
import { parseObject, parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withConnection, withService } from './connection.js'
import { learningCommands } from './learn.js'
import { openConsole, type WebOption, withWeb } from './open_console.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'
import { userNames } from './user_names.js'

type Fields = { user?: string; meta?: Record<string, unknown> }

/** annals spaces list|create|show|delete|learn|statements|approve|reject|skills|policy */
export function spacesCommand(): Command {
  const command = new Command('spaces')
    .description('Work with learning spaces of the project or of a user.')
    .addCommand(listCommand())
    .addCommand(createCommand())
    .addCommand(showCommand())
    .addCommand(deleteCommand())
  for (const learning of learningCommands()) command.addCommand(learning)
  return command
}

function listCommand(): Command {
  const command = new Command('list')
    .description('List learning spaces, newest first.')
    .option('--user <identifier>', 'only of this user')
    .option(
      '--meta <filter>',
      'only those whose meta contains this: a JSON object, or pairs such as topic=refunds',
      parseObject,
    )
  return withService(withLimit(command))
    .addHelpText('after', '\nExample:\n  annals spaces list --user omar --meta topic=refunds')
    .action(async (options: Fields & ListOptions & ConnectionOptions) => {
      const { user, meta } = options
      const { annals, output } = await connect(options)
      const list = annals.learningSpaces.list({ user, filter_by_meta: meta, ...pageQuery(options) })
      const nameOf = output.json || user !== undefined ? () => user ?? '-' : await userNames(annals)
      const nothing = () =>
        user === undefined && meta === undefined ? 'There are no learning spaces.' : 'None fits.'
      await printList(output, list, () => spaceColumns(nameOf), options, { unit: 'spaces', nothing })
    })
}

function createCommand(): Command {
  const command = new Command('create')
    .description('Create a learning space, for a user or for the project.')
    .option('--user <identifier>', 'owner; created if new')
    .option('--meta <object>', 'a JSON object, or pairs such as topic=refunds', parseObject)
    .option('--idempotency-key <key>', 'makes repeating the command safe')
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals spaces create --user omar --meta topic=refunds')
    .action(async (options: Fields & { idempotencyKey?: string } & ConnectionOptions) => {
      const { user, meta, idempotencyKey } = options
      const { annals, output } = await connect(options, 5)
      const space = await annals.learningSpaces.create({ user, meta }, { idempotency_key: idempotencyKey })
      output.outcome(space, `Created learning space ${space.id}.`)
    })
}

function showCommand(): Command {
  const command = new Command('show')
    .description('Show a learning space and its meta.')
    .argument('<space>', "the learning space's id", parseUuid)
  return withService(withWeb(command))
    .addHelpText('after', '\nExample:\n  annals spaces show 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d')
    .action(async (space_id: string, options: ConnectionOptions & WebOption) => {
      const connection = await connect(options)
      const { annals, output } = connection
      if (options.web) return openConsole(connection, `/spaces/${space_id}`)
      const space = await annals.learningSpaces.get(space_id)
      if (output.json) return output.value(space)
      const nameOf = await userNames(annals)
      const { paint } = output
      output.lines([
        `${paint('dim', 'space  ')} ${paint('cyan', space.id)}`,
        `${paint('dim', 'name   ')} ${visibleLine(nameOfSpace(space.meta) || '-')}`,
        `${paint('dim', 'user   ')} ${visible(nameOf(space.user_id))}`,
        `${paint('dim', 'created')} ${agoOf(space.created_at)}, changed ${agoOf(space.updated_at)}`,
        '',
        visible(JSON.stringify(space.meta, null, 2)),
      ])
    })
}

function deleteCommand(): Command {
  const command = new Command('delete')
    .description('Delete a learning space.')
    .argument('<space>', "the learning space's id", parseUuid)
    .option('--yes', 'skip the confirmation')
  return withConnection(command)
    .addHelpText('after', '\nExample:\n  annals spaces delete 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --yes')
    .action(async (space_id: string, options: { yes?: boolean } & ConnectionOptions) => {
      const { annals, url } = await connect(options, 5)
      await annals.learningSpaces.get(space_id)
      await confirm(`This deletes the learning space at ${url}.`, 'delete', options.yes)
      await annals.learningSpaces.delete(space_id)
      tell(`Deleted learning space ${space_id}.`)
    })
}

/** What its meta calls a space, as in the console. */
function nameOfSpace({ name, title, topic }: Record<string, unknown>): string {
  return ([name, title, topic].find((text) => typeof text === 'string' && text.trim() !== '') as string) ?? ''
}

function spaceColumns(nameOf: (user_id: string | null) => string): Column<LearningSpace>[] {
  return [
    { title: 'learning space', text: ({ id }) => id, style: 'cyan' },
    { title: 'name', text: ({ meta }) => visibleLine(nameOfSpace(meta)), shrinks: true },
    { title: 'user', text: ({ user_id }) => nameOf(user_id), shrinks: true },
    { title: 'created', text: ({ created_at }) => agoOf(created_at) },
    { title: 'changed', text: ({ updated_at }) => agoOf(updated_at), from_width: 110 },
    { title: 'meta', text: ({ meta }) => pairsOf(meta), shrinks: true },
  ]
}
