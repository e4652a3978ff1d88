import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Asked, ModelServer } from '../lab/model_server.ts'
import { BenchFailure } from './failure.ts'
import type { BenchContext } from './part.ts'
import type { BenchDatabase } from './postgres.ts'
import type { Run } from './recorded_runs.ts'
import type { Service } from './service.ts'
import { callApi } from './sessions.ts'

const WAIT_MS_MAX = 300_000

export interface LearntStatement {
  kind: string
  state: string
  cites: { session_id: string; seq: number; quote: string }[]
}

/** Has spaces of a service learn, and looks at what its database has. */
export class Learner {
  readonly service: Service
  private readonly client: pg.Client
  private connected: Promise<unknown> | undefined

  constructor(service: Service, database: BenchDatabase) {
    this.service = service
    this.client = new pg.Client({ connectionString: database.url })
  }

  close(): Promise<void> {
    return this.client.end()
  }

  async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    this.connected ??= this.client.connect()
    await this.connected
    return (await this.client.query(text, values)).rows
  }

  post<Data = { id: string }>(path: string, body: object, method = 'POST'): Promise<Data> {
    return callApi(this.service, { method, path: `/api/v1${path}`, body: JSON.stringify(body) })
  }

  async newSpace(mode: string): Promise<string> {
    const { id } = await this.post('/learning_spaces', {})
    await this.post(`/learning_spaces/${id}/policy`, { mode }, 'PUT')
    return id
  }

  /** Stores runs as sessions, and waits until the space has learnt from all. Returns the sessions. */
  async learn(space: string, runs: readonly Run[]): Promise<string[]> {
    const sessions = await this.give(space, runs)
    await this.until(
      `SELECT count(*)::int AS left FROM space_sessions WHERE learning_space_id = '${space}' AND (status <> 'completed' OR reflected_seq = 0)`,
    )
    return sessions
  }

  async give(space: string, runs: readonly Run[]): Promise<string[]> {
    const sessions: string[] = []
    for (const { user, messages, reward, group } of runs) {
      const { id } = await this.post('/session', { user })
      const outcome = { kind: 'event', type: 'outcome', data: { reward, group } }
      const entries = [
        ...messages.map((blob) => ({ kind: 'message', blob })),
        ...(reward === undefined ? [] : [outcome]),
      ]
      await this.post(`/session/${id}/entries`, { entries })
      await this.post(`/learning_spaces/${space}/learn`, { session_id: id, now: true })
      sessions.push(id)
    }
    return sessions
  }

  /** Waits until a count is 0. */
  async until(count: string): Promise<void> {
    for (const end = performance.now() + WAIT_MS_MAX; performance.now() < end; await sleep(200))
      if ((await this.query<{ left: number }>(count))[0]!.left === 0) return
    throw new BenchFailure(`Learning did not end within ${WAIT_MS_MAX / 1_000} s.`)
  }

  async statements(space: string): Promise<LearntStatement[]> {
    const path = `/api/v1/learning_spaces/${space}/statements?limit=200`
    return (await callApi<{ items: LearntStatement[] }>(this.service, { method: 'GET', path })).items
  }

  /** The share of statements whose quotes all stand in the entries that they cite, in whatever JSON these are. */
  async rightQuotes(statements: readonly LearntStatement[]): Promise<number> {
    let right = 0
    for (const { cites } of statements) {
      const found: boolean[] = []
      for (const { session_id, seq, quote } of cites) {
        const place = [session_id, seq]
        const [entry] = await this.query<{ data: unknown }>(
          'SELECT data FROM entries WHERE session_id = $1 AND seq = $2',
          place,
        )
        found.push(entry !== undefined && textsOf(entry.data).some((text) => text.includes(quote)))
      }
      right += Number(found.length > 0 && found.every(Boolean))
    }
    return right / statements.length
  }

  /** Rows of all tables that have one of the words. */
  async occurrences(words: readonly string[]): Promise<number> {
    const tables = await this.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
    )
    let rows = 0
    for (const { name } of tables) {
      const [found] = await this.query<{ rows: number }>(
        `SELECT count(*)::int AS rows FROM "${name}" t WHERE t::text ~* $1`,
        [words.join('|')],
      )
      rows += found!.rows
    }
    return rows
  }
}

/** All strings in a JSON value; a call counts as its name and its arguments. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  const { name, arguments: given } = value as Record<string, unknown>
  return [`${name} ${given}`, ...Object.values(value).flatMap(textsOf)]
}

/** Errors of tools that recur in several tasks, counted without the rules' code: the places of their runs. */
export function expectedErrors(runs: readonly Run[]): number[][] {
  const errors = new Map<string, Set<number>>()
  for (const [index, { messages }] of runs.entries())
    for (const { role, name, content } of messages)
      if (role === 'tool' && content?.startsWith('Error')) {
        const key = `${name} ${content.replace(/\S*\d\S*/g, '#')}`
        errors.set(key, (errors.get(key) ?? new Set()).add(index))
      }
  return [...errors.values()]
    .map((places) => [...places])
    .filter((places) => new Set(places.map((place) => runs[place]!.group)).size > 1)
}

/** Words with digits that only runs of this user have. */
export function wordsOfUser(runs: readonly Run[], user: string): string[] {
  const words = (own: boolean) =>
    new Set(
      runs
        .filter((run) => (run.user === user) === own)
        .flatMap((run) => JSON.stringify([run.user, run.messages]).match(/\w{6,}/g) ?? []),
    )
  const others = words(false)
  return [...words(true)].filter((word) => /\d/.test(word) && /[A-Za-z]/.test(word) && !others.has(word))
}

/** Kills a node again and again while it learns. Returns how many inputs were sent after they had been answered. */
export async function killWhileLearning(
  ctx: BenchContext,
  model: ModelServer,
  env: Record<string, string>,
  kills: number,
): Promise<number> {
  const database = await ctx.createDatabase()
  let service = await ctx.startService(database, env)
  let learner = new Learner(service, database)
  const textOf = ({ data }: Asked) => data.runs![0]!.entries[0]!.text
  model.asked.length = 0
  model.script = async () => {
    await sleep(40)
    return { answer: { statements: [] } }
  }
  const texts = Array.from({ length: kills * 15 }, (_, number) => `This is what I saw: ${number}.`)
  const space = await learner.newSpace('suggest')
  const sessions = await learner.give(
    space,
    texts.map((content) => ({ user: 'ada', messages: [{ role: 'assistant', content }] })),
  )
  let again = 0
  for (let kill = 0; kill < kills; kill++) {
    const from = model.asked.length
    while (model.asked.length < from + 5) await sleep(1)
    await sleep(Math.random() * 60)
    process.kill(service.pid, 'SIGKILL')
    const rows = await learner.query<{ session_id: string }>(
      "SELECT session_id FROM learning_calls WHERE status IN ('answered', 'applied')",
    )
    const answered = new Set(rows.map(({ session_id }) => texts[sessions.indexOf(session_id)]))
    const killed = model.asked.length
    await learner.close()
    service = await ctx.startService(database, env)
    learner = new Learner(service, database)
    while (model.asked.length <= killed) await sleep(5)
    again += model.asked.slice(killed).filter((asked) => answered.has(textOf(asked))).length
  }
  await learner.close()
  return again
}
