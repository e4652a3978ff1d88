import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { BATCH } from '../lab/batch_policy.ts'
import { BenchFailure } from './failure.ts'

const run = promisify(execFile)

/** Where pgbench is: in the PATH, or where Debian's postgresql-15 puts it. */
export async function findPgbench(): Promise<string | undefined> {
  for (const candidate of ['pgbench', '/usr/lib/postgresql/15/bin/pgbench']) {
    if (candidate.startsWith('/') && !existsSync(candidate)) continue
    const found = await run(candidate, ['--version']).catch(() => undefined)
    if (found) return candidate
  }
  return undefined
}

/** What figures say that have pgbench as their yardstick, where it is missing. */
export const NEEDS_PGBENCH = 'needs pgbench'

/** Runs a script as prepared statements; gives its transactions, and how many a second. */
export async function runPgbench(
  pgbench: string,
  options: {
    url: string
    clients: number
    seconds: number
    script: string
    directory: string
    variables?: Record<string, string>
  },
): Promise<{ transactions: number; per_second: number }> {
  const { url, clients, seconds, script, directory, variables = {} } = options
  const path = `${directory}/pgbench.sql`
  await writeFile(path, script)
  const threads = Math.min(availableParallelism(), clients)
  const [program, ...words] = [...BATCH, pgbench]
  const { stdout } = await run(program!, [
    ...words,
    ...['--no-vacuum', '--protocol=prepared', `--client=${clients}`, `--jobs=${threads}`],
    ...[`--time=${Math.max(Math.round(seconds), 1)}`, `--file=${path}`],
    ...Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`]),
    url,
  ]).catch((error: { stderr?: string; message: string }) => {
    throw new BenchFailure(`pgbench failed: ${(error.stderr || error.message).slice(0, 500)}`)
  })
  const failed = /number of failed transactions: ([1-9]\d*)/.exec(stdout)
  const transactions = /^number of transactions actually processed: (\d+)/m.exec(stdout)
  const tps = /^tps = ([\d.]+)/m.exec(stdout)
  if (failed || !tps || !transactions) throw new BenchFailure(`pgbench failed:\n${stdout}`)
  return { transactions: Number(transactions[1]), per_second: Number(tps[1]) }
}
