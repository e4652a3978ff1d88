import type { allChecks, ReportedFinding, Verification, VerifiedProject } from '@annals/archive'
import type { Database } from '@annals/kits/postgres/database.js'
import { Command } from 'commander'
import { EXIT_CODES } from '../exit_codes.js'
import type { Progress } from '../terminal/progress.js'
import { visible, visibleJson } from '../terminal/visible.js'
import { runLongWork, withDatabaseToRead } from './with_database.js'

/** annals verify */
export function verifyCommand(): Command {
  return new Command('verify')
    .description('Check that a database keeps the promises of Annals: every log, head, key and count.')
    .option('--project <name or id>', 'only this project')
    .option('--proof', 'also recompute the chains and find what was changed: see docs/proof.md')
    .option('--anchors <file>', 'with --proof: compare with what `annals anchor` wrote to this file')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
It only reads, in small pieces, and blocks no writes, so the service can keep running. It exits with 1 if it finds
something wrong; each finding says what is wrong, where, and what to do.

Examples:
  annals verify
  annals verify --proof --anchors /mnt/anchors/annals.ndjson
  annals verify --project default --json | jq .findings`,
    )
    .action(async (options: VerifyOptions) => {
      await runLongWork((signal) => withDatabaseToRead((database) => runVerify(database, options), signal), {
        interrupted: 'Part of the database was not checked.',
        unfinished: 'Part of the database was not checked; run the command again.',
      })
    })
}

/** Prints the result of a verification. */
export interface VerifyOptions {
  project?: string
  proof?: boolean
  anchors?: string
  json?: boolean
}

/** Verifies, prints what was found, and sets the exit code. */
export async function runVerify(database: Database, options: VerifyOptions): Promise<void> {
  const { registryOf } = await import('@annals/kits/lifecycle/registry.js')
  const { allChecks, verifyDatabase } = await import('@annals/archive')
  const { readAnchors } = await import('annals/dist/proof/anchor.js')
  const { findNamedProject } = await import('annals/dist/projects/projects.js')
  const { MODULES } = await import('annals/dist/service/modules.js')
  const { showProgress } = await import('../terminal/progress.js')
  const registry = registryOf(MODULES)
  const checks = allChecks(registry)
  const begun = performance.now()
  let progress: Progress | undefined
  let verification: Verification
  try {
    verification = await verifyDatabase(database, {
      registry,
      proof: options.proof ?? false,
      ...(options.anchors !== undefined && { anchors: await readAnchors(options.anchors) }),
      only: options.project === undefined ? undefined : await findNamedProject(database, options.project),
      onMeasured: (rows) => {
        progress = showProgress('Verifying', 'rows', rows)
      },
      onProgress: (rows) => progress?.update(rows),
    })
  } finally {
    progress?.stop()
  }
  const total = Object.values(verification.found).reduce((sum, many) => sum + many, 0)
  if (options.json) process.stdout.write(asJson(verification, total, checks))
  else await print(verification, total, checks, (performance.now() - begun) / 1000)
  if (total > 0) process.exitCode = EXIT_CODES.failed
}

type Checks = ReturnType<typeof allChecks>

function asJson({ projects, findings, found }: Verification, findings_total: number, checks: Checks): string {
  const explained = findings.map((finding) => {
    const { means, todo } = checks[finding.check]!
    return { ...finding, means, todo }
  })
  const sound = findings_total === 0
  return visibleJson(
    `${JSON.stringify({ sound, findings_total, found, findings: explained, projects: projects.map(flat) })}\n`,
  )
}

/** Checks that the table for people leaves out: they follow from the rest, or say little. */
const FIELDS_LEFT_OUT = ['id', 'name', 'entries', 'tokens', 'bytes', 'idempotency_keys']

function flat({ counts, findings, ...project }: VerifiedProject) {
  return { ...project, ...counts, findings }
}

async function print(
  { projects, findings, found }: Verification,
  total: number,
  checks: Checks,
  seconds: number,
): Promise<void> {
  const { printTable } = await import('../terminal/table.js')
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
