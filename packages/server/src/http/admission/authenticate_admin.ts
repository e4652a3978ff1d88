import { timingSafeEqual } from 'node:crypto'
import { AnnalsError } from '../../errors.js'
import { hashToken } from '../../projects/tokens/token.js'
import type { AppServer } from '../app_server.js'
import { bearerToken } from './authenticate.js'

/** Lets only requests with the admin token through to the routes of `app`. */
export function authenticateAdmin(app: AppServer, admin_token: string): void {
  const expected = hashToken(admin_token)
  app.addHook('onRequest', async (request) => {
    // Hashes have the same length and reveal nothing about the token, and comparing them takes constant time.
    const token = bearerToken(request)
    if (token === undefined || !timingSafeEqual(hashToken(token), expected)) {
      throw new AnnalsError(
        'unauthorized',
        'The admin token is required: send it as "Authorization: Bearer <ANNALS_ADMIN_TOKEN>".',
      )
    }
  })
}
