import { readdirSync } from 'node:fs'
import type { ListPosition } from '../../packages/server/src/lists/keyset_queries.ts'
import type { Statement } from '../../packages/server/src/postgres/statement.ts'
import { LAST_ACTIVITY } from '../../packages/server/src/sessions/last_activity.ts'

const SOURCES = new URL('../../packages/server/src/', import.meta.url)
const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const TIME = '2026-01-02T00:00:00.000000Z'

/** Exported functions that give text for statements, and no statement. */
const GIVES_TEXT =
  /(Json|Text|Terms|Term|^rememberAnswer$|^ofUser|^beside|^composed|^directionOf|^listParameters|^listStatement|^termsStatement)$|^(beside|composed)$/

type Composer = (...given: never[]) => { statement: Statement } | Statement
/** What a composer is called with to give all its statements; one that is not here fails the test. */
const CALLS: Record<string, unknown[][]> = {
  listSessions: lists({ configs: '{"a":1}' }),
  listSessionsByActivity: lists({ configs: '{"a":1}' }),
  leaseMarks: [[LAST_ACTIVITY]],
  scanSlice: [['entries'], [LAST_ACTIVITY.name, LAST_ACTIVITY.isBehind]],
  listLearningSpaces: lists({ meta: '{"a":1}' }),
  listUsers: positions().map((position) => [ID, position]),
  readEntries: product(
    ['event', 'item', 'message', 'message_id', 'message_meta'],
    [true, false],
    [{}, { kind: 'message' }, { kind: 'event' }, { type: 'a' }],
  ).map(([view, time_desc, more]) => [
    {
      project_id: ID,
      session_id: ID,
      limit: 50,
      above_seq: 0,
      below_seq: 51,
      time_desc,
      ...(more as object),
    },
    view,
    1_000_000,
  ]),
  exportUsers: [undefined, ID].map((after) => [
    { project_id: ID, identifier: after && 'ada', after, limit: 100 },
  ]),
  exportOwned: product(
    ['sessions', 'learning_spaces'],
    [undefined, { first: ID, last: ID }],
    [undefined, { user_id: ID, created_at: TIME, id: ID }],
  ).map(([table, range, after]) => [table, { project_id: ID, range, after, limit: 100 }]),
  findOldSessions: product(
    [{}, { user_id: ID }, { configs: '{"a":1}' }],
    [undefined, { created_at: TIME, id: ID }],
  ).map(([more, after]) => [{ project_id: ID, untouched_since: TIME, ...(more as object) }, after, 100]),
  countSessionsOverTime: product([{}, { user_id: ID }], [{}, { configs: '{"a":1}' }]).map(
    ([user, configs]) => [{ project_id: ID, ...(user as object), ...(configs as object) }],
  ),
  countOldSessions: [[{ project_id: ID, untouched_since: TIME }]],
}

/**
 * Every statement of the product: what the files called _queries.ts export, and what their composers give. A new one is
 * among them by itself; a new composer is refused until it is called above.
 */
export async function everyStatement(): Promise<Statement[]> {
  const found = new Map<string, Statement>()
  for (const file of queryFiles()) {
    const exported = (await import(new URL(file, SOURCES).href)) as Record<string, unknown>
    for (const [name, value] of Object.entries(exported)) {
      const statements =
        typeof value === 'function' ? composedBy(name, value as Composer) : statementsIn(value)
      for (const statement of statements) found.set(`${statement.name}: ${statement.text}`, statement)
    }
  }
  return [...found.values()]
}

function queryFiles(): string[] {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  return files.filter((name) => name.endsWith('_queries.ts')).sort()
}

function composedBy(name: string, composer: Composer): Statement[] {
  if (GIVES_TEXT.test(name)) return []
  const calls = CALLS[name]
  if (!calls) throw new Error(`Say in tests/database/every_statement.ts how ${name} is called.`)
  const made = calls.map((given) => composer(...(given as never[])))
  return made.map((one) => ('statement' in one ? one.statement : one))
}

function statementsIn(value: unknown): Statement[] {
  if (typeof value !== 'object' || value === null) return []
  if ('name' in value && 'text' in value && 'prepared' in value) return [value as Statement]
  return Object.values(value).flatMap(statementsIn)
}

function positions(): ListPosition[] {
  return product([true, false], [undefined, { created_at: TIME, id: ID }]).map(([time_desc, after]) => {
    return { time_desc, after, limit: 20 } as ListPosition
  })
}

function lists(filter: object): unknown[][] {
  return product([{}, { user: 'ada' }], [{}, filter], positions()).map(([user, document, position]) => {
    return [{ project_id: ID, ...(user as object), ...(document as object) }, position]
  })
}

function product(...choices: unknown[][]): unknown[][] {
  return choices.reduce<unknown[][]>(
    (all, options) => all.flatMap((chosen) => options.map((option) => [...chosen, option])),
    [[]],
  )
}
