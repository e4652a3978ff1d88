import type { Ground } from './ground.ts'

/** What the attackers know: a service, keys of their own project, and what they have stored in it. */
export interface Target {
  url: string
  key: string
  read_key: string
  /** Many small events. */
  long_session: string
  /** A few messages of a megabyte. */
  big_session: string
}

/** What an attacker may be answered with, beside nothing at all: a status, or a connection that the service ends. */
export type Allowed = number | 'closed'

/** One way of harming others by requests, limited in number and time. */
export interface Attack {
  name: string
  /** What it does, in a sentence. */
  does: string
  answers: readonly Allowed[]
  /** How long it lasts in the short form, if not for 3 s; the full one has five times as long. */
  seconds?: number
  strike(ground: Ground): Promise<void>
}
