import type pg from 'pg'
import { vi } from 'vitest'
import { whileSessionIsHeld } from './held_session.ts'
import { lockWaits } from './lock_waits.ts'
import { queryRows, withConnection } from './sql.ts'

/** A copy that is under way, and cannot go on. */
export interface HeldCopy {
  /** The session that it will be. */
  id: string
  /** Lets it go on. */
  release(): Promise<void>
}

/**
 * Holds the copy of a session when it has copied all entries before `seq`, and lets go when `release` is called or
 * `action` ends. `start` asks for the copy.
 */
export async function whileCopyIsHeld<T>(
  databaseUrl: string,
  copied: { project_id: string; session_id: string; seq: number },
  start: () => void,
  action: (held: HeldCopy) => Promise<T>,
): Promise<T> {
  const { project_id, session_id, seq } = copied
  return withConnection(databaseUrl, (gate) =>
    withConnection(databaseUrl, async (blocker) => {
      await whileSessionIsHeld(databaseUrl, project_id, session_id, async ({ waiting }) => {
        start()
        await waiting()
        await gate.query('BEGIN')
        await gate.query('LOCK TABLE entries IN SHARE MODE')
      })
      // The copy begins, which gives it its id, and its first slice waits for the table.
      const id = await vi.waitFor(
        async () => {
          const [row] = await queryRows<{ id: string }>(
            databaseUrl,
            'SELECT session_id AS id FROM erased_sessions WHERE project_id = $1 AND source_id = $2',
            [project_id, session_id],
          )
          if (!row) throw new Error('The copy has not begun')
          return row.id
        },
        { timeout: 20_000, interval: 20 },
      )
      // It then waits for an entry in its place that somebody else may or may not commit.
      await blocker.query('BEGIN')
      await withConnection(databaseUrl, async (brake) => {
        // The first slice cannot end, and so no other can come before the entry.
        await brake.query('BEGIN')
        await brake.query(
          'SELECT FROM erased_sessions WHERE project_id = $1 AND session_id = $2 FOR UPDATE',
          [project_id, id],
        )
        const placed = blocker.query(
          `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
           VALUES ($1, $2, $3, now(), now(), gen_random_uuid(), 2, 0, 'event', 'in the way', '{}')`,
          [project_id, id, seq],
        )
        await untilWaiting(databaseUrl, gate, 2)
        await gate.query('ROLLBACK')
        await placed
      })
      // A slice that has not yet noticed that nobody holds the table does not count.
      await untilWaiting(databaseUrl, blocker, 1)
      const release = async () => {
        await blocker.query('ROLLBACK')
      }
      return action({ id, release })
    }),
  )
}

function untilWaiting(databaseUrl: string, holder: pg.Client, statements: number): Promise<void> {
  return vi.waitFor(
    async () => {
      const waiting = await lockWaits(databaseUrl, holder)
      if (waiting < statements) throw new Error(`${waiting} of ${statements} statements wait`)
    },
    { timeout: 20_000, interval: 20 },
  )
}
