import { setTimeout as sleep } from 'node:timers/promises'
import { type Background, each, insist, Loop, pausesForRequests } from '../lifecycle/background.js'
import { timestampText } from '../lists/resource_json.js'
import { askingEveryProject, planned, prepared, type Statement } from '../postgres/statement.js'

const POLL_MS = 10_000
const LEASE_S = 60

export interface PassPlace {
  session_id: string
  seq: number
}

/** A table with a row for each project that is not done: session_id, seq and leased_until. */
export interface PassTable {
  table: string
  /** In the statements' names. */
  name: string
  /** A column that counts entries. */
  counts?: string
  /** SQL: which rows `r` may go when nothing is left. */
  ends?: string
}

/** A project is worked on by one process at a time, until `leased_until`. Parameters of all but `find`: $1 project. */
export interface PassStatements {
  /** Projects that nobody works on. Rows: project_id. */
  find: Statement
  /** $2 seconds. Row: session_id, seq, leased_until, if it is free. */
  take: Statement
  /** $2 leased_until, $3 session, $4 seq, $5 seconds, and with `counts` $6 entries. Row: leased_until, if it is still this one's. */
  advance: Statement
  /** $2 leased_until. */
  finish: Statement
  /** $2 leased_until. */
  leave: Statement
}

export function passStatements({ table, name, counts, ends }: PassTable): PassStatements {
  const held = 'r.project_id = $1 AND r.leased_until = $2::timestamptz'
  // The lease as text: Citus allows no function of times in RETURNING.
  const leased = (update: string, columns = '') =>
    `WITH l AS (UPDATE ${table} AS r SET ${update}) SELECT ${columns}${timestampText('l.leased_until')} AS leased_until FROM l`
  return {
    find: askingEveryProject(
      planned,
      `find_${name}s`,
      `SELECT r.project_id FROM {${table}} r WHERE r.leased_until <= now() LIMIT 100`,
    ),
    take: prepared(
      `take_${name}`,
      leased(
        `leased_until = now() + make_interval(secs => $2)
WHERE r.project_id = $1 AND r.leased_until <= now() RETURNING r.session_id, r.seq, r.leased_until`,
        'l.session_id, l.seq, ',
      ),
    ),
    advance: prepared(
      `advance_${name}`,
      leased(
        `session_id = $3, seq = $4, leased_until = now() + make_interval(secs => $5)${
          counts ? `, ${counts} = r.${counts} + $6` : ''
        } WHERE ${held} RETURNING r.leased_until`,
      ),
    ),
    finish: prepared(
      `finish_${name}`,
      `DELETE FROM ${table} AS r WHERE ${held}${ends ? ` AND ${ends}` : ''}`,
    ),
    leave: {
      ...prepared(`leave_${name}`, `UPDATE ${table} AS r SET leased_until = now() WHERE ${held}`),
      outlivesAbort: true,
    },
  }
}

export type PassPiece = (
  project_id: string,
  place: PassPlace,
) => Promise<(PassPlace & { entries?: number }) | undefined>

/**
 * Works through all sessions of projects, once, at each node:
 *
 *   the poll ──▶ a project that has some ──▶ this node takes its lease ──▶ a piece is done, and the place is moved after
 *   it ──▶ … ──▶ the project's row is deleted
 *
 * A lease ends by the database's clock, so a node that was killed leaves its work to others. A piece may be done twice.
 */
export function passThroughProjects(
  background: Background,
  statements: PassStatements,
  failure: string,
  piece: PassPiece,
): Loop {
  const { database, signal } = background
  const pauseAfter = pausesForRequests()
  const workOn = async (project_id: string) => {
    const [taken] = await database.query(statements.take, [project_id, LEASE_S])
    if (!taken) return
    let leased_until = taken.leased_until!
    let place: PassPlace = { session_id: taken.session_id!, seq: Number(taken.seq) }
    try {
      while (!signal.aborted) {
        const began = performance.now()
        const done = await piece(project_id, place)
        if (!done) {
          await database.query(statements.finish, [project_id, leased_until])
          return
        }
        place = done
        const moved = [project_id, leased_until, place.session_id, place.seq, LEASE_S]
        const counted = done.entries === undefined ? [] : [done.entries]
        const [kept] = await database.query(statements.advance, [...moved, ...counted])
        if (!kept) return
        leased_until = kept.leased_until!
        const pause_ms = pauseAfter(performance.now() - began)
        await sleep(pause_ms, undefined, { signal, ref: false }).catch(() => undefined)
      }
    } finally {
      const leave = () => database.query(statements.leave, [project_id, leased_until])
      await insist(leave, LEASE_S * 1_000, signal)
    }
  }
  const poll = async () =>
    each(await database.query(statements.find, []), signal, ({ project_id }) => workOn(project_id!))
  return new Loop({ ...background, failure, poll, poll_ms: POLL_MS })
}
