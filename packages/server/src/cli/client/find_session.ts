import type { Annals } from '@annals/client'
import { AnnalsError } from '../../errors.js'
import { parseId } from '../../ids.js'
import { UsageError } from '../run_command.js'

/** Sessions among which the beginning of an id is looked for, newest first. */
const LOOKED_AT_MAX = 2_000
const PAGE = 200

/**
 * The id of a session, given it or its beginning.
 * @throws AnnalsError session_not_found, UsageError if several ids begin so
 */
export async function findSession(annals: Annals, given: string): Promise<string> {
  const id = parseId(given)
  if (id !== undefined) return id
  const found: string[] = []
  let looked_at = 0
  for await (const { items } of annals.sessions.list({ time_desc: true, limit: PAGE }).pages()) {
    found.push(...items.map((session) => session.id).filter((one) => one.startsWith(given)))
    looked_at += items.length
    if (looked_at >= LOOKED_AT_MAX || found.length > 1) break
  }
  const [session_id, other] = found
  if (other) throw new UsageError(`Several sessions begin with ${given}, such as ${session_id} and ${other}.`)
  if (session_id) return session_id
  throw new AnnalsError('session_not_found', `None of the newest ${looked_at} sessions begins with ${given}.`)
}
