import { vi } from 'vitest'
import { FUNCTION_CALLS, lockWaits } from './lock_waits.ts'
import { withConnection } from './sql.ts'

/**
 * Holds the head row of a session while `action` runs, so that no append to it can commit, and lets go
 * when `release` is called or the action ends. `waiting` resolves when an append waits for the row, or as many as
 * it is told.
 */
export async function whileSessionIsHeld<T>(
  databaseUrl: string,
  projectId: string,
  sessionId: string,
  action: (held: { waiting(appends?: number): Promise<void>; release(): Promise<void> }) => Promise<T>,
): Promise<T> {
  return withConnection(databaseUrl, async (connection) => {
    await connection.query('BEGIN')
    await connection.query(
      'SELECT last_seq FROM session_heads WHERE project_id = $1 AND session_id = $2 FOR UPDATE',
      [projectId, sessionId],
    )
    const waiting = (appends = 1) =>
      vi.waitFor(
        async () => {
          const blocked = await lockWaits(databaseUrl, '%session_heads%', FUNCTION_CALLS)
          if (blocked < appends) throw new Error(`${blocked} of ${appends} appends wait for the held session`)
        },
        { timeout: 10_000, interval: 20 },
      )
    const release = async () => {
      await connection.query('ROLLBACK')
    }
    return action({ waiting, release })
  })
}
