import { vi } from 'vitest'
import { lockWaits } from './lock_waits.ts'
import { withConnection } from './sql.ts'

/**
 * Holds the head rows of one or more sessions while `action` runs, so that no append to them can commit, and lets go
 * when `release` is called or the action ends. `waiting` resolves when an append waits for a row, or as many as
 * it is told.
 */
export async function whileSessionIsHeld<T>(
  databaseUrl: string,
  projectId: string,
  sessionIds: string | string[],
  action: (held: { waiting(appends?: number): Promise<void>; release(): Promise<void> }) => Promise<T>,
): Promise<T> {
  return withConnection(databaseUrl, async (connection) => {
    await connection.query('BEGIN')
    await connection.query(
      'SELECT last_seq FROM session_heads WHERE project_id = $1 AND session_id = ANY ($2) FOR UPDATE',
      [projectId, [sessionIds].flat()],
    )
    const waiting = (appends = 1) =>
      vi.waitFor(
        async () => {
          const blocked = await lockWaits(databaseUrl, connection)
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
