import type { Server } from '../world/server.ts'

const POLL_MS = 500

/** Sessions of a project beside its order by last activity, in one snapshot. $1 project. */
const BEHIND = `
SELECT h.session_id, m.session_id IS NOT NULL AS is_marked,
  date_trunc('second', h.updated_at, 'UTC') IS NOT DISTINCT FROM a.active_at AS is_ordered,
  h.updated_at < c.used_at + interval '10 s' AS is_early
FROM session_heads h
JOIN project_consumers c ON c.project_id = h.project_id AND c.consumer = 'last_activity'
LEFT JOIN session_activity a ON a.project_id = h.project_id AND a.session_id = h.session_id
LEFT JOIN change_marks m ON m.project_id = h.project_id AND m.session_id = h.session_id AND m.consumer = c.consumer
WHERE h.project_id = $1 AND (m.session_id IS NOT NULL
  OR date_trunc('second', h.updated_at, 'UTC') IS DISTINCT FROM a.active_at)`

interface Behind {
  session_id: string
  is_marked: boolean
  is_ordered: boolean
  is_early: boolean
}

/**
 * Watches a consumer of changes, the order of a project's sessions by last activity. At every moment a session is at its
 * place in the order or has a mark, whatever was killed; and when nobody writes any more, no mark is left.
 */
export class Consumption {
  private readonly postgres: Server
  private readonly project_id: string
  private readonly lost = new Set<string>()
  /** How long the consumer took to see everything after the last write. */
  caught_up_ms = 0

  constructor(postgres: Server, project_id: string) {
    this.postgres = postgres
    this.project_id = project_id
  }

  /**
   * Notes sessions that changed and have no mark. What changed while nodes may not have heard of the consumer does not
   * count yet: it is looked through later.
   */
  async look(): Promise<void> {
    for (const { session_id, is_marked, is_early } of await this.behind())
      if (!is_marked && !is_early) this.lost.add(session_id)
  }

  /** Waits until everything is consumed, or for as long as that may take. Returns what went wrong, a sentence each. */
  async problems(wait_ms_max: number): Promise<string[]> {
    const began = performance.now()
    let behind = await this.behind()
    for (; behind.length > 0 && performance.now() - began < wait_ms_max; behind = await this.behind())
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    this.caught_up_ms = performance.now() - began
    return [
      ...[...this.lost].map((id) => `session ${id} changed and had no mark for the consumer`),
      ...behind.map(({ session_id: id, is_ordered }) =>
        is_ordered
          ? `the mark of session ${id} is still there ${wait_ms_max} ms after the last write`
          : `session ${id} was not consumed up to its head ${wait_ms_max} ms after the last write`,
      ),
    ]
  }

  private behind(): Promise<Behind[]> {
    return this.postgres.ask<Behind & Record<string, unknown>>(BEHIND, [this.project_id], 'annals')
  }
}
