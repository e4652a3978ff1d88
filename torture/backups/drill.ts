import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { endWithUs } from '../../lab/children.ts'
import { ANNALS, launchService } from '../../lab/launch_service.ts'
import { seededRandom } from '../../lab/random.ts'
import { makeDirectory } from '../world/engine.ts'
import { Postgres } from '../world/postgres.ts'
import { Load, type Target } from './load.ts'

/**
 * Tests the promise that a backup, and an export, is one consistent picture: 16 writers create and delete what refers to each
 * other (sessions with attachments, skills, parents, users, forks, inputs, requests, statements, chains), one tenant among
 * them sends and deletes large blobs in loops, and meanwhile each round takes a backup of everything and an export of a
 * project, restores both and verifies them.
 */

const USAGE = `npm run drill:backups -- [options]

  --rounds <n>   10 by default
  --pairs <n>    so many backups and as many exports at the same time in each round; 2 by default
  --minutes <n>  ends after the round that is under way then
  --seed <n>     the same choices of the writers as an earlier run
  --help
`
const WRITERS = 12
const HOSTILE_WRITERS = 4
const SHOWN_LENGTH = 1_500
/** Nothing crashes here, so nothing has to wait for a disk. */
const WITHOUT_DISK = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum_naptime: '10s',
}
const ROUNDS_OF_A_TENANT = 4
/** Long enough for its data to be many times of what one round writes. */
const ROUNDS_OF_THE_ORDINARY = 12
/** Every so many rounds the links of chains are made anew, too. */
const ROUNDS_WITHOUT_PROOF = 4

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    pairs: { type: 'string', default: '2' },
    minutes: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) process.stdout.write(USAGE)
else {
  const [rounds, pairs, minutes, seed] = [values.rounds, values.pairs, values.minutes, values.seed].map(
    Number,
  ) as [number, number, number, number]
  process.exitCode = (await drill({ rounds, pairs, duration_ms: minutes * 60_000, seed })) ? 0 : 1
}

interface Tenant extends Target {
  project_id: string
  name: string
}

interface Tally {
  backups: number
  exports: number
  bytes: number
  findings: string[]
}

interface Settings {
  rounds: number
  pairs: number
  duration_ms: number
  seed: number
}

async function drill({ rounds, pairs, duration_ms, seed }: Settings): Promise<boolean> {
  const begun = performance.now()
  const work = await mkdtemp(join(tmpdir(), 'annals-backup-drill-'))
  // The server runs as another user if we are root.
  await chmod(work, 0o755)
  const postgres = await Postgres.create(
    await makeDirectory(join(work, 'server')),
    await makeDirectory(join(work, 'data')),
    WITHOUT_DISK,
  )
  const tally: Tally = { backups: 0, exports: 0, bytes: 0, findings: [] }
  const load = new Load(seededRandom(seed))
  const admin = 'd'.repeat(64)
  const service = launchService({
    env: { DATABASE_URL: postgres.url(), ANNALS_ADMIN_TOKEN: admin },
    stderr: 'pipe',
  })
  createInterface({ input: service.child.stderr! }).on('line', (line) => {
    if (line.includes('"msg":"request failed"')) note(tally, `the service failed: ${line}`)
  })
  let isInterrupted = false
  process.on('SIGINT', () => {
    isInterrupted = true
  })
  try {
    await newDatabase(postgres, 'empty')
    await run(postgres, 'empty', 'migrate')
    await newDatabase(postgres, 'with_project', 'empty')
    await run(postgres, 'with_project', 'project', 'create', 'target')
    const url = (await service.url)!
    const [ordinary, hostile] = [
      await newTenant(url, admin, 'ordinary'),
      await newTenant(url, admin, 'hostile'),
    ]
    load.start(ordinary, WRITERS, false)
    load.start(hostile, HOSTILE_WRITERS, true)
    const isOver = () => isInterrupted || performance.now() - begun > duration_ms
    for (let round = 1; round <= rounds && !isOver(); round++) {
      const proof = round % ROUNDS_WITHOUT_PROOF === 0
      await Promise.all(
        Array.from({ length: pairs }, (_, n) => [
          backUp(postgres, join(work, `${n}.backup`), `restored_${n}`, tally, proof),
          exportProject(postgres, ordinary.name, join(work, `${n}.ndjson`), `imported_${n}`, tally),
        ]).flat(),
      )
      say(`round ${round}: ${summaryOf(tally)}`)
      if (round % ROUNDS_OF_A_TENANT > 0) continue
      // Blobs that nobody refers to stay for a day, and would make each round longer than the one before.
      Object.assign(hostile, await replaceTenant(url, admin, hostile, `hostile-${round}`))
      if (round % ROUNDS_OF_THE_ORDINARY === 0) {
        Object.assign(ordinary, await replaceTenant(url, admin, ordinary, `ordinary-${round}`))
        load.forget()
      }
      // What was deleted would fill the disk sooner than autovacuum comes by.
      await postgres.ask('VACUUM', [], 'annals')
    }
  } finally {
    await load.stop()
    service.child.kill('SIGTERM')
    await service.exited
    await postgres.stop('SIGINT')
    await rm(work, { recursive: true, force: true })
  }
  return report(tally, load, (performance.now() - begun) / 1_000)
}

