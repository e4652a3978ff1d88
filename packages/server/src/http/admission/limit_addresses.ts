import type { FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import type { AppServer } from '../app_server.js'
import { Windows } from '../request/windows.js'
import type { AppParts } from '../service_context.js'
import { TAKEN_AT_ONCE } from './admit_requests.js'
import { bearerToken } from './authenticate.js'

/**
 * Limits each address per second, if the settings say so: requests of any kind, and requests that are refused for
 * their key. For an address that guesses keys, no unknown key is looked up any more; known keys go on working.
 */
export function limitAddresses(app: AppServer, { config, tokens }: AppParts): void {
  const { address_rate_limit_per_second: requests_max, address_refusals_per_second: refusals_max } = config
  const requests = new Windows()
  const refusals = new Windows()

  const isKnown = (request: FastifyRequest) => {
    const token = bearerToken(request)
    return token !== undefined && tokens.projectOf(token, request.raw.socket) !== undefined
  }
  const excessOf = (request: FastifyRequest): AnnalsError | undefined => {
    if (requests_max > 0 && requests.count(request.address).current > requests_max)
      return limited(`This address may make ${requests_max} requests per second.`)
    if (refusals_max > 0 && refusals.counted(request.address) >= refusals_max && !isKnown(request))
      return limited('This address has sent too many invalid API keys.')
    return undefined
  }

  if (requests_max > 0 || refusals_max > 0)
    app.addHook('onRequest', (request, _reply, done) =>
      done(TAKEN_AT_ONCE.has(request.url) ? undefined : excessOf(request)),
    )
  if (refusals_max > 0)
    app.addHook('onResponse', (request, reply, done) => {
      if (reply.statusCode === 401) refusals.count(request.address)
      done()
    })
}

function limited(sentence: string): AnnalsError {
  return new AnnalsError('rate_limited', `${sentence} Nothing was done; wait as long as Retry-After says.`)
}
