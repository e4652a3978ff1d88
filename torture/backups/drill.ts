import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

  --rounds <n>   a backup and an export each; 10 by default
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
const ROUNDS_OF_A_TENANT = 5
/** Every so many rounds the links of chains are made anew, too. */
const ROUNDS_WITHOUT_PROOF = 4

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    minutes: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) process.stdout.write(USAGE)
else {
  const [rounds, minutes, seed] = [values.rounds, values.minutes, values.seed].map(Number) as [
    number,
    number,
    number,
  ]
  process.exitCode = (await drill(rounds, minutes * 60_000, seed)) ? 0 : 1
}

interface Tenant extends Target {
  project_id: string
}

interface Tally {
  backups: number
  exports: number
  bytes: number
  findings: string[]
}

async function drill(rounds: number, duration_ms: number, seed: number): Promise<boolean> {
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
    stderr: 'ignore',
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
      await Promise.all([
        backUp(postgres, join(work, 'drill.backup'), tally, round % ROUNDS_WITHOUT_PROOF === 0),
        exportProject(postgres, join(work, 'drill.ndjson'), tally),
      ])
      say(`round ${round}: ${summaryOf(tally)}`)
      if (round % ROUNDS_OF_A_TENANT > 0) continue
      // Blobs that nobody refers to stay for a day, and would make each round longer than the one before.
      Object.assign(hostile, await replaceTenant(url, admin, hostile, `hostile-${round}`))
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

async function backUp(postgres: Postgres, path: string, tally: Tally, proof: boolean): Promise<void> {
  if (!(await passes(postgres, tally, 'annals', 'backup', path))) return
  await newDatabase(postgres, 'restored', 'empty')
  const isSound =
    // Which verifies, but for the links of chains.
    (await passes(postgres, tally, 'restored', 'restore', path)) &&
    (!proof || (await passes(postgres, tally, 'restored', 'verify', '--proof')))
  if (isSound) tally.backups += 1
  await finished(postgres, path, 'restored', tally)
}

async function exportProject(postgres: Postgres, path: string, tally: Tally): Promise<void> {
  const to = ['--project', 'target']
  if (!(await passes(postgres, tally, 'annals', 'export', '--project', 'ordinary', '--output', path))) return
  await newDatabase(postgres, 'imported', 'with_project')
  const isSound =
    (await passes(postgres, tally, 'imported', 'import', path, ...to)) &&
    (await passes(postgres, tally, 'imported', 'verify', '--proof', ...to))
  if (isSound) tally.exports += 1
  await finished(postgres, path, 'imported', tally)
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
  { findings }: Tally,
  database: string,
  ...args: string[]
): Promise<boolean> {
  const { code, output } = await run(postgres, database, ...args)
  if (code === 0) return true
  const finding = `annals ${args.join(' ')} ended with ${code}:\n${output.slice(-SHOWN_LENGTH)}`
  findings.push(finding)
  say(finding)
  return false
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
  return { url, project_id: data.project.id, token: data.token }
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
