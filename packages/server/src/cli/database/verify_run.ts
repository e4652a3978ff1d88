import { registryOf } from '../../lifecycle/registry.js'
import {
  allChecks,
  type ReportedFinding,
  type Verification,
  type VerifiedProject,
  verifyDatabase,
} from '../../lifecycle/verify/verify_database.js'
import type { Database } from '../../postgres/database.js'
import { MODULES } from '../../service/modules.js'
import { EXIT_CODES } from '../exit_codes.js'
import { type Progress, showProgress } from '../terminal/progress.js'
import { printTable } from '../terminal/table.js'
import { visible } from '../terminal/visible.js'

/** What the command line says of a verification. */
export interface VerifyOptions {
  project?: string
  json?: boolean
}

/** Verifies, prints what was found, and sets the exit code. */
export async function runVerify(database: Database, options: VerifyOptions): Promise<void> {
  const registry = registryOf(MODULES)
  const begun = performance.now()
  let progress: Progress | undefined
  let verification: Verification
  try {
    verification = await verifyDatabase(database, {
      registry,
      project: options.project,
      onMeasured: (rows) => {
        progress = showProgress('Verifying', 'rows', rows)
      },
      onProgress: (rows) => progress?.update(rows),
    })
  } finally {
    progress?.stop()
  }
  const total = Object.values(verification.found).reduce((sum, many) => sum + many, 0)
  if (options.json) process.stdout.write(asJson(verification, total, allChecks(registry)))
  else print(verification, total, allChecks(registry), (performance.now() - begun) / 1000)
  if (total > 0) process.exitCode = EXIT_CODES.failed
}

type Checks = ReturnType<typeof allChecks>

function asJson({ projects, findings, found }: Verification, findings_total: number, checks: Checks): string {
  const explained = findings.map((finding) => {
    const { means, todo } = checks[finding.check]!
    return { ...finding, means, todo }
  })
  return `${JSON.stringify({ sound: findings_total === 0, findings_total, found, findings: explained, projects: projects.map(flat) })}\n`
}

/** What the table for people leaves out: it follows from the rest, or says little. */
const FIELDS_LEFT_OUT = ['id', 'name', 'entries', 'tokens', 'bytes', 'idempotency_keys']

function flat({ counts, findings, ...project }: VerifiedProject) {
  return { ...project, ...counts, findings }
}

function print(
  { projects, findings, found }: Verification,
  total: number,
  checks: Checks,
  seconds: number,
): void {
  const rows = projects.map((project) => ({ project: project.name ?? project.id, ...flat(project) }))
  printTable(
    Object.keys(rows[0] ?? {}).filter((field) => !FIELDS_LEFT_OUT.includes(field)),
    rows.map((row) => JSON.stringify(row)),
  )
  const sum = (field: 'entries' | 'sessions') =>
    projects.reduce((before, project) => before + (project.counts[field] ?? 0), 0).toLocaleString('en')
  const read = `${sum('entries')} entries of ${sum('sessions')} sessions in ${seconds.toFixed(1)} s`
  if (total === 0) {
    process.stdout.write(`\nRead ${read}: nothing is wrong.\n`)
    return
  }
  for (const [check, many] of Object.entries(found)) {
    const { means, todo } = checks[check]!
    process.stdout.write(`\n${check}: ${means} (${many} found)\n`)
    for (const finding of findings)
      if (finding.check === check) process.stdout.write(`  ${lineOf(finding)}\n`)
    process.stdout.write(`  → ${todo}.\n`)
  }
  process.stdout.write(
    `\nRead ${read}: ${total} findings. See docs/operations.md, "When verify finds something".\n`,
  )
}

function lineOf({ project, project_id, session_id, place, detail }: ReportedFinding): string {
  const session = session_id === null ? '' : `session ${session_id}, `
  return visible(`project ${project ?? project_id}, ${session}${place}: ${detail}`)
}
