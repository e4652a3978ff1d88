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

/** The command lines of all processes, as any user of the machine can read them. */
export function keepCommandLines(): void {
  if (process.platform !== 'linux' || !process.env[VARIABLE]) return
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      keepShown('command_lines', readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '))
    } catch {
      // It ended meanwhile.
    }
  }
}

/** Where a secret stands in what was collected: file, line, and which kind, but not the secret. */
export function findLeaks(directory: string): string[] {
  return readdirSync(directory).flatMap((name) =>
    readFileSync(join(directory, name), 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        SECRETS.filter((secret) => secret.test(line)).map(
          (secret) => `${name}:${at + 1} shows what matches ${secret.source.slice(0, 24)}…`,
        ),
      ),
  )
}
