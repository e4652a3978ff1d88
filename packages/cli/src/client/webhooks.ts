import type { Annals, Webhook } from '@annals/client'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { confirm } from '../terminal/ask.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { type ConnectionOptions, connect, withService } from './connection.js'

/** annals webhooks list|create|delete */
export function webhooksCommand(): Command {
  return new Command('webhooks')
    .description('Manage the URLs to which new entries, requests and input are posted.')
    .addCommand(listCommand())
    .addCommand(createCommand())
    .addCommand(deleteCommand())
}

function listCommand(): Command {
  return withService(
    new Command('list').description(
      'List webhooks with their waiting and abandoned deliveries and the last error.',
    ),
  )
    .addHelpText('after', '\nExample:\n  annals webhooks list')
    .action(async (options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const webhooks = await annals.webhooks.list()
      const { tableLines } = await import('../terminal/table.js')
      if (output.json) for (const webhook of webhooks) output.value(webhook)
      else if (webhooks.length === 0)
        output.lines(['There are no webhooks. `annals webhooks create` creates one.'])
      else output.lines(tableLines(COLUMNS, webhooks, output.width, output.paint))
    })
}

function createCommand(): Command {
  const command = new Command('create')
    .description('Create a webhook, and show its secret this one time.')
    .argument('<url>', 'where deliveries are posted to')
    .requiredOption(
      '--events <list>',
      'what is sent: message, event, event.<type>, request.opened, input.added',
      (list: string) => list.split(',').map((event) => event.trim()),
    )
    .option('--secret <secret>', 'a secret of your own, as Standard Webhooks has it: whsec_…')
  return withService(command)
    .addHelpText(
      'after',
      `
Entries stored from now on are sent, at least once, in order within a session. Only the secret is printed on stdout.

Example:
  annals webhooks create https://agents.example.com/hook --events message,event.tool_call`,
    )
    .action(async (url: string, options: { events: string[]; secret?: string } & ConnectionOptions) => {
      const { events, secret, ...service } = options
      const { annals, output } = await connect(service)
      const webhook = await annals.webhooks.create({ url, events, ...(secret && { secret }) })
      output.outcome(webhook, webhook.secret)
    })
}

function deleteCommand(): Command {
  const command = new Command('delete')
    .description('Delete a webhook and its undelivered entries.')
    .argument('<webhook>', 'id or URL')
    .option('-y, --yes', 'do not ask for confirmation')
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals webhooks delete https://agents.example.com/hook')
    .action(async (name: string, options: { yes?: boolean } & ConnectionOptions) => {
      const { annals, url, output } = await connect(options)
      const webhook = await webhookOf(annals, name)
      await confirm(`This deletes the webhook to ${webhook.url} at ${url}.`, webhook.url, options.yes)
      await annals.webhooks.delete(webhook.id)
      output.outcome(webhook, `Deleted the webhook to ${webhook.url}.`)
    })
}

/** @throws UsageError */
async function webhookOf(annals: Annals, name: string): Promise<Webhook> {
  const found = (await annals.webhooks.list()).filter(({ id, url }) => id === name || url === name)
  if (found.length === 1) return found[0]!
  const what = found.length === 0 ? 'No webhook has' : 'Several webhooks have'
  throw new UsageError(`${what} the id or URL ${name}: see \`annals webhooks list\`.`)
}

const COLUMNS: Column<Webhook>[] = [
  { title: 'url', text: ({ url }) => url, shrinks: true, style: 'cyan' },
  { title: 'events', text: ({ events }) => events.join(', '), shrinks: true },
  { title: 'waiting', text: ({ waiting_sessions }) => String(waiting_sessions) },
  { title: 'given up', text: ({ given_up }) => String(given_up) },
  {
    title: 'last error',
    text: ({ last_error, last_error_at }) =>
      last_error === null ? '' : `${last_error_at ? `${agoOf(last_error_at)}: ` : ''}${last_error}`,
    shrinks: true,
    style: 'red',
  },
  { title: 'id', text: ({ id }) => id, style: 'dim' },
]
