import type { Log } from './log.js'
import type { Server } from './server.js'

/** What a promise is tried with. All that is created belongs to users of this run, who are erased at its end. */
export interface Trial {
  server: Server
  /** A key of another project at the same server, if there is one. */
  stranger: Server | undefined
  /** A server with this key, or without any. */
  as(key: string | undefined): Server
  /** A user of this run that nobody else has. */
  newUser(): string
  /** A session without entries, of a new user or as `body` says. */
  newLog(body?: Record<string, unknown>): Promise<Log>
}

export interface Promised {
  name: string
  /** The promise, as a sentence. */
  promise: string
  /** The page and the section of Annals' documentation that makes it. */
  reference: string
  needsStranger?: true
  /** Rejects with `Broken` if the promise is not kept. */
  check(trial: Trial): Promise<void>
}
