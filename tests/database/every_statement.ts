import { readdirSync } from 'node:fs'
import { backedUp } from '../../packages/archive/src/backup/backup_queries.ts'
import { ownOf } from '../../packages/archive/src/tables.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { tablesThatWait } from '../../packages/kits/src/lifecycle/stepped_clock.ts'
import { isOwner, type Table } from '../../packages/kits/src/lifecycle/table.ts'
import type { ListPosition } from '../../packages/kits/src/lists/listed.ts'
import type { Statement } from '../../packages/kits/src/postgres/statement.ts'
import { LEARNING_SPACES } from '../../packages/server/src/learning/learning_space_queries.ts'
import { learnByRules } from '../../packages/server/src/learning/rules/learn_by_rules.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { LAST_ACTIVITY } from '../../packages/server/src/sessions/last_activity.ts'
import { SESSIONS } from '../../packages/server/src/sessions/session_queries.ts'

const SOURCES = ['archive', 'kits', 'server'].map(
  (name) => new URL(`../../packages/${name}/src/`, import.meta.url),
)
const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const TIME = '2026-01-02T00:00:00.000000Z'

/** Exported functions that give text for statements, and no statement. */
const GIVES_TEXT =
  /(Json|Text|Terms|Term|Parameters|^by(Seq|Id)$|^rememberAnswer|^refuseReservedId|^beside|^composed|^directionOf|^parentFilterOf|^listStatement|^termsStatement)$|^(beside|composed)$/

const PARENTS = [{}, { parent: ID }, { parent: 'none' }]

type Composer = (...given: never[]) => unknown

const CONSUMERS = [
  LAST_ACTIVITY,
  learnByRules(false, async () => ({ errors: [], tools: {}, outcome: undefined })),
]
const { tables, all_tables } = registryOf(MODULES)
const exported = tables.filter((table) => table.exported)
const owners = tables.filter(isOwner)
const afterOf = (table: Table) =>
  (table.order ?? table.key).map((name) => (name === 'created_at' ? TIME : ID))

/** What lists of runs and requests are narrowed to. */
const REACHES = [undefined, 'session_id', 'user', 'parent']

