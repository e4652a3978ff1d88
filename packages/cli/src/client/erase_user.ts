import type { Annals, ErasedUser } from '@annals/client'
import { type Progress, showProgress } from '../terminal/progress.js'

/** Much data is erased piece by piece, and the answer comes only at the end. */
const ERASE_MS_MAX = 3_600_000
const LOOK_EVERY_MS = 1_000

/** Erases a user with so many sessions, and shows progress by the number left. */
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
  // Unknown, or already gone: what counts is the erasure itself.
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
