import { AnnalsError } from '../errors.js'
import { type Feed, runOf } from '../log/follow/feed.js'
import type { Heartbeat } from '../log/follow/heartbeat.js'
import type { UsageDirectory } from '../projects/usage.js'

/** What the operations on runs work with. */
export interface RunParts {
  feed: Feed
  heartbeat: Heartbeat
  usage: UsageDirectory
}

/**
 * Tells all nodes what has changed: the runs of sessions; with `isWork`, that there may be work to claim; with `isLog`, the
 * logs as well.
 */
export function told(
  { feed }: Pick<RunParts, 'feed'>,
  project_id: string,
  session_ids: readonly string[],
  { isWork = false, isLog = false } = {},
): void {
  const names = session_ids.flatMap((id) => (isLog ? [runOf(id), id] : [runOf(id)]))
  feed.appended(project_id, new Set(isWork ? [...names, runOf(project_id)] : names))
}

/** A write under a fence that is not the session's. */
export function fencedError(fence: number, sent: number | undefined): AnnalsError {
  return new AnnalsError(
    'fenced',
    sent === undefined
      ? "The session's lease requires the header Annals-Fence on this write. Take the lease, and send its fence."
      : `The session's fence is ${fence}, not ${sent}: another runner has taken the lease. Stop working on this session.`,
  )
}
