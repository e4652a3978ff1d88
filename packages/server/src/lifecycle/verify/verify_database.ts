import { AnnalsError } from '../../errors.js'
import type { Database } from '../../postgres/database.js'
import { FIND_PROJECT, LIST_PROJECTS, PROJECT_EXISTS } from '../../projects/project_queries.js'
import type { CheckName } from './verify_check_queries.js'
import { type PieceFindings, type ProjectCounts, verifyProject } from './verify_project.js'
import { MEASURE, NEXT_PROJECT, TOKENS_WITHOUT_PROJECT } from './verify_queries.js'

/** Findings of one check in one project that are reported individually; further ones are only counted. */
const REPORTED_MAX = 10

/** A project that was found. `name` is null for rows of a project that does not exist. */
export interface VerifiedProject extends ProjectCounts {
  id: string
  name: string | null
  findings: number
}

/** A finding, with its project. */
export interface ReportedFinding {
  check: CheckName
  project_id: string
  project: string | null
  session_id: string | null
  place: string
  detail: string
}

/** The result of a run; no findings mean that the database is sound. */
export interface Verification {
  projects: VerifiedProject[]
  /** A few of each check and project. */
  findings: ReportedFinding[]
  /** All of them, by check. */
  found: Partial<Record<CheckName, number>>
}

export interface VerifyOptions {
  /** Name or id of the only project to check; undefined: all. */
  project: string | undefined
  /** Called with the approximate number of rows before the first is read. */
  onMeasured: (rows: number) => void
  onProgress: (rows: number) => void
}

/**
 * Checks that a database holds what Annals promises, or reports what is wrong. Only reads.
 * @throws AnnalsError project_not_found
 */
export async function verifyDatabase(database: Database, options: VerifyOptions): Promise<Verification> {
  const only = options.project === undefined ? undefined : await findProject(database, options.project)
  options.onMeasured(await measure(database, only?.id))
  const known = only ? [only] : await listProjects(database)
  const result: Verification = { projects: [], findings: [], found: {} }
  let rows_before = 0
  const verify = async (project: Project) => {
    let rows = 0
    await verifyOne(database, project, result, (rows_of_project) => {
      rows = rows_of_project
      options.onProgress(rows_before + rows)
    })
    rows_before += rows
  }
  for (const project of known) await verify(project)
  if (!only) await verifyTheRest(database, new Set(known.map(({ id }) => id)), verify, result)
  return result
}

/** The number of rows, in one project or in all. Each table is counted by a separate statement. */
async function measure(database: Database, project_id: string | undefined): Promise<number> {
  let rows = 0
  for (const statement of MEASURE) {
    const [row] = await database.query(statement, [project_id ?? null])
    rows += Number(row!.rows)
  }
  return rows
}

interface Project {
  id: string
  name: string | null
}

async function verifyOne(
  database: Database,
  { id, name }: Project,
  result: Verification,
  onRows: (rows: number) => void,
): Promise<void> {
  const report = reporter(result, { id, name })
  const counts = await verifyProject(database, id, ({ rows }, findings) => {
    onRows(rows)
    report.add(findings)
  })
  result.projects.push({ id, name, ...counts, findings: report.total() })
}

/** Collects the findings of one project, and reports only a few of each kind. */
function reporter(result: Verification, project: Project) {
  const reported = new Map<CheckName, number>()
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
  known: ReadonlySet<string>,
  verify: (project: Project) => Promise<void>,
  result: Verification,
): Promise<void> {
  for await (const id of projectsWithRows(database)) {
    // A project may have been created since the list was read.
    if (known.has(id) || (await database.query(PROJECT_EXISTS, [id])).length > 0) continue
    reporter(result, { id, name: null }).add(single('project_missing', `project ${id}`, 'not in projects'))
    await verify({ id, name: null })
  }
  for (const { id, project_id } of await database.query(TOKENS_WITHOUT_PROJECT, [])) {
    const finding = single('token_without_project', `token ${id}`, 'its project is not in projects')
    reporter(result, { id: project_id!, name: null }).add(finding)
  }
}

function single(check: CheckName, place: string, detail: string): PieceFindings {
  return { shown: [{ check, session_id: null, place, detail }], found: new Map([[check, 1]]) }
}

async function* projectsWithRows(database: Database): AsyncGenerator<string> {
  for (let after: string | null = null; ; ) {
    const rows = await Promise.all(NEXT_PROJECT.map((next) => database.query(next, [after])))
    // As text, UUIDs sort as in PostgreSQL.
    const next: string | undefined = rows.flatMap((one) => one.map((row) => row.project_id!)).sort()[0]
    if (next === undefined) return
    yield next
    after = next
  }
}

async function listProjects(database: Database): Promise<Project[]> {
  const rows = await database.query(LIST_PROJECTS, [])
  return rows.map((row) => ({ id: row.id!, name: row.name! }))
}

async function findProject(database: Database, name_or_id: string): Promise<Project> {
  const [row] = await database.query(FIND_PROJECT, [name_or_id])
  if (!row) throw new AnnalsError('project_not_found', `There is no project ${JSON.stringify(name_or_id)}.`)
  return { id: row.id!, name: row.name! }
}
