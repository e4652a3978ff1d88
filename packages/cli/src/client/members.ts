import type { Annals, Member } from '@annals/client'
import { Argument, Command } from 'commander'
import { UsageError } from '../run_command.js'
import { confirm } from '../terminal/ask.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { type ConnectionOptions, connect, withService } from './connection.js'

const ROLES = ['viewer', 'member', 'admin'] as const
type Role = (typeof ROLES)[number]

const role = () =>
  new Argument(
    '<role>',
    'viewer: reads; member: also writes; admin: also erases, and manages people',
  ).choices(ROLES)

/** annals members list|add|role|remove */
export function membersCommand(): Command {
  return new Command('members')
    .description('People in the project and their roles, for an admin or a key with the scope `admin`.')
    .addCommand(listCommand())
    .addCommand(addCommand())
    .addCommand(roleCommand())
    .addCommand(removeCommand())
}

function listCommand(): Command {
  return withService(new Command('list').description('List members.'))
    .addHelpText('after', '\nExample:\n  annals members list')
    .action(async (options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const members = await annals.members.list()
      const { tableLines } = await import('../terminal/table.js')
      if (output.json) for (const member of members) output.value(member)
      else if (members.length === 0) output.lines(['There are no members. Keys open the project.'])
      else output.lines(tableLines(COLUMNS, members, output.width, output.paint))
    })
}

function addCommand(): Command {
  return withService(
    new Command('add').description('Invite a person by e-mail address.').argument('<address>'),
  )
    .addArgument(role())
    .addHelpText(
      'after',
      `
Whoever first signs in with this address, which the issuer must have verified, becomes the member. Nothing is sent.

Example:
  annals members add ada@example.com member`,
    )
    .action(async (email: string, role: Role, options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const member = await annals.members.invite({ email, role })
      output.outcome(member, `Invited ${member.email} as ${role}.`)
    })
}

function roleCommand(): Command {
  return withService(
    new Command('role').description("Change a member's role.").argument('<member>', 'address or id'),
  )
    .addArgument(role())
    .addHelpText('after', '\nExample:\n  annals members role ada@example.com viewer')
    .action(async (name: string, role: Role, options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const member = await annals.members.change((await memberOf(annals, name)).id, role)
      output.outcome(member, `${member.email} is ${member.role} within 5 seconds.`)
    })
}

function removeCommand(): Command {
  return withService(
    new Command('remove')
      .description('Remove a member, and end their console sessions and personal tokens.')
      .argument('<member>', 'address or id')
      .option('-y, --yes', 'do not ask for confirmation'),
  )
    .addHelpText('after', '\nExample:\n  annals members remove ada@example.com')
    .action(async (name: string, options: { yes?: boolean } & ConnectionOptions) => {
      const { annals, url, output } = await connect(options)
      const member = await memberOf(annals, name)
      await confirm(`This removes ${member.email} from the project at ${url}.`, member.email, options.yes)
      await annals.members.remove(member.id)
      output.outcome(member, `Removed ${member.email}.`)
    })
}

/** @throws UsageError */
async function memberOf(annals: Annals, name: string): Promise<Member> {
  const wanted = name.toLowerCase()
  const found = (await annals.members.list()).find(({ id, email }) => id === wanted || email === wanted)
  if (!found) throw new UsageError(`No member has the address or id ${name}: see \`annals members list\`.`)
  return found
}

const COLUMNS: Column<Member>[] = [
  { title: 'address', text: ({ email }) => email, shrinks: true, style: 'cyan' },
  { title: 'role', text: ({ role }) => role ?? 'none' },
  {
    title: 'state',
    text: ({ has_signed_in, is_from_group }) =>
      is_from_group ? 'by a group' : has_signed_in ? 'signed in' : 'invited',
  },
  { title: 'added', text: ({ created_at }) => agoOf(created_at) },
  { title: 'id', text: ({ id }) => id, style: 'dim' },
]
