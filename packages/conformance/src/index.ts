import { randomBytes } from 'node:crypto'
import { Broken } from './expectations.js'
import { KEEPING } from './keeping.js'
import { LISTS } from './lists.js'
import { Log } from './log.js'
import { ORDER } from './order.js'
import type { Promised, Trial } from './promise.js'
import { Server, type Session } from './server.js'
import { WRITING } from './writing.js'

/** Every promise, in the order in which they are tried. */
export const PROMISES: readonly Promised[] = [...ORDER, ...WRITING, ...KEEPING, ...LISTS]

export interface Options {
  url: string
  /** A key that may read and write. */
  key: string
  /** A key of another project, without which its promise is skipped. */
  otherKey?: string | undefined
  /** Names of the promises to try; by default all. */
  only?: readonly string[] | undefined
  /** The longest time for one promise. */
  msMax?: number
  onResult?: (result: Result) => void
}

export interface Result {
  name: string
  promise: string
  reference: string
  outcome: 'kept' | 'broken' | 'skipped'
  /** What was seen in place of what was promised, or why it was skipped. */
  detail: string
  ms: number
}

export interface Report {
  url: string
  kept: number
  broken: number
  skipped: number
  promises: Result[]
  /** Users that could not be erased after the run. */
  left_behind: string[]
}

/** Tries the promises one after another, then erases all that it created. */
export async function runConformance(options: Options): Promise<Report> {
  const { only, onResult = () => {} } = options
  const users: string[] = []
  const promises: Result[] = []
  for (const promised of PROMISES) {
    const result = await resultOf(
      promised,
      options,
      users,
      only === undefined || only.includes(promised.name),
    )
    promises.push(result)
    onResult(result)
  }
  const count = (outcome: Result['outcome']) => promises.filter((one) => one.outcome === outcome).length
  return {
    url: options.url,
    kept: count('kept'),
    broken: count('broken'),
    skipped: count('skipped'),
    promises,
    left_behind: await erase(users, options),
  }
}

async function resultOf(
  promised: Promised,
  options: Options,
  users: string[],
  isWanted: boolean,
): Promise<Result> {
  const { name, promise, reference } = promised
  const started = performance.now()
  const told = (outcome: Result['outcome'], detail: string): Result => {
    return { name, promise, reference, outcome, detail, ms: Math.round(performance.now() - started) }
  }
  if (!isWanted) return told('skipped', 'It was not asked for.')
  if (promised.needsStranger && options.otherKey === undefined)
    return told('skipped', 'It needs a key of another project, in ANNALS_OTHER_API_KEY.')
  const msMax = options.msMax ?? 30_000
  try {
    await promised.check(trialOf(options, users, AbortSignal.timeout(msMax)))
    return told('kept', '')
  } catch (error) {
    return told('broken', reasonOf(error, msMax))
  }
}

function trialOf({ url, key, otherKey }: Options, users: string[], signal: AbortSignal): Trial {
  const server = new Server(url, key, signal)
  const newUser = () => {
    const user = `conformance-${randomBytes(8).toString('hex')}`
    users.push(user)
    return user
  }
  return {
    server,
    stranger: otherKey === undefined ? undefined : new Server(url, otherKey, signal),
    as: (other) => new Server(url, other, signal),
    newUser,
    newLog: async (body = {}) => {
      const { id } = await server.ok<Session>('POST', '/session', { body: { user: newUser(), ...body } })
      return new Log(server, id)
    },
  }
}

function reasonOf(error: unknown, msMax: number): string {
  if (error instanceof Broken) return error.message
  if (error instanceof Error && error.name === 'TimeoutError')
    return `It was not answered within ${msMax / 1000} s.`
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return `${error instanceof Error ? error.message : error}${cause}.`
}

/** A user who was never used, or is erased already, is 404. */
async function erase(users: string[], { url, key, msMax = 30_000 }: Options): Promise<string[]> {
  const server = new Server(url, key, AbortSignal.timeout(msMax))
  const left: string[] = []
  for (const user of users) {
    const status = await server.send('DELETE', `/user/${user}`).then(
      (answer) => answer.status,
      () => 0,
    )
    if (status !== 200 && status !== 404) left.push(user)
  }
  return left
}
