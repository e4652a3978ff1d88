import type { IncomingMessage } from 'node:http'
import { newId } from '../../ids.js'

const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/

/** The id of a request: the caller's, if it is safe to log; otherwise a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newId()
}
