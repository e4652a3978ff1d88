import { MEANING } from '../../lifecycle/verify/meaning.js'
import {
  type ReportedFinding,
  type Verification,
  verifyDatabase,
} from '../../lifecycle/verify/verify_database.js'
import type { Database } from '../../postgres/database.js'
import { EXIT_CODES } from '../exit_codes.js'
import { type Progress, showProgress } from '../terminal/progress.js'
import { printTable } from '../terminal/table.js'
import { visible } from '../terminal/visible.js'
import type { VerifyOptions } from './verify.js'

/** Verifies, prints what was found, and sets the exit code. */
export async function runVerify(database: Database, options: VerifyOptions): Promise<void> {
  const begun = performance.now()
  let progress: Progress | undefined
  let verification: Verification
  try {
    verification = await verifyDatabase(database, {
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
  if (options.json) process.stdout.write(asJson(verification, total))
  else print(verification, total, (performance.now() - begun) / 1000)
  if (total > 0) process.exitCode = EXIT_CODES.failed
}

function asJson({ projects, findings, found }: Verification, findings_total: number): string {
  const explained = findings.map((finding) => ({ ...finding, ...MEANING[finding.check] }))
  return `${JSON.stringify({ sound: findings_total === 0, findings_total, found, findings: explained, projects })}\n`
}

const FIELDS = ['project', 'users', 'sessions', 'messages', 'events', 'learning_spaces', 'findings']

function print({ projects, findings, found }: Verification, total: number, seconds: number): void {
  printTable(
    FIELDS,
    projects.map((project) => JSON.stringify({ project: project.name ?? project.id, ...project })),
  )
  const sum = (field: 'entries' | 'sessions') =>
    projects.reduce((before, project) => before + project[field], 0).toLocaleString('en')
  const read = `${sum('entries')} entries of ${sum('sessions')} sessions in ${seconds.toFixed(1)} s`
  if (total === 0) {
    process.stdout.write(`\nRead ${read}: nothing is wrong.\n`)
    return
  }
  for (const [check, many] of Object.entries(found) as Array<[keyof typeof MEANING, number]>) {
    const { means, todo } = MEANING[check]
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
