import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The admin token of every node under test. */
export const ADMIN_TOKEN = 'admin-token-of-the-acceptance-tests-0123456789'
/** What tests store where nobody but its owner may see it. */
export const PAYLOAD = 'payload-that-must-not-be-logged'
/** The database password of the nodes that have one. */
export const PASSWORD = 'database-password-that-must-not-be-shown'

/** Names the directory that collects what every service of a run shows of itself. */
const VARIABLE = 'ANNALS_TEST_SHOWN'

// Any token of ours counts, whoever made it, also one without its checksum.
const SECRETS = [
  /sk-annals-[\w-]{43}/,
  /Bearer sk-/,
  ...[ADMIN_TOKEN, PAYLOAD, PASSWORD].map((text) => RegExp(text)),
]

export function collectIn(directory: string): void {
  process.env[VARIABLE] = directory
}

/** Keeps what somebody without a token could see: a log, metrics, command lines. */
export function keepShown(source: string, text: string): void {
  const directory = process.env[VARIABLE]
  if (directory) appendFileSync(join(directory, source), `${text}\n`)
}

/**
 * The command lines of this process's descendants and of every PostgreSQL, as any user of the machine can read them.
 * What others run on the machine is not ours to judge.
 */
export function keepCommandLines(): void {
  if (process.platform !== 'linux' || !process.env[VARIABLE]) return
  const running = readdirSync('/proc').flatMap((name) =>
    /^\d+$/.test(name) ? (readProcess(name) ?? []) : [],
  )
  const ours = new Set([String(process.pid)])
  for (let size = 0; size !== ours.size; ) {
    size = ours.size
    for (const { pid, parent } of running) if (ours.has(parent)) ours.add(pid)
  }
  for (const { pid, name, command } of running)
    if (ours.has(pid) || name === 'postgres') keepShown('command_lines', command)
}

function readProcess(pid: string) {
  try {
    const [, name, parent] = /^\d+ \((.*)\) \S+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))!
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    return { pid, name: name!, parent: parent!, command }
  } catch {
    return undefined // It ended meanwhile.
  }
}

/** Where a secret stands in what was collected: file, line, which kind, and what is before it, but not the secret. */
export function findLeaks(directory: string): string[] {
  return readdirSync(directory).flatMap((name) =>
    readFileSync(join(directory, name), 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        SECRETS.filter((secret) => secret.test(line)).map(
          (secret) =>
            `${name}:${at + 1} shows what matches ${secret.source.slice(0, 24)}… behind ${JSON.stringify(before(line))}`,
        ),
      ),
  )
}

/** The words ahead of the first secret in a line: enough to find who wrote it. */
function before(line: string): string {
  const first = Math.min(...SECRETS.map((secret) => line.search(secret)).filter((at) => at >= 0))
  return line.slice(0, first).slice(-80)
}