async function backUp(
  postgres: Postgres,
  path: string,
  database: string,
  tally: Tally,
  proof: boolean,
): Promise<void> {
  if (!(await passes(postgres, tally, 'annals', 'backup', path))) return
  await newDatabase(postgres, database, 'empty')
  const isSound =
    // Which verifies, but for the links of chains.
    (await passes(postgres, tally, database, 'restore', path)) &&
    (!proof || (await passes(postgres, tally, database, 'verify', '--proof')))
  if (isSound) tally.backups += 1
  await finished(postgres, path, database, tally)
}

async function exportProject(
  postgres: Postgres,
  name: string,
  path: string,
  database: string,
  tally: Tally,
): Promise<void> {
  const to = ['--project', 'target']
  if (!(await passes(postgres, tally, 'annals', 'export', '--project', name, '--output', path))) return
  await newDatabase(postgres, database, 'with_project')
  const isSound =
    (await passes(postgres, tally, database, 'import', path, ...to)) &&
    (await passes(postgres, tally, database, 'verify', '--proof', ...to))
  if (isSound) tally.exports += 1
  await finished(postgres, path, database, tally)
}

async function finished(postgres: Postgres, path: string, database: string, tally: Tally): Promise<void> {
  tally.bytes += (await stat(path)).size
  await rm(path)
  await postgres.ask(`DROP DATABASE ${database} WITH (FORCE)`)
}

async function newDatabase(postgres: Postgres, name: string, template?: string): Promise<void> {
  await postgres.ask(`CREATE DATABASE ${name} OWNER annals${template ? ` TEMPLATE ${template}` : ''}`)
}

async function passes(
  postgres: Postgres,
  tally: Tally,
  database: string,
  ...args: string[]
): Promise<boolean> {
  const { code, output } = await run(postgres, database, ...args)
  if (code === 0) return true
  note(tally, `annals ${args.join(' ')} ended with ${code}:\n${output}`)
  return false
}

function note({ findings }: Tally, finding: string): void {
  findings.push(finding)
  say(finding.slice(-SHOWN_LENGTH))
}

async function run(postgres: Postgres, database: string, ...args: string[]) {
  const { PATH = '', HOME = '/' } = process.env
  const env = { PATH, HOME, NO_COLOR: '1', DATABASE_URL: postgres.url(database) }
  const child = endWithUs(
    spawn(process.execPath, [ANNALS, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] }),
  )
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (bytes) => (output += bytes))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

async function newTenant(url: string, admin: string, name: string): Promise<Tenant> {
  const response = await fetch(`${url}/admin/v1/projects`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, proof: true }),
  })
  if (!response.ok) throw new Error(`a project was refused: ${response.status}`)
  const { data } = (await response.json()) as { data: { project: { id: string }; token: string } }
  return { url, project_id: data.project.id, name, token: data.token }
}

/** Has a project take the place of another one, which is deleted while its writers still write. */
async function replaceTenant(url: string, admin: string, old: Tenant, name: string): Promise<Tenant> {
  const headers = { authorization: `Bearer ${admin}` }
  const deleted = await fetch(`${url}/admin/v1/projects/${old.project_id}`, { method: 'DELETE', headers })
  if (!deleted.ok) throw new Error(`a project was not deleted: ${deleted.status}`)
  return newTenant(url, admin, name)
}

function summaryOf({ backups, exports, bytes, findings }: Tally): string {
  return `${backups} backups and ${exports} exports restored and sound (${Math.round(bytes / 1e6)} MB), ${findings.length} findings`
}

function report(tally: Tally, { done, refused }: Load, seconds: number): boolean {
  const counts = Object.entries(done).map(([what, many]) => `${what} ${many}`)
  say(`\n${WRITERS + HOSTILE_WRITERS} writers, ${Math.round(seconds)} s: ${counts.join(', ')}`)
  say(`refused, mostly for what was gone: ${JSON.stringify(refused)}`)
  say(summaryOf(tally))
  say(`${tally.backups + tally.exports} passed, ${tally.findings.length} failed`)
  return tally.findings.length === 0
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
