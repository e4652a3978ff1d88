import { Command, InvalidArgumentError } from 'commander'
import { RATE_LIMIT_MAX, RETENTION_DAYS_MAX } from '../limits.js'
import {
  changeProject,
  createProject,
  findProject,
  listProjects,
  type ProjectSettings,
} from '../resources/projects.js'
import { withDatabase } from './with_database.js'

const COLUMNS = ['name', 'id', 'created_at', 'retention_days', 'rate_limit_per_second']

/** annals project create|list|set */
export function projectCommand(): Command {
  return new Command('project')
    .description('Projects: each is a tenant with its own sessions, users and API keys.')
    .addCommand(
      new Command('create')
        .description('Create a project and its first API key, which is shown only once.')
        .argument('<name>', 'a unique name')
        .option('--json', 'print JSON')
        .addHelpText('after', '\nExample:\n  annals project create checkout-agent')
        .action(async (name: string, options: { json?: boolean }) => {
          const { json, token } = await withDatabase((database) => createProject(database, name))
          if (options.json) process.stdout.write(`{"project":${json},"token":"${token}"}\n`)
          else
            process.stdout.write(
              `Created project ${name} (${JSON.parse(json).id}).\nAPI key (shown only once): ${token}\n`,
            )
        }),
    )
    .addCommand(
      new Command('list')
        .description('List all projects.')
        .option('--json', 'print JSON')
        .addHelpText('after', '\nExample:\n  annals project list --json')
        .action(async (options: { json?: boolean }) => {
          const projects = await withDatabase(listProjects)
          if (options.json) process.stdout.write(`[${projects.join(',')}]\n`)
          else await printProjects(projects)
        }),
    )
    .addCommand(setCommand())
}

function setCommand(): Command {
  return new Command('set')
    .description('Change settings of a project. Options you leave out keep their values.')
    .argument('<name or id>', 'the project')
    .option(
      '--retention-days <days>',
      'delete sessions not touched for this many days; `none` keeps them forever',
      parseDays,
    )
    .option(
      '--rate-limit <requests a second>',
      'limit for each of its keys on each node; `none` removes it, `default` is ANNALS_RATE_LIMIT_PER_SECOND',
      parseLimit,
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The service deletes expired sessions in the background, every ANNALS_RETENTION_MS. To see beforehand what would be
deleted, run \`annals prune --dry-run\`.

Example:
  annals project set checkout-agent --retention-days 90`,
    )
    .action(
      async (
        name: string,
        options: { retentionDays?: number | 'none'; rateLimit?: number | 'default'; json?: boolean },
        command: Command,
      ) => {
        const settings: ProjectSettings = {}
        if (options.retentionDays !== undefined)
          settings.retention_days = options.retentionDays === 'none' ? null : options.retentionDays
        if (options.rateLimit !== undefined)
          settings.rate_limit_per_second = options.rateLimit === 'default' ? null : options.rateLimit
        if (Object.keys(settings).length === 0)
          command.error('annals: nothing to set. Name a setting, such as --retention-days 90.')
        const json = await withDatabase(async (database) =>
          changeProject(database, await findProject(database, name), settings),
        )
        if (options.json) process.stdout.write(`${json}\n`)
        else await printProjects([json])
      },
    )
}

function parseDays(text: string): number | 'none' {
  if (text === 'none') return 'none'
  const days = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > RETENTION_DAYS_MAX)
    throw new InvalidArgumentError(`It must be a number of days from 1 to ${RETENTION_DAYS_MAX}, or none.`)
  return days
}

function parseLimit(text: string): number | 'default' {
  if (text === 'default') return text
  const limit = text === 'none' ? 0 : /^\d{1,7}$/.test(text) ? Number(text) : -1
  if ((limit < 1 && text !== 'none') || limit > RATE_LIMIT_MAX)
    throw new InvalidArgumentError(`It must be a number from 1 to ${RATE_LIMIT_MAX}, none, or default.`)
  return limit
}

async function printProjects(projects: string[]): Promise<void> {
  const { printTable } = await import('./terminal/table.js')
  printTable(COLUMNS, projects)
}
