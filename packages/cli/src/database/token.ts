import { hostname, userInfo } from 'node:os'
import {
  findNamedProject,
  findProject,
  issueToken,
  listTokens,
  revokeToken,
  type TokenRequest,
} from 'annals/dist/projects/projects.js'
import { ALL_SCOPES, SCOPES, type Scope } from 'annals/dist/projects/tokens/token.js'
import { Command, InvalidArgumentError } from 'commander'
import { parseName, parseUuid } from '../client/arguments.js'
import { visibleJson } from '../terminal/visible.js'
import { operatorName, printResources, tellProgress, withDatabase } from './with_database.js'

const COLUMNS = ['id', 'name', 'scopes', 'masked', 'created_at', 'expires_at', 'revoked_at']

interface Options {
  project?: string
  json?: boolean
}

interface CreateOptions extends Options {
  name: string
  scopes: Scope[]
  expiresAt?: string
  masked?: boolean
}

/** Prints a new token. */
interface NewToken {
  id: string
  token: string
}

/** annals token create|list|revoke */
export function tokenCommand(): Command {
  return new Command('token')
    .description(
      "A project's API keys. A project can have any number, so you can rotate keys without downtime.",
    )
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand())
}

function ofProject(command: Command): Command {
  return command
    .option('--project <name or id>', 'the project; not needed if there is only one')
    .option('--json', 'print JSON')
}

function createCommand(): Command {
  return ofProject(new Command('create'))
    .description('Create an API key. It is shown only once; Annals stores a hash.')
    .requiredOption('--name <name>', 'what it is for', parseName)
    .option(
      '--scopes <list>',
      'what it may do: read, write (everything that changes sessions), append (only adds, reads nothing), ingest (only sends OpenTelemetry), admin (keys, members, redaction)',
      parseScopes,
      [...ALL_SCOPES],
    )
    .option('--masked', 'reads no personal data: see redaction')
    .option('--expires-at <time>', 'when it expires, in RFC 3339', parseTime)
    .addHelpText('after', '\nExample:\n  annals token create --name dashboard --scopes read')
    .action(async (options: CreateOptions) => {
      const { project, name, scopes, expiresAt: expires_at, masked = false, json } = options
      const { token } = await createToken(project, { name, scopes, masked, expires_at })
      if (json) process.stdout.write(`${visibleJson(JSON.stringify(token))}\n`)
      else process.stdout.write(`Created token ${token.id}.\nAPI key (shown only once): ${token.token}\n`)
    })
}

/** annals key */
export function keyCommand(): Command {
  return new Command('key')
    .description('Create an API key, and explain where keys come from.')
    .option('--project <name or id>', 'the project; not needed if there is only one')
    .addHelpText(
      'after',
      '\nRun it on the machine of the service, in the directory that has its data, or with its DATABASE_URL.\n\nExample:\n  annals key',
    )
    .action(async ({ project }: { project?: string }) => {
      const name = `${userInfo().username}@${hostname()}`
      const { token, project_name } = await createToken(project, { name, scopes: ALL_SCOPES })
      process.stdout.write(`API key: ${token.token}\n`)
      tellProgress(`
It may read and write the project "${project_name}", and is shown only this once: Annals stores a hash.
The first start prints such a key, too. \`annals token\` lists and revokes keys, and creates read-only ones.`)
    })
}

function createToken(project: string | undefined, request: TokenRequest) {
  return withDatabase(async (database) => {
    const { id, name } = await findNamedProject(database, project)
    const token = JSON.parse(await issueToken(database, operatorName(), id, request)) as NewToken
    return { token, project_name: name }
  })
}

function listCommand(): Command {
  return ofProject(new Command('list'))
    .description("List a project's API keys, without their secrets.")
    .addHelpText('after', '\nExample:\n  annals token list')
    .action(async (options: Options) => {
      const tokens = await withDatabase(async (database) =>
        listTokens(database, await findProject(database, options.project)),
      )
      await printResources(tokens, COLUMNS, options.json)
    })
}

function revokeCommand(): Command {
  return ofProject(new Command('revoke'))
    .description('Revoke an API key. Every node refuses it within 5 seconds.')
    .argument('<token id>', 'as `annals token list` shows it', parseUuid)
    .addHelpText('after', '\nExample:\n  annals token revoke 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d')
    .action(async (token_id: string, options: Options) => {
      const json = await withDatabase(async (database) =>
        revokeToken(database, operatorName(), await findProject(database, options.project), token_id),
      )
      process.stdout.write(options.json ? `${visibleJson(json)}\n` : `Revoked token ${token_id}.\n`)
    })
}

function parseScopes(text: string): Scope[] {
  const scopes = text.split(',').map((scope) => scope.trim())
  const wrong = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`"${wrong}" is not a scope; the scopes are ${SCOPES.join(', ')}.`)
  return scopes as Scope[]
}

function parseTime(text: string): string {
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new InvalidArgumentError('It must be a time such as 2027-01-31T00:00:00Z.')
  return time.toISOString()
}
