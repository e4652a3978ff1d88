import type { Annals, ErasedUser } from '@annals/client'
import { type Progress, showProgress } from '../terminal/progress.js'

/** What is large is erased piece by piece, and no answer comes before the last. */
const ERASE_MS_MAX = 3_600_000
const LOOK_EVERY_MS = 1_000

/** Erases a user who has so many sessions, and shows by what is left how far that is. */
export async function eraseUser(
  annals: Annals,
  identifier: string,
  sessions: number,
  signal: AbortSignal,
): Promise<ErasedUser> {
  let progress: Progress | undefined
  let is_over = false
  const begun = performance.now()
  const look = async () => {
    const { counts } = await annals.users.resources(identifier, { signal })
    if (is_over) return
    progress ??= showProgress('Erasing', 'sessions', sessions, begun)
    progress.update(Math.max(sessions - counts.sessions_count, 0))
  }
  // Not told, or gone by then: what counts is the erasing itself.
  const looks = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS)
  try {
    const limits = { timeout_ms: ERASE_MS_MAX, attempt_timeout_ms: ERASE_MS_MAX }
    return await annals.users.erase(identifier, { ...limits, signal })
  } finally {
    is_over = true
    clearInterval(looks)
    progress?.stop()
  }
}
