import type { Key, NewToken } from '@annals/client'
import { Command, InvalidArgumentError } from 'commander'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'

const SCOPES = ['read', 'append', 'inbox', 'resolve'] as const
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600 }
const TTL_S_MAX = 86_400

interface CreateOptions extends ConnectionOptions {
  session?: string
  user?: string
  parent?: string
  scopes: NewToken['scopes']
  ttl: number
  origin?: string
}

/** annals tokens create|personal|revoke|rotate */
export function tokensCommand(): Command {
  return new Command('tokens')
    .description(
      'Manage short-lived tokens that reach only some sessions, for a browser, a runner or a partner; and your personal tokens.',
    )
    .addCommand(createCommand())
    .addCommand(personalCommand())
    .addCommand(revokeCommand())
    .addCommand(rotateCommand())
}

function createCommand(): Command {
  const command = new Command('create')
    .description(
      'Create a token for one session, for the sessions of a user, or for those below another session.',
    )
    .option('--session <id>', 'it reaches this session', parseUuid)
    .option('--user <identifier>', 'it reaches the sessions of this user')
    .option('--parent <id>', 'it reaches the sessions below this one', parseUuid)
    .option('--scopes <list>', `what it allows there: ${SCOPES.join(', ')}`, parseScopes, ['read'])
    .option('--ttl <time>', 'how long it is valid, from 30s to 24h', parseTtl, 3_600)
    .option('--origin <origin>', 'the origin of the pages that use it, such as https://app.example.com')
  return withService(command)
    .addHelpText(
      'after',
      `
Only the token is printed on stdout, and it is stored nowhere. It ends when it expires, or when the key that made it is
revoked.

Example:
  annals tokens create --session 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --scopes read,append --ttl 15m`,
    )
    .action(async ({ session: session_id, user, parent, scopes, ttl, origin, ...options }: CreateOptions) => {
      const reaches = Object.entries({ session_id, user, parent }).filter(([, id]) => id !== undefined)
      if (reaches.length !== 1) command.error('annals: give one of --session, --user and --parent.')
      const { annals, output } = await connect(options)
      const reach = Object.fromEntries(reaches)
      const token = await annals.tokens.create({ for: reach as NewToken['for'], scopes, ttl_s: ttl, origin })
      output.outcome(token, token.token)
    })
}

function personalCommand(): Command {
  const command = new Command('personal').description('List your personal tokens that are still valid.')
  return withService(command)
    .addHelpText(
      'after',
      `
Create them on the console's page People: a personal token cannot create others.

Example:
  annals tokens personal`,
    )
    .action(async (options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const tokens = await annals.personalTokens.list()
      const { tableLines } = await import('../terminal/table.js')
      if (output.json) for (const token of tokens) output.value(token)
      else if (tokens.length === 0) output.lines(['You have no personal tokens.'])
      else output.lines(tableLines(TOKEN_COLUMNS, tokens, output.width, output.paint))
    })
}

function revokeCommand(): Command {
  const command = new Command('revoke')
    .description('Revoke one of your personal tokens.')
    .argument('<id>', 'as `annals tokens personal` prints it', parseUuid)
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals tokens revoke 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d')
    .action(async (id: string, options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const token = await annals.personalTokens.revoke(id)
      output.outcome(token, `Revoked ${token.name}: it is refused within 5 seconds.`)
    })
}

const TOKEN_COLUMNS: Column<Key>[] = [
  { title: 'name', text: ({ name }) => name, shrinks: true, style: 'cyan' },
  { title: 'scopes', text: ({ scopes }) => scopes.join(', ') },
  { title: 'created', text: ({ created_at }) => agoOf(created_at) },
  { title: 'expires', text: ({ expires_at }) => expires_at?.slice(0, 10) ?? 'never' },
  { title: 'id', text: ({ id }) => id, style: 'dim' },
]

function rotateCommand(): Command {
  return new Command('rotate')
    .description('Replace the key that signs tokens for some sessions.')
    .option('--now', 'end all tokens that older keys signed; by default they stay valid until they expire')
    .addHelpText(
      'after',
      `
Run it on the machine of the service, in the directory that has its data, or with its DATABASE_URL. Every node takes the
new key within 5 seconds.

Example:
  annals tokens rotate --now`,
    )
    .action(async ({ now = false }: { now?: boolean }) => {
      const { rotateSigningKey } = await import('annals/dist/access/signing_keys.js')
      const { withDatabase } = await import('../database/with_database.js')
      const generation = await withDatabase((database) => rotateSigningKey(database, now))
      const rest = now
        ? 'Tokens of older keys have ended.'
        : 'Tokens of older keys stay valid until they expire.'
      process.stdout.write(`Key ${generation} signs new tokens. ${rest}\n`)
    })
}

function parseScopes(text: string): NewToken['scopes'] {
  const scopes = text.split(',').map((scope) => scope.trim())
  const wrong = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`"${wrong}" is not a scope of tokens; these are ${SCOPES.join(', ')}.`)
  return scopes as NewToken['scopes']
}

/** In seconds. */
function parseTtl(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smh])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN)
  if (!(seconds >= 30 && seconds <= TTL_S_MAX))
    throw new InvalidArgumentError('It must be a time from 30s to 24h, such as 15m.')
  return seconds
}
