import { addCounts } from '@annals/kits/lifecycle/erase/erasure.js'
import type { TableRegistry } from '@annals/kits/lifecycle/registry.js'
import { type Check, type Counts, ORPHAN, type Table } from '@annals/kits/lifecycle/table.js'
import type { Database, Tenant } from '@annals/kits/postgres/database.js'
import type { Anchor } from 'annals/dist/proof/anchor.js'
import { CHAIN_CHECKS } from '../proof/proof_check_queries.js'
import { ANCHOR_CHECKS, verifyAnchors, verifyChains } from '../proof/verify_proof.js'
import { ownOf } from '../tables.js'
import { type CheckedPiece, type Finding, type PieceFindings, readFindings } from './findings.js'
import {
  LIST_PROJECT_NAMES,
  measureStatements,
  nextProjectStatements,
  PROJECT_IS_KNOWN,
  rowChecks,
  TOKENS_WITHOUT_PROJECT,
  verifyPiece,
} from './verify_queries.js'

/** Findings of one check in one project that are reported individually; further ones are only counted. */
const REPORTED_MAX = 10

/** A project that was found. `name` is null for rows of a project that does not exist. */
export interface VerifiedProject {
  id: string
  name: string | null
  counts: Counts
  findings: number
}

export interface ReportedFinding extends Finding {
  project_id: string
  project: string | null
}

/** The result of a run; no findings mean that the database is sound. */
export interface Verification {
  projects: VerifiedProject[]
  /** A few of each check and project. */
  findings: ReportedFinding[]
  /** All of them, by check. */
  found: Record<string, number>
}

export interface VerifyOptions {
  registry: TableRegistry
  /** The only project to check; undefined: all. */
  only: Project | undefined
  /** Whether the links of chains are made anew as well, which reads all entries once more. */
  proof?: boolean
  /** An anchor file, as it was read, to compare with. */
  anchors?: { anchors: readonly Anchor[]; wrong: ReadonlyArray<{ nth: number; reason: string }> }
  /** Called with the approximate number of rows before the first is read. */
  onMeasured: (rows: number) => void
  onProgress: (rows: number) => void
}

/** Checks that a database holds what Annals promises, or reports what is wrong. Only reads. */
export async function verifyDatabase(database: Database, options: VerifyOptions): Promise<Verification> {
  const { only } = options
  options.onMeasured(await measure(database, options.registry, only?.id))
  const known = only ? [only] : await listProjects(database)
  const result: Verification = { projects: [], findings: [], found: {} }
  let rows_before = 0
  const verify = async (project: Project) => {
    let rows = 0
    await verifyOne(database, options, project, result, (rows_of_project) => {
      rows = rows_of_project
      options.onProgress(rows_before + rows)
    })
    rows_before += rows
  }
  for (const project of known) await verify(project)
  if (!only)
    await verifyTheRest(database, options.registry, new Set(known.map(({ id }) => id)), verify, result)
  return result
}

/** The number of rows, in one project or in all. Each table is counted by a separate statement. */
async function measure(
  database: Database,
  { tables }: TableRegistry,
  project_id: string | undefined,
): Promise<number> {
  let rows = 0
  for (const statement of measureStatements(tables)) {
    const [row] = await database.query(statement, [project_id ?? null])
    rows += Number(row!.rows)
  }
  return rows
}

interface Project {
  id: string
  name: string | null
}

/**
 * Reads a whole project, a bounded piece at a time, and reports the problems in each. Every statement names the
 * project, so on a cluster it runs where the project is.
 */
async function verifyOne(
  database: Database,
  { registry: { tables }, proof, anchors }: VerifyOptions,
  { id, name }: Project,
  result: Verification,
  onRows: (rows: number) => void,
): Promise<void> {
  const report = reporter(result, { id, name })
  const counts: Counts = {}
  const tenant = { database, project_id: id }
  let rows = 0
  for (const table of tables) {
    const pieces = ownOf(table).verify?.(tenant) ?? verifyRows(tenant, table, tables)
    for (const source of [pieces, ownOf(table).verifyBeyond?.(tenant) ?? []])
      for await (const piece of source) {
        addCounts(counts, piece.counts)
        rows += piece.rows
        onRows(rows)
        report.add(piece.findings)
      }
  }
  if (proof)
    for await (const piece of verifyChains(tenant)) {
      addCounts(counts, piece.counts)
      report.add(piece.findings)
    }
  for await (const piece of anchors ? verifyAnchors(tenant, anchors.anchors) : []) {
    addCounts(counts, piece.counts)
    report.add(piece.findings)
  }
  // Of the file, not of a project: it is told with the first.
  if (result.projects.length === 0)
    for (const { nth, reason } of anchors?.wrong ?? [])
      report.add(single('proof_anchor_file', `anchor ${nth}`, reason))
  result.projects.push({ id, name, counts, findings: report.total() })
}

