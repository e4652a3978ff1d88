import type { Session, TimelineItem } from '@annals/client'

/** Contents that a format cannot express, and in how many entries. */
export type Omissions = Map<string, number>

/** Kinds of omissions that are told apart: types of events are the caller's, who may use any number of them. */
const REASONS_MAX = 200
const OTHERS = 'others'

/** Facts about a session besides its log. */
export interface AboutSession {
  session: Session
  /** The identifier of its user. */
  user?: string | undefined
}

/** A session on its way into another format. Holds no more than a few entries at a time. */
export interface SessionDocument {
  /** Takes the next entry. Returns what can be written by now. */
  add(entry: TimelineItem): string
  /** Returns the rest. */
  end(): string
}

export function omit(omitted: Omissions, reason: string): void {
  const told = omitted.has(reason) || omitted.size < REASONS_MAX ? reason : OTHERS
  omitted.set(told, (omitted.get(told) ?? 0) + 1)
}

/** Whether an entry says something: not those that were taken back, nor what says so. Counts the others. */
export function isLive(entry: TimelineItem, omitted: Omissions): boolean {
  if (entry.retracted_by != null) omit(omitted, 'was retracted')
  else if (entry.kind === 'event' && entry.type.startsWith('annals.')) omit(omitted, `event ${entry.type}`)
  else return true
  return false
}
