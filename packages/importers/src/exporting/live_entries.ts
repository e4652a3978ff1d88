import type { Session, TimelineItem } from '@annals/client'

/** What a format cannot say, and of how many entries. */
export type Omissions = Map<string, number>

/** The log of a session to write, with what is known of it. */
export interface ExportedSession {
  session: Session
  /** The identifier of its user. */
  user?: string | undefined
  entries: AsyncIterable<TimelineItem>
}

export function omit(omitted: Omissions, reason: string): void {
  omitted.set(reason, (omitted.get(reason) ?? 0) + 1)
}

/** Entries that say something: not those that were taken back, nor what says so. */
export async function* liveEntries(
  entries: AsyncIterable<TimelineItem>,
  omitted: Omissions,
): AsyncGenerator<TimelineItem> {
  for await (const entry of entries) {
    if (entry.retracted_by != null) omit(omitted, 'was retracted')
    else if (entry.kind === 'event' && entry.type.startsWith('annals.')) omit(omitted, `event ${entry.type}`)
    else yield entry
  }
}
