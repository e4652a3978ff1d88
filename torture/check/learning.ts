import { setTimeout as sleep } from 'node:timers/promises'
import type { Lessons } from '../clients/surroundings.ts'
import { OWN, SHARED } from '../world/model.ts'
import type { Server } from '../world/server.ts'

const LOOK_MS = 500

/** Inputs that the ledger has an answer to. $1 project. */
const ANSWERED = `
SELECT c.input_hash AS hash FROM learning_calls c WHERE c.project_id = $1 AND c.status IN ('answered', 'applied')`

const KNOWN = 'SELECT c.input_hash AS hash FROM learning_calls c WHERE c.project_id = $1'

/** Statements of a space that cite a session. */
const citing = (condition: string) => `(
    SELECT count(DISTINCT c.statement_id)::int FROM statement_cites c JOIN statements s ON s.project_id = $1 AND s.id = c.statement_id
    WHERE c.project_id = $1 AND c.learning_space_id = l.id AND c.session_id = l.session_id AND s.${condition})`

/** What spaces have of their sessions. $1 project, $2 sessions, $3 the space of each. */
const LEARNT = `
SELECT l.id AS space_id, l.session_id,
  coalesce(x.status, 'unknown') AS status, x.error, coalesce(x.learnt_seq = h.last_seq AND x.reflected_seq = h.last_seq, false) AS is_whole,
  ARRAY (SELECT c.input_hash FROM learning_calls c WHERE c.project_id = $1 AND c.learning_space_id = l.id
    AND c.session_id = l.session_id AND c.step = 'reflect' AND c.status = 'applied') AS reflections,
  ${citing("author = 'rule'")} AS by_rules,
  ${citing(`text LIKE '${OWN}%'`)} AS own,
  ${citing(`text LIKE '${SHARED}%'`)} AS shared
FROM unnest($2::uuid[], $3::uuid[]) AS l (session_id, id)
LEFT JOIN session_heads h ON h.project_id = $1 AND h.session_id = l.session_id
LEFT JOIN space_sessions x ON x.project_id = $1 AND x.learning_space_id = l.id AND x.session_id = l.session_id`

const MARKS = 'SELECT c.session_id FROM change_marks c WHERE c.project_id = $1'

/** How many active statements a skill had at each of its versions, in order, and how many it has. $1 project. */
const VERSIONS = `
SELECT k.id, count(v.id)::int AS versions, array_agg(n.size ORDER BY n.size) AS sizes,
  (SELECT count(*)::int FROM statements s WHERE s.project_id = $1 AND s.skill_id = k.id AND s.state = 'active') AS active
FROM skills k LEFT JOIN skill_versions v ON v.project_id = $1 AND v.skill_id = k.id
  CROSS JOIN LATERAL (SELECT count(*)::int AS size FROM jsonb_object_keys(v.statements)) n
WHERE k.project_id = $1 GROUP BY k.id`

interface Learnt {
  space_id: string
  session_id: string
  status: string
  error: string | null
  is_whole: boolean
  /** Their inputs, as the ledger names them. */
  reflections: string[]
  by_rules: number
  own: number
  shared: number
}

/**
 * Watches learning spaces: each session is learnt from once, whatever is killed, and no input is sent to the model once
 * its answer is in the ledger.
 */
export class Learning {
  private caught_up_ms = 0
  private versions = 0
  private readonly postgres: Server
  private readonly lessons: Lessons
  /** By input, performance.now() at which it was known that there is an answer. */
  private readonly answered = new Map<string, number>()
  private isWatching = true
  private readonly watching: Promise<void>

  constructor(postgres: Server, lessons: Lessons) {
    this.postgres = postgres
    this.lessons = lessons
    this.watching = this.watch()
  }

  /** Waits until everything was learnt, or for as long as that may take. Returns what went wrong, a sentence each. */
  async problems(wait_ms_max: number): Promise<string[]> {
    const began = performance.now()
    let behind = await this.behind()
    while (behind.length > 0 && performance.now() - began < wait_ms_max) {
      await sleep(LOOK_MS)
      behind = await this.behind()
    }
    this.caught_up_ms = performance.now() - began
    this.isWatching = false
    await this.watching
    return [...behind, ...(await this.twice()), ...(await this.sentOutside()), ...(await this.gaps())]
  }

