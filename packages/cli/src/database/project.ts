import {
  AUTO_COMPACT_TOKENS_MIN,
  OUTCOME_WORD,
  OUTCOME_WORDS_MAX,
  QUOTA_MAX,
  RATE_LIMIT_MAX,
  RETENTION_DAYS_MAX,
} from '@annals/kits/limits.js'
import {
  changeProject,
  createProject,
  findProject,
  listProjects,
  MODEL_PATTERNS,
  type ProjectSettings,
} from 'annals/dist/projects/projects.js'
import { Command, InvalidArgumentError, Option } from 'commander'
import { parseName, parseObject } from '../client/arguments.js'
import { UsageError } from '../run_command.js'
import { askSecret } from '../terminal/ask.js'
import { visibleJson, visibleLine } from '../terminal/visible.js'
import { operatorName, printResources, withDatabase } from './with_database.js'

const QUOTAS = ['max_sessions', 'max_bytes', 'max_blob_bytes', 'max_tails'] as const
const COLUMNS = [
  ...['name', 'id', 'created_at', 'retention_days', 'rate_limit_per_second', ...QUOTAS, 'search', 'proof'],
  ...[
    'mask_viewers',
    'audit_reads',
    'audit_reads_days',
    'outcomes',
    'max_model_tokens_per_day',
    'auto_compact_tokens',
  ],
  'model',
]

type Outcomes = NonNullable<ProjectSettings['outcomes']>

/** A project's settings, as the options have them: the word `none` removes one. */
interface SettingOptions {
  retentionDays?: number | string
  rateLimit?: number | string
  maxSessions?: number | string
  maxBytes?: number | string
  maxBlobBytes?: number | string
  maxTails?: number | string
  search?: 'on' | 'off'
  proof?: 'on' | 'off'
  maskViewers?: 'on' | 'off'
  auditReads?: 'people' | 'all' | 'off'
  auditReadsDays?: number | string
  outcomes?: Outcomes | 'none'
  maxModelTokens?: number | string
  autoCompactTokens?: number | string
  model?: string
  modelUrl?: string
  modelKey?: true
  json?: boolean
}

/** annals project create|list|set */
export function projectCommand(): Command {
  return new Command('project')
    .description('Projects: each is a tenant with its own sessions, users and API keys.')
    .addCommand(
      withSettings(new Command('create'))
        .description('Create a project and its first API key, which is shown only once.')
        .argument('<name>', 'a unique name', parseName)
        .option('--json', 'print JSON')
        .addHelpText('after', '\nExample:\n  annals project create checkout-agent')
        .action(async (name: string, options: SettingOptions) => {
          const settings = await settingsOf(options)
          const { json, token } = await withDatabase(
            (database) => createProject(database, operatorName(), name, settings),
            { may_create: true },
          )
          if (options.json) process.stdout.write(`{"project":${visibleJson(json)},"token":"${token}"}\n`)
          else
            process.stdout.write(
              `Created project ${visibleLine(name)} (${JSON.parse(json).id}).\nAPI key (shown only once): ${token}\n`,
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
          await printResources(projects, COLUMNS, options.json)
        }),
    )
    .addCommand(setCommand())
}

function setCommand(): Command {
  return withSettings(new Command('set'))
    .description('Change settings of a project. Options you leave out keep their values.')
    .argument('[name or id]', 'the project; not needed if there is only one')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The service deletes expired sessions in the background, every ANNALS_RETENTION_MS. To see beforehand what would be
deleted, run \`annals prune --dry-run\`. A change takes effect within a few seconds at every node.

Examples:
  annals project set --search on
  annals project set checkout-agent --retention-days 90
  annals project set checkout-agent --proof on
  annals project set checkout-agent --audit-reads people --audit-reads-days 400
  annals project set checkout-agent --outcomes submitted=passed,handed_over=failed
  annals project set checkout-agent --max-sessions 100000 --max-bytes 10000000000
  annals project set checkout-agent --model gpt-5-mini --model-url https://api.openai.com/v1 --model-key < key.txt`,
    )
    .action(async (name: string | undefined, options: SettingOptions, command: Command) => {
      const settings = await settingsOf(options)
      if (Object.keys(settings).length === 0)
        command.error('annals: nothing to set. Name a setting, such as --retention-days 90.')
      const json = await withDatabase(async (database) =>
        changeProject(database, operatorName(), await findProject(database, name), settings),
      )
      if (options.json) process.stdout.write(`${visibleJson(json)}\n`)
      else (await import('../terminal/table.js')).printFields(COLUMNS, json)
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
        'on: index its entries, including existing ones, so that `annals search` finds them; off: delete the index',
      ).choices(['on', 'off']),
    )
    .addOption(
      new Option(
        '--proof <on|off>',
        'on: chain what is stored from now on, so that `annals verify --proof` finds changes; off: begin no new chains',
      ).choices(['on', 'off']),
    )
    .addOption(
      new Option(
        '--mask-viewers <on|off>',
        'on: its viewers read masks in place of personal data and secrets; off: they read everything',
      ).choices(['on', 'off']),
    )
    .addOption(
      new Option(
        '--audit-reads <whose>',
        'people: record who read which session; all: record what keys read, too; off: record nothing',
      ).choices(['people', 'all', 'off']),
    )
    .option(
      '--audit-reads-days <days>',
      'delete recorded reads that are older than this many days; `none` keeps them as long as the project',
      parseDays,
    )
    .option(
      '--outcomes <words>',
      'what its own words for outcomes mean, such as submitted=passed,handed_over=failed; `none` removes them',
      parseOutcomes,
    )
    .option(
      '--max-model-tokens <tokens>',
      'how many tokens of a model it may use in a day, in UTC; `none`: as ANNALS_MODEL_TOKENS_PER_DAY_MAX says',
      parseQuota,
    )
    .addOption(AUTO_COMPACT_TOKENS)
    .option('--model <name>', 'model of its learning spaces and summaries; `none`: that of the service')
    .option('--model-url <url>', 'base URL of the OpenAI-compatible API that has this model')
    .option('--model-key', 'ask for the API key of this model, or read it from stdin')
}

