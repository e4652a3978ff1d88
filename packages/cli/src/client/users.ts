import type { User } from '@annals/client'
import { Command } from 'commander'
import { runLongWork } from '../database/with_database.js'
import { confirm } from '../terminal/ask.js'
import { countOf } from '../terminal/count.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'

const IN_PART =
  'The service finishes the step in progress. Run the same command again to erase the rest, or to see that the user is gone.'

/** annals users list|show|erase */
export function usersCommand(): Command {
  return new Command('users')
    .description('List, show and erase users. A user is created when first named.')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(eraseCommand())
}

function listCommand(): Command {
  return withService(withLimit(new Command('list').description('List users, newest first.')))
    .addHelpText('after', '\nExample:\n  annals users list --all --json | jq -r .identifier')
    .action(async (options: ListOptions & ConnectionOptions) => {
      const { annals, output } = await connect(options)
      await printList(output, annals.users.list(pageQuery(options)), () => USER_COLUMNS, options, {
        unit: 'users',
        nothing: () => 'There are no users.',
      })
    })
}

function showCommand(): Command {
  const command = new Command('show')
    .description('Show how many sessions and learning spaces a user has.')
    .argument('<identifier>', "the user's identifier")
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals users show omar')
    .action(async (identifier: string, options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const resources = await annals.users.resources(identifier)
      output.outcome(resources, countsOf(resources.counts))
    })
}

function eraseCommand(): Command {
  const command = new Command('erase')
    .description('Erase a user with all sessions, logs and learning spaces.')
    .argument('<identifier>', "the user's identifier")
    .option('--yes', 'skip the confirmation')
  return withService(command)
    .addHelpText(
      'after',
      `
This cannot be undone. Save the user's data first with \`annals export --user\`.
If it is interrupted, run the same command again to continue.

Example:
  annals users erase omar`,
    )
    .action(async (identifier: string, options: { yes?: boolean } & ConnectionOptions) => {
      const { annals, url, output } = await connect(options)
      const { counts } = await annals.users.resources(identifier)
      const what = `This erases ${identifier} with ${countsOf(counts)} at ${url}.`
      await confirm(what, identifier, options.yes)
      const work = async (signal: AbortSignal) => {
        const { eraseUser } = await import('./erase_user.js')
        const erased = await eraseUser(annals, identifier, counts.sessions_count, signal)
        const { sessions, entries, learning_spaces } = erased.deleted
        output.outcome(
          erased,
          `Erased ${countOf(sessions, 'sessions')} with ${countOf(entries, 'entries')}, and ${countOf(learning_spaces, 'learning spaces')}.`,
        )
      }
      await runLongWork(work, IN_PART)
    })
}

const USER_COLUMNS: Column<User>[] = [
  { title: 'user', text: ({ identifier }) => identifier, shrinks: true, style: 'cyan' },
  { title: 'created', text: ({ created_at }) => agoOf(created_at) },
  { title: 'id', text: ({ id }) => id, style: 'dim' },
]

function countsOf(counts: { sessions_count: number; learning_spaces_count: number }): string {
  return `${countOf(counts.sessions_count, 'sessions')} and ${countOf(counts.learning_spaces_count, 'learning spaces')}`
}