  /** What was learnt, and how long it took after the last write. */
  figures() {
    const { sessions, model } = this.lessons
    return {
      sessions: sessions.length,
      inputs: new Set(model.sent.map(({ hash }) => hash)).size,
      calls: model.sent.length,
      versions: this.versions,
      took_ms: this.caught_up_ms,
    }
  }

  private async behind(): Promise<string[]> {
    const unlearnt = (await this.learnt()).filter(
      ({ status, is_whole }) => status !== 'completed' || !is_whole,
    )
    const marks = await this.ask<{ session_id: string }>(MARKS)
    return [
      ...unlearnt.map(
        ({ session_id, space_id, status, error }) =>
          `session ${session_id} was not learnt by space ${space_id}: it is ${status} (${error ?? 'no error'})`,
      ),
      ...marks.map(({ session_id }) => `session ${session_id} has a mark that learning has not taken`),
    ]
  }

  /**
   * The model is asked about a session once, when it has its outcome. It may have been asked before, once: where the
   * database's clock was set, the session seemed to be quiet for ten minutes. Such an input may wait for the model, and be
   * sent when the outcome has come.
   */
  private async twice(): Promise<string[]> {
    const early = new Set(
      this.lessons.model.sent.filter(({ with_outcome }) => !with_outcome).map(({ hash }) => hash),
    )
    return (await this.learnt()).flatMap(({ session_id, space_id, reflections, by_rules, own, shared }) => {
      const before = reflections.filter((hash) => early.has(hash)).length
      const wanted = { reflections: 1 + Math.min(before, 1), by_rules: 1, own: reflections.length, shared: 1 }
      return Object.entries({ reflections: reflections.length, by_rules, own, shared })
        .map(([what, count]) => ({ what, count, of: wanted[what as keyof typeof wanted] }))
        .filter(({ count, of }) => count !== of)
        .map(
          ({ what, count, of }) =>
            `space ${space_id} has ${count} ${what} of session ${session_id}, not ${of}`,
        )
    })
  }

  private async sentOutside(): Promise<string[]> {
    const known = new Set((await this.ask<{ hash: string }>(KNOWN)).map(({ hash }) => hash))
    return this.lessons.model.sent.flatMap(({ hash, at }) => [
      ...(known.has(hash) ? [] : [`input ${hash} was sent to the model and is not in the ledger`]),
      ...(at > (this.answered.get(hash) ?? Infinity)
        ? [`input ${hash} was sent to the model after its answer was in the ledger`]
        : []),
    ])
  }

  /**
   * Each version of a skill has one statement more than another one, and the largest has all. Which came first, their times
   * do not tell: the faults set the database's clock back.
   */
  private async gaps(): Promise<string[]> {
    const skills = await this.ask<{ id: string; versions: number; sizes: number[]; active: number }>(VERSIONS)
    this.versions = skills.reduce((sum, { versions }) => sum + versions, 0)
    return skills
      .filter(
        ({ sizes, active }) => sizes.at(-1) !== active || sizes.some((size, at) => size !== sizes[0]! + at),
      )
      .map(
        ({ id, sizes, active }) =>
          `skill ${id} has ${active} statements, and versions of ${sizes.join(', ')}`,
      )
  }

  private learnt(): Promise<Learnt[]> {
    const { sessions } = this.lessons
    const [session_ids, space_ids] = [
      sessions.map((one) => one.session_id),
      sessions.map((one) => one.space_id),
    ]
    return this.ask<Learnt>(LEARNT, [session_ids, space_ids])
  }

  private async watch(): Promise<void> {
    for (; this.isWatching; await sleep(LOOK_MS)) {
      // While the database is away, nothing can be learnt of it.
      const rows = await this.ask<{ hash: string }>(ANSWERED).catch(() => [])
      const now = performance.now()
      for (const { hash } of rows) if (!this.answered.has(hash)) this.answered.set(hash, now)
    }
  }

  private ask<Row>(statement: string, values: unknown[] = []): Promise<Row[]> {
    const { project_id } = this.lessons.tenant
    return this.postgres.ask<Row & Record<string, unknown>>(statement, [project_id, ...values], 'annals')
  }
}
