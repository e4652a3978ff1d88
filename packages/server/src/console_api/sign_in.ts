import { randomBytes } from 'node:crypto'
import { AnnalsError } from '../errors.js'
import type { Database, Queryable } from '../postgres/database.js'
import { FIND_PROJECT } from '../projects/project_queries.js'
import { findProject, storeToken } from '../projects/projects.js'
import { hashToken, mintToken } from '../projects/tokens/token.js'
import { END_CONSOLE_KEY, FORGET_EXPIRED_SIGN_INS, TAKE_SIGN_IN_CODE } from './sign_in_queries.js'

/** How long the printed link works. */
export const CODE_MINUTES_MAX = 15
/** How long the key of a tab that signed in by the link is valid. */
const KEY_HOURS_MAX = 12
const CODE_BYTES = 32

const minutesFromNow = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString()

/**
 * Creates a code that opens the console on the project `default`, once. Like a token it is stored as a hash, so any
 * process on the database accepts it, and it survives a restart, but not its expiry.
 */
export async function createSignInCode(database: Queryable): Promise<string> {
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  const code = randomBytes(CODE_BYTES).toString('base64url')
  const request = { name: 'sign-in code', scopes: [], expires_at: minutesFromNow(CODE_MINUTES_MAX) }
  await storeToken(database, await findProject(database, 'default'), code, request, 'sign_in_code')
  return code
}

/**
 * Exchanges a code for an API key. If several callers bring the same code, only one gets a key: the statement that
 * finds the code deletes it, and hashes are compared. @throws AnnalsError unauthorized
 */
export async function exchangeSignInCode(database: Database, code: string): Promise<string> {
  return database.transaction(async (connection) => {
    const [taken] = await connection.query(TAKE_SIGN_IN_CODE, [hashToken(code)])
    if (!taken) {
      throw new AnnalsError(
        'unauthorized',
        `This link has been used or is older than ${CODE_MINUTES_MAX} minutes. Start Annals again for a new one, or sign in with an API key.`,
      )
    }
    const token = mintToken()
    const expires_at = minutesFromNow(KEY_HOURS_MAX * 60)
    const request = { name: 'console', scopes: ['read', 'write'] as const, expires_at }
    await storeToken(connection, taken.project_id!, token, request, 'console')
    return token
  })
}

/** Revokes the key that a tab got for a code. Other keys are left alone. */
export async function endConsoleKey(database: Queryable, project_id: string, token: string): Promise<void> {
  await database.query(END_CONSOLE_KEY, [project_id, hashToken(token)])
}

/** A project's name. */
export async function nameOfProject(database: Queryable, project_id: string): Promise<string> {
  const [row] = await database.query(FIND_PROJECT, [project_id])
  return row?.name ?? project_id
}