/** Collects the findings of one project, and reports only a few of each kind. */
function reporter(result: Verification, project: Project) {
  const reported = new Map<string, number>()
  let total = 0
  return {
    add: ({ shown, found }: PieceFindings) => {
      for (const finding of shown) {
        const before = reported.get(finding.check) ?? 0
        if (before >= REPORTED_MAX) continue
        reported.set(finding.check, before + 1)
        result.findings.push({ project_id: project.id, project: project.name, ...finding })
      }
      for (const [check, many] of found) {
        total += many
        result.found[check] = (result.found[check] ?? 0) + many
      }
    },
    total: () => total,
  }
}

/** Rows that belong to no project: rows and tokens of projects that do not exist. */
async function verifyTheRest(
  database: Database,
  registry: TableRegistry,
  known: ReadonlySet<string>,
  verify: (project: Project) => Promise<void>,
  result: Verification,
): Promise<void> {
  for await (const id of projectsWithRows(database, registry)) {
    // A project may have been created since the list was read.
    if (known.has(id) || (await database.query(PROJECT_IS_KNOWN, [id])).length > 0) continue
    reporter(result, { id, name: null }).add(single('project_missing', `project ${id}`, 'not in projects'))
    await verify({ id, name: null })
  }
  for (const { id, project_id } of await database.query(TOKENS_WITHOUT_PROJECT, [])) {
    const finding = single('token_without_project', `token ${id}`, 'its project is not in projects')
    reporter(result, { id: project_id!, name: null }).add(finding)
  }
}

function single(check: string, place: string, detail: string): PieceFindings {
  return { shown: [{ check, session_id: null, place, detail }], found: new Map([[check, 1]]) }
}

async function* projectsWithRows(database: Database, { all_tables }: TableRegistry): AsyncGenerator<string> {
  const statements = nextProjectStatements(all_tables)
  for (let after: string | null = null; ; ) {
    const rows = await Promise.all(statements.map((next) => database.query(next, [after])))
    // As text, UUIDs sort as in PostgreSQL.
    const next: string | undefined = rows.flatMap((one) => one.map((row) => row.project_id!)).sort()[0]
    if (next === undefined) return
    yield next
    after = next
  }
}

async function listProjects(database: Database): Promise<Project[]> {
  const rows = await database.query(LIST_PROJECT_NAMES, [])
  return rows.map((row) => ({ id: row.id!, name: row.name! }))
}

export function allChecks({ tables }: TableRegistry): Record<string, Pick<Check, 'means' | 'todo'>> {
  return {
    ...Object.fromEntries(
      tables.flatMap((table) =>
        Object.entries({
          ...(ownOf(table).checks ?? rowChecks(table, tables)),
          ...ownOf(table).checked_beyond,
        }),
      ),
    ),
    ...CHAIN_CHECKS,
    ...ANCHOR_CHECKS,
    project_missing: { means: 'rows of a project that does not exist', todo: ORPHAN },
    token_without_project: { means: 'a token of a project that does not exist', todo: ORPHAN },
  }
}

/** Bounds of a piece: what one statement reads, how long its snapshot lasts, and how often progress is seen. */
const ROWS_AT_ONCE = 1_000

/** Reads all rows of a table, in the order of its key, and holds them against what the table says of itself. */
async function* verifyRows(
  { database, project_id }: Tenant,
  table: Table,
  tables: readonly Table[],
): AsyncGenerator<CheckedPiece> {
  const statement = verifyPiece(table, tables)
  for (let after: (string | null)[] = table.key.map(() => null); ; ) {
    const { counted, findings } = readFindings(
      await database.query(statement, [project_id, ROWS_AT_ONCE, ...after]),
    )
    const count = Number(counted.count)
    yield { rows: Number(counted.rows), counts: table.is_derived ? {} : { [table.name]: count }, findings }
    if (count < ROWS_AT_ONCE) return
    after = JSON.parse(String(counted.last)) as string[]
  }
}
