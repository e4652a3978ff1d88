import { Command, InvalidArgumentError } from 'commander'
import { parseId } from '../../ids.js'
import { findProject, issueToken, listTokens, revokeToken } from '../../projects/projects.js'
import { SCOPES, type Scope } from '../../projects/tokens/scope.js'
import { withDatabase } from './with_database.js'

interface Options {
  project: string
  json?: boolean
}

interface CreateOptions extends Options {
  name: string
  scopes: Scope[]
  expiresAt?: string
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
  return command.requiredOption('--project <name or id>', 'the project').option('--json', 'print JSON')
}

function createCommand(): Command {
  return ofProject(new Command('create'))
    .description('Create an API key. It is shown only once; Annals stores a hash.')
    .requiredOption('--name <name>', 'what it is for')
    .option('--scopes <list>', 'what it may do: read, write, or both', parseScopes, [...SCOPES])
    .option('--expires-at <time>', 'when it expires, in RFC 3339', parseTime)
    .addHelpText(
      'after',
      '\nExample:\n  annals token create --project default --name dashboard --scopes read',
    )
    .action(async (options: CreateOptions) => {
      const json = await withDatabase(async (database) =>
        issueToken(database, await findProject(database, options.project), {
          name: options.name,
          scopes: options.scopes,
          expires_at: options.expiresAt,
        }),
      )
      const token = JSON.parse(json) as { id: string; token: string }
      if (options.json) process.stdout.write(`${json}\n`)
      else process.stdout.write(`Created token ${token.id}.\nAPI key (shown only once): ${token.token}\n`)
    })
}

function listCommand(): Command {
  return ofProject(new Command('list'))
    .description("List a project's API keys, without their secrets.")
    .addHelpText('after', '\nExample:\n  annals token list --project default')
    .action(async (options: Options) => {
      const tokens = await withDatabase(async (database) =>
        listTokens(database, await findProject(database, options.project)),
      )
      if (options.json) process.stdout.write(`[${tokens.join(',')}]\n`)
      else {
        const { printTable } = await import('../terminal/table.js')
        printTable(['id', 'name', 'scopes', 'created_at', 'expires_at', 'revoked_at'], tokens)
      }
    })
}

function revokeCommand(): Command {
  return ofProject(new Command('revoke'))
    .description('Revoke an API key. Every node refuses it within 5 seconds.')
    .argument('<token id>', 'as `annals token list` shows it', parseTokenId)
    .addHelpText(
      'after',
      '\nExample:\n  annals token revoke --project default 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d',
    )
    .action(async (token_id: string, options: Options) => {
      const json = await withDatabase(async (database) =>
        revokeToken(database, await findProject(database, options.project), token_id),
      )
      process.stdout.write(options.json ? `${json}\n` : `Revoked token ${token_id}.\n`)
    })
}

function parseScopes(text: string): Scope[] {
  const scopes = text.split(',').map((scope) => scope.trim())
  const wrong = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`"${wrong}" is not a scope; the scopes are ${SCOPES.join(' and ')}.`)
  return scopes as Scope[]
}

function parseTime(text: string): string {
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new InvalidArgumentError('It must be a time such as 2027-01-31T00:00:00Z.')
  return time.toISOString()
}

function parseTokenId(text: string): string {
  const id = parseId(text)
  if (id === undefined) throw new InvalidArgumentError('It must be a UUID, as `annals token list` shows it.')
  return id
}
