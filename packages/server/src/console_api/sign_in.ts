import { randomBytes } from 'node:crypto'
import { AnnalsError } from '../errors.js'
import type { Database, Queryable } from '../postgres/database.js'
import { FIND_PROJECT } from '../projects/project_queries.js'
import { findProject, storeToken } from '../projects/projects.js'
import { hashToken, mintToken } from '../projects/tokens/token.js'
import { END_CONSOLE_KEY, FORGET_EXPIRED_SIGN_INS, TAKE_SIGN_IN_CODE } from './sign_in_queries.js'

/** How long the printed link works. */
export const CODE_MINUTES_MAX = 15
/** How long the key works that a tab gets for it. */
const KEY_HOURS_MAX = 12
const CODE_BYTES = 32

const minutesFromNow = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString()

/**
 * Makes a code that opens the console on the project `default`, once. Like a token it is stored as a hash, which
 * lets any process on the database take it, and survives a restart no longer than its time.
 */
export async function createSignInCode(database: Queryable): Promise<string> {
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  const code = randomBytes(CODE_BYTES).toString('base64url')
  const request = { name: 'sign-in code', scopes: [], expires_at: minutesFromNow(CODE_MINUTES_MAX) }
  await storeToken(database, await findProject(database, 'default'), code, request, 'sign_in_code')
  return code
}

/**
 * Gives an API key for a code. Of several who bring the same code one gets a key: the statement that finds it
 * removes it, and what is compared are hashes. @throws AnnalsError unauthorized
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

/** Revokes the key that a tab was given for a code. Any other key stays as it is. */
export async function endConsoleKey(database: Queryable, project_id: string, token: string): Promise<void> {
  await database.query(END_CONSOLE_KEY, [project_id, hashToken(token)])
}

/** A project's name. */
export async function nameOfProject(database: Queryable, project_id: string): Promise<string> {
  const [row] = await database.query(FIND_PROJECT, [project_id])
  return row?.name ?? project_id
}