async function settingsOf(options: SettingOptions): Promise<ProjectSettings> {
  const { retentionDays, rateLimit, maxSessions, maxBytes, maxBlobBytes, maxTails, search, proof } = options
  const { maskViewers, auditReads } = options
  const model = await modelOf(options)
  const given = {
    retention_days: retentionDays,
    rate_limit_per_second: rateLimit,
    max_sessions: maxSessions,
    max_bytes: maxBytes,
    max_blob_bytes: maxBlobBytes,
    max_tails: maxTails,
    audit_reads_days: options.auditReadsDays,
    max_model_tokens_per_day: options.maxModelTokens,
    auto_compact_tokens: options.autoCompactTokens,
  }
  const settings = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === 'number' ? value : null]],
  )
  return {
    ...Object.fromEntries(settings),
    ...(search !== undefined && { search: search === 'on' }),
    ...(proof !== undefined && { proof: proof === 'on' }),
    ...(maskViewers !== undefined && { mask_viewers: maskViewers === 'on' }),
    ...(auditReads !== undefined && { audit_reads: auditReads === 'off' ? null : auditReads }),
    ...(options.outcomes !== undefined && {
      outcomes: options.outcomes === 'none' ? null : options.outcomes,
    }),
    ...(model !== undefined && { model }),
  }
}

function parseOutcomes(text: string): Outcomes | 'none' {
  if (text === 'none') return text
  const words = parseObject(text)
  if (Object.keys(words).length > OUTCOME_WORDS_MAX)
    throw new InvalidArgumentError(`It has more than ${OUTCOME_WORDS_MAX} words. Name fewer.`)
  for (const [word, verdict] of Object.entries(words)) {
    if (!OUTCOME_WORD.test(word))
      throw new InvalidArgumentError(`${JSON.stringify(word)} must have 1 to 40 characters.`)
    if (verdict !== 'failed' && verdict !== 'passed')
      throw new InvalidArgumentError(`${word} must be passed or failed, as in ${word}=passed.`)
  }
  return words as Outcomes
}

/** @throws UsageError */
async function modelOf({ model, modelUrl, modelKey }: SettingOptions): Promise<ProjectSettings['model']> {
  if (model === 'none' && modelUrl === undefined && !modelKey) return null
  if (model === undefined && modelUrl === undefined && !modelKey) return undefined
  if (model === undefined || modelUrl === undefined)
    throw new UsageError(
      'Name a model with both --model and --model-url, or the service’s with --model none.',
    )
  const key = modelKey ? await askSecret(`API key for ${modelUrl}: `) : undefined
  const given = { url: modelUrl, name: model, ...(key !== undefined && { key }) }
  for (const [name, text] of Object.entries(given))
    if (!MODEL_PATTERNS[name as keyof typeof given].test(text))
      throw new UsageError(`The ${name} of the model is not valid.`)
  return given
}

/** Reads a whole number in a range, or one of the words that stand for a number or for none (null). */
function numberFrom(min: number, max: number, words: Record<string, number | null>, takes: string) {
  return (text: string): number | string => {
    // Not null: of that, the library for commands makes an empty string.
    if (Object.hasOwn(words, text)) return words[text] ?? text
    const number = /^\d{1,16}$/.test(text) ? Number(text) : -1
    if (number < min || number > max) throw new InvalidArgumentError(`It must be ${takes}.`)
    return number
  }
}

const parseQuota = numberFrom(0, QUOTA_MAX, { none: null }, `a whole number from 0 to ${QUOTA_MAX}, or none`)
const AUTO_COMPACT_TOKENS = new Option(
  '--auto-compact-tokens <tokens>',
  'tokens of a context above which the model summarises the beginning of the session; `none`: never',
).argParser(
  numberFrom(
    AUTO_COMPACT_TOKENS_MIN,
    QUOTA_MAX,
    { none: null },
    `a whole number from ${AUTO_COMPACT_TOKENS_MIN} to ${QUOTA_MAX}, or none`,
  ),
)
const parseDays = numberFrom(
  1,
  RETENTION_DAYS_MAX,
  { none: null },
  `a number of days from 1 to ${RETENTION_DAYS_MAX}, or none`,
)
const parseLimit = numberFrom(
  1,
  RATE_LIMIT_MAX,
  { none: 0, default: null },
  `a number from 1 to ${RATE_LIMIT_MAX}, none, or default`,
)
