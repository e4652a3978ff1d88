import { type Feed, runOf } from '../log/follow/feed.js'
import type { Heartbeat } from '../log/follow/heartbeat.js'
import type { UsageDirectory } from '../projects/usage.js'

/** What the operations on runs work with. */
export interface RunParts {
  feed: Feed
  heartbeat: Heartbeat
  usage: UsageDirectory
  /** Hears which webhooks are to be told of input. */
  onInput: (project_id: string, webhook_ids: string[]) => void
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

export { fencedError } from '../log/append/held_back.js'