/** What a composer is called with to give all its statements; one that is not here fails the test. */
const CALLS: Record<string, unknown[][]> = {
  // Numbers, and no statement.
  seqsBetween: [[1]],
  filteredList: [SESSIONS, LEARNING_SPACES].flatMap((list) =>
    lists(list === SESSIONS ? PARENTS : [{}]).map((given) => [list, ...given]),
  ),
  eraseRows: [
    ...tables.map((table) => [table]),
    ...tables.flatMap((table) =>
      table.also_erased_with ? [[table, `${table.also_erased_with.kind}_id`]] : [],
    ),
  ],
  eraseOwners: owners.map((table) => [table]),
  countSome: product(
    owners.filter(({ erased_with }) => erased_with === 'user'),
    [true, false],
  ),
  restoreStatements: exported.filter((table) => !ownOf(table).restore).map((table) => [table, undefined]),
  backedUp: [],
  passStatements: [],
  readCatalogue: backedUp(all_tables).map((table) => [table]),
  findCatalogue: backedUp(all_tables).map((table) => [table]),
  restoreCatalogue: backedUp(all_tables).map((table) => [table, [table.backed_up.key]]),
  verifyPiece: tables.filter((table) => !ownOf(table).verify).map((table) => [table, tables]),
  rowChecks: [],
  measureStatements: [[tables]],
  nextProjectStatements: [[all_tables]],
  exportOne: exported.filter(({ kind }) => kind === 'session' || kind === 'user').map((table) => [table]),
  listSessionsByActivity: lists(PARENTS),
  listSessionsByPrefix: positions().map((position) => [{ prefix: '0193' }, { project_id: ID }, position]),
  findOverdue: tablesThatWait(all_tables).map((table) => [table]),
  endOverdue: tablesThatWait(all_tables).map((table) => [table]),
  leaseMarks: CONSUMERS.map((consumer) => [consumer]),
  scanSlice: [['entries'], ...CONSUMERS.map(({ name, isBehind }) => [name, isBehind])],
  readEntries: product(
    ['event', 'item', 'message', 'whole_message', 'context_message', 'message_id', 'message_meta'],
    [true, false],
    [
      ...[{}, { kind: 'message' }, { kind: 'message', as_of_seq: 40 }, { kind: 'event' }, { type: 'a' }],
      ...[{ is_short: true }, { kind: 'message', is_short: true }],
      ...[
        { kind: 'message', as_of_seq: 40, is_short: true },
        { seen: { seq: 1, created_at: TIME }, is_short: true },
      ],
      { seen: { seq: 1, created_at: TIME } },
    ],
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
  exportOwned: exported
    .filter(({ kind, erased_with }) => kind === 'user' || erased_with !== 'project')
    .flatMap((table) =>
      product([null, [ID, ID]], [undefined, afterOf(table)]).map(([owner_ids, after]) => [
        table,
        { project_id: ID, owner_ids: after && owner_ids ? [ID] : owner_ids, after, limit: 100 },
      ]),
    ),
  findOldSessions: product(
    [{}, { user_id: ID }, { configs: '{"a":1}' }],
    [undefined, { created_at: TIME, id: ID }],
  ).map(([more, after]) => [{ project_id: ID, untouched_since: TIME, ...(more as object) }, after, 100]),
  countSessionsOverTime: product([{}, { user_id: ID }], [{}, { configs: '{"a":1}' }]).map(
    ([user, configs]) => [{ project_id: ID, ...(user as object), ...(configs as object) }],
  ),
  countTools: product([{}, { user_id: ID, configs: '{"a":1}' }, { from: TIME, to: TIME }]).map(([more]) => [
    { project_id: ID, ...(more as object) },
    100,
  ]),
  groupFailures: product([{}, { user_id: ID, configs: '{"a":1}' }, { from: TIME, to: TIME }]).map(
    ([more]) => [{ project_id: ID, name: 'find', ...(more as object) }, 20],
  ),
  findOrCreateSkill: [],
  reachedRows: [],
  listSkills: ['ada', undefined].flatMap((user) => positions().map((position) => [ID, user, position])),
  listRequests: product(['open', 'resolved', 'expired'], ['asc', 'desc'], REACHES),
  listRuns: product(['running', 'waiting', 'queued'], REACHES),
  listStatements: positions().map((position) => [{ project_id: ID, learning_space_id: ID }, position]),
  countOldSessions: [[{ project_id: ID, untouched_since: TIME }]],
}

/**
 * Every statement of the product: what the files called _queries.ts and a few others export, and what their composers return. A new one is
 * among them by itself; a new composer is refused until it is called above.
 */
export async function everyStatement(): Promise<Statement[]> {
  const found = new Map<string, Statement>()
  for (const file of queryFiles()) {
    const exported = (await import(file)) as Record<string, unknown>
    for (const [name, value] of Object.entries(exported)) {
      const statements =
        typeof value === 'function'
          ? composedBy(name, value as Composer, file.endsWith('_queries.ts'))
          : statementsIn(value)
      for (const statement of statements) found.set(`${statement.name}: ${statement.text}`, statement)
    }
  }
  return [...found.values()]
}

/** Files with statements beside the one thing that runs them. Of their functions, those called above compose. */
const RUN_WHERE_THEY_STAND = [
  'lists/listed.ts',
  'lifecycle/stepped_clock.ts',
  'lifecycle/erase/erasure.ts',
  'log/append/look_up.ts',
  'log/read/read_log.ts',
  'sessions/erase/prune.ts',
  'sessions/recount_tokens.ts',
]

function queryFiles(): string[] {
  return SOURCES.flatMap((folder) => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    const named = files
      .filter((name) => name.endsWith('_queries.ts') || RUN_WHERE_THEY_STAND.includes(name))
      .sort()
    return named.map((name) => new URL(name, folder).href)
  })
}

function composedBy(name: string, composer: Composer, isOfQueries: boolean): Statement[] {
  if (GIVES_TEXT.test(name)) return []
  const calls = CALLS[name] ?? (isPlainList(name, composer) ? positions().map((at) => [ID, at]) : undefined)
  if (!calls && !isOfQueries) return []
  if (!calls) throw new Error(`Say in tests/database/every_statement.ts how ${name} is called.`)
  return calls.flatMap((given) => statementsIn(composer(...(given as never[]))))
}

/** The list of a resource without filters is called with a project and a position. */
function isPlainList(name: string, { length }: Composer): boolean {
  return /^list[A-Z]/.test(name) && length === 2
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

function lists(parents: object[]): unknown[][] {
  const filters = product([{}, { user: 'ada' }], [{}, { document: '{"a":1}' }], parents)
  return product(filters, positions()).map(([filter, position]) => {
    return [Object.assign({ project_id: ID }, ...(filter as object[])), position]
  })
}

function product(...choices: unknown[][]): unknown[][] {
  return choices.reduce<unknown[][]>(
    (all, options) => all.flatMap((chosen) => options.map((option) => [...chosen, option])),
    [[]],
  )
}
