import { randomBytes } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import { CONSOLE_IDLE_HOURS_MAX } from '@annals/kits/limits.js'
import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { FIND_PROJECT } from '../projects/project_queries.js'
import { findProject, storeToken } from '../projects/projects.js'
import type { Grant } from '../projects/tokens/key_look_ups.js'
import { ALL_SCOPES, hashToken, mintToken, SCOPES, type Scope } from '../projects/tokens/token.js'
import { END_SESSION, FORGET_EXPIRED_SIGN_INS, RENEW_SESSION, TAKE_SIGN_IN_CODE } from './console_queries.js'

const CODE_MINUTES_MAX = 15
const CODE_BYTES = 32

export const minutesFromNow = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString()

/** A session of the console. `token` is only ever in the browser's cookie. */
export interface ConsoleSession {
  project_id: string
  scopes: readonly string[]
  token: string
}

/**
 * Creates a code that opens the console on a project, given its name or id, once. Like a token it is stored as a hash, so any process on the
 * database accepts it, and it survives a restart, but not its expiry. @throws AnnalsError project_not_found
 */
export async function createSignInCode(database: Queryable, project: string): Promise<string> {
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  const code = randomBytes(CODE_BYTES).toString('base64url')
  const request = { name: 'sign-in code', scopes: [], expires_at: minutesFromNow(CODE_MINUTES_MAX) }
  await storeToken(database, await findProject(database, project), code, request, 'sign_in_code')
  return code
}

/**
 * Exchanges a code for a session. If several callers bring the same code, only one gets a session: the statement that
 * finds the code deletes it, and hashes are compared. @throws AnnalsError unauthorized
 */
export async function beginSessionByCode(database: Database, code: string): Promise<ConsoleSession> {
  return database.transaction(async (connection) => {
    const [taken] = await connection.query(TAKE_SIGN_IN_CODE, [hashToken(code), false])
    if (!taken) {
      throw new AnnalsError(
        'unauthorized',
        `This link has been used or is older than ${CODE_MINUTES_MAX} minutes. \`npx annals console\` prints a new one; or sign in with an API key.`,
      )
    }
    return beginSession({ database: connection, project_id: taken.project_id! }, ALL_SCOPES)
  })
}

/** Begins a session for a valid API key: with its rights, and only as long as it is valid. */
export async function beginSessionByKey(database: Queryable, grant: Grant): Promise<ConsoleSession> {
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  const { key_id, project_id, person } = grant
  // Whether a person is masked follows from the role of the moment.
  const of = { parent_id: key_id, member_id: person?.member_id, masked: grant.masked && !person }
  return beginSession({ database, project_id }, [...grant.scopes] as Scope[], of)
}

/** Begins a session for somebody who signed in at the issuer: with the rights that the role gives at the time. */
export async function beginSessionOfMember(
  database: Queryable,
  { member_id, project_id }: { member_id: string; project_id: string },
): Promise<ConsoleSession> {
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  return beginSession({ database, project_id }, SCOPES, { member_id })
}

async function beginSession(
  { database, project_id }: Tenant,
  scopes: readonly Scope[],
  of: { parent_id?: string; member_id?: string | undefined; masked?: boolean } = {},
): Promise<ConsoleSession> {
  const token = mintToken()
  const expires_at = minutesFromNow(CONSOLE_IDLE_HOURS_MAX * 60)
  await storeToken(database, project_id, token, { name: 'console', scopes, expires_at, ...of }, 'console')
  return { project_id, scopes, token }
}

export async function renewSession({ database, project_id }: Tenant, token: string): Promise<void> {
  await database.query(RENEW_SESSION, [project_id, hashToken(token)])
}

export async function endSession({ database, project_id }: Tenant, token: string): Promise<void> {
  await database.query(END_SESSION, [project_id, hashToken(token)])
}

/** A project, as the console knows it from the start. */
export async function shownProject({
  database,
  project_id,
}: Tenant): Promise<{ project: string; outcomes?: object }> {
  const [row] = await database.query(FIND_PROJECT, [project_id])
  const { outcomes } = JSON.parse(row?.json ?? '{}')
  return { project: row?.name ?? project_id, ...(outcomes && { outcomes }) }
}

export async function nameOfProject(tenant: Tenant): Promise<string> {
  return (await shownProject(tenant)).project
}
