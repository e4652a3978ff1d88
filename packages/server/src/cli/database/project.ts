import { Command, InvalidArgumentError, Option } from 'commander'
import { QUOTA_MAX, RATE_LIMIT_MAX, RETENTION_DAYS_MAX } from '../../limits.js'
import type { ProjectSettings } from '../../projects/project_settings.js'
import { changeProject, createProject, findProject, listProjects } from '../../projects/projects.js'
import { operatorName, withDatabase } from './with_database.js'

const QUOTAS = ['max_sessions', 'max_bytes', 'max_blob_bytes', 'max_tails'] as const
const COLUMNS = ['name', 'id', 'created_at', 'retention_days', 'rate_limit_per_second', ...QUOTAS, 'search']

/** A project's settings, as the options give them. */
interface SettingOptions {
  retentionDays?: number | 'none'
  rateLimit?: number | 'default'
  maxSessions?: number | 'none'
  maxBytes?: number | 'none'
  maxBlobBytes?: number | 'none'
  maxTails?: number | 'none'
  search?: 'on' | 'off'
  json?: boolean
}

/** annals project create|list|set */
export function projectCommand(): Command {
  return new Command('project')
    .description('Projects: each is a tenant with its own sessions, users and API keys.')
    .addCommand(
      withSettings(new Command('create'))
        .description('Create a project and its first API key, which is shown only once.')
        .argument('<name>', 'a unique name')
        .option('--json', 'print JSON')
        .addHelpText('after', '\nExample:\n  annals project create checkout-agent')
        .action(async (name: string, options: SettingOptions) => {
          const { json, token } = await withDatabase((database) =>
            createProject(database, operatorName(), name, settingsOf(options)),
          )
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
  return withSettings(new Command('set'))
    .description('Change settings of a project. Options you leave out keep their values.')
    .argument('<name or id>', 'the project')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The service deletes expired sessions in the background, every ANNALS_RETENTION_MS. To see beforehand what would be
deleted, run \`annals prune --dry-run\`. A change takes effect within a few seconds at every node.

Examples:
  annals project set checkout-agent --retention-days 90
  annals project set checkout-agent --search on
  annals project set checkout-agent --max-sessions 100000 --max-bytes 10000000000`,
    )
    .action(async (name: string, options: SettingOptions, command: Command) => {
      const settings = settingsOf(options)
      if (Object.keys(settings).length === 0)
        command.error('annals: nothing to set. Name a setting, such as --retention-days 90.')
      const json = await withDatabase(async (database) =>
        changeProject(database, operatorName(), await findProject(database, name), settings),
      )
      if (options.json) process.stdout.write(`${json}\n`)
      else await printProjects([json])
    })
}

function withSettings(command: Command): Command {
  return command
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
    .option('--max-sessions <count>', 'how many sessions it may have; `none` removes the limit', parseQuota)
    .option(
      '--max-bytes <bytes>',
      'how many bytes its entries may have; `none` removes the limit',
      parseQuota,
    )
    .option(
      '--max-blob-bytes <bytes>',
      'how many bytes its blobs may have; `none` removes the limit',
      parseQuota,
    )
    .option('--max-tails <count>', 'how many live tails it may have open on each node', parseQuota)
    .addOption(
      new Option(
        '--search <on|off>',
        'on: index its entries, also those that are there, so that `annals search` finds them; off: delete the index',
      ).choices(['on', 'off']),
    )
}

function settingsOf(options: SettingOptions): ProjectSettings {
  const { retentionDays, rateLimit, maxSessions, maxBytes, maxBlobBytes, maxTails, search } = options
  const given = {
    retention_days: retentionDays,
    rate_limit_per_second: rateLimit,
    max_sessions: maxSessions,
    max_bytes: maxBytes,
    max_blob_bytes: maxBlobBytes,
    max_tails: maxTails,
  }
  const settings = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === 'number' ? value : null]],
  )
  return { ...Object.fromEntries(settings), ...(search !== undefined && { search: search === 'on' }) }
}

function parseQuota(text: string): number | 'none' {
  if (text === 'none') return text
  const quota = /^\d{1,16}$/.test(text) ? Number(text) : -1
  if (quota < 0 || quota > QUOTA_MAX)
    throw new InvalidArgumentError('It must be a whole number from 0 to 9007199254740991, or none.')
  return quota
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
  const { printTable } = await import('../terminal/table.js')
  printTable(COLUMNS, projects)
}
