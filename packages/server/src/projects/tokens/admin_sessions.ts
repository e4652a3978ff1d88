import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import type { Statement } from '@annals/kits/postgres/statement.js'
import { bearerToken, isSameToken } from '../authenticate.js'
import {
  BEGIN_ADMIN_SESSION,
  END_ADMIN_SESSION,
  FIND_ADMIN_SESSION,
  FORGET_EXPIRED_ADMIN_SESSIONS,
  RENEW_ADMIN_SESSION,
} from '../project_queries.js'
import { hashToken } from './token.js'

/**
 * Sessions of the administrator in the console. A session's token is an id and a signature with the admin token: changing that token ends
 * all of them, and a forged one costs no query. A row says that it is open.
 */
export class AdminSessions {
  constructor(
    private readonly database: Queryable,
    readonly admin_token: string,
  ) {}

  /** Its token. `person_id`: of an owner who signed in at the issuer. */
  async begin(person_id: string | null = null): Promise<string> {
    const id = randomUUID()
    await this.database.query(FORGET_EXPIRED_ADMIN_SESSIONS, [])
    await this.database.query(BEGIN_ADMIN_SESSION, [id, person_id])
    return `${id}.${this.signatureOf(id)}`
  }

  isOpen(token: string | undefined): Promise<boolean> {
    return this.run(FIND_ADMIN_SESSION, token)
  }

  /** Whether it is open; then it stays so for longer. */
  renew(token: string | undefined): Promise<boolean> {
    return this.run(RENEW_ADMIN_SESSION, token)
  }

  async end(token: string | undefined): Promise<void> {
    await this.run(END_ADMIN_SESSION, token)
  }

  private async run(statement: Statement, token = ''): Promise<boolean> {
    const [id = '', signature = ''] = token.split('.')
    if (!isSameToken(signature, this.signatureOf(id))) return false
    return (await this.database.query(statement, [id])).length > 0
  }

  private signatureOf(id: string): string {
    return createHmac('sha256', hashToken(`console session:${this.admin_token}`))
      .update(id)
      .digest('base64url')
  }
}

/** Lets only requests with the admin token, or with that of an open session, through to the routes of `app`. */
export function authenticateAdmin(app: AppServer, sessions: AdminSessions): void {
  const expected = hashToken(sessions.admin_token)
  app.addHook('onRequest', async (request) => {
    // Hashes have the same length and reveal nothing about the token, and comparing them takes constant time.
    const token = bearerToken(request)
    const is_allowed =
      token !== undefined && (timingSafeEqual(hashToken(token), expected) || (await sessions.isOpen(token)))
    if (!is_allowed) {
      throw new AnnalsError(
        'unauthorized',
        'The admin token is required: send it as "Authorization: Bearer <ANNALS_ADMIN_TOKEN>".',
      )
    }
  })
}
