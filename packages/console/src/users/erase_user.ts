import type { Annals } from '@annals/client'

/** Much data is erased piece by piece. */
const ERASE_MS_MAX = 3_600_000
const LOOK_EVERY_MS = 1_000

/** Erases a user with all data, and reports how many sessions are left while it runs. */
export async function eraseUser(
  annals: Annals,
  identifier: string,
  onLeft: (sessions: number) => void,
): Promise<void> {
  const look = setInterval(() => {
    const looked = annals.users.resources(identifier)
    // Already gone, or unknown: what counts is the erasure itself.
    looked.then(({ counts }) => onLeft(counts.sessions_count)).catch(() => {})
  }, LOOK_EVERY_MS)
  try {
    await annals.users.erase(identifier, { timeout_ms: ERASE_MS_MAX, attempt_timeout_ms: ERASE_MS_MAX })
  } finally {
    clearInterval(look)
  }
}
