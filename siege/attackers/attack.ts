import type { Ground } from './ground.ts'

/** What an attacker may be answered with, beside nothing at all: a status, or a connection that the service ends. */
export type Allowed = number | 'closed'

/** One way of harming others by requests, limited in number and time. */
export interface Attack {
  name: string
  /** What it does, in a sentence. */
  does: string
  answers: readonly Allowed[]
  /** How long it lasts in the short form, if not for 2.6 s; the full one has five times as long. */
  seconds?: number
  strike(ground: Ground): Promise<void>
}
