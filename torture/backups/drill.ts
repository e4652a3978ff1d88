import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { type Launched, launchService } from '../../lab/launch_service.ts'
import { seededRandom } from '../../lab/random.ts'
import { makeDirectory } from '../world/engine.ts'
import { Postgres } from '../world/postgres.ts'
import { Lane, Tally } from './lane.ts'
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
/** The last ones, for the case that the service ends. */
const LOGGED_LINES = 20
const HOSTILE_WRITERS = 4
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
  const tally = new Tally()
  const lanes: Lane[] = []
  const load = new Load(seededRandom(seed))
  const admin = 'd'.repeat(64)
  const service = new Service(postgres, admin, tally)
  let isInterrupted = false
  process.on('SIGINT', () => {
    isInterrupted = true
  })
  try {
    const names = Array.from({ length: 2 * pairs }, (_, n) => `lane_${n}`)
    lanes.push(...(await Promise.all(names.map((name) => Lane.open(postgres, tally, work, name)))))
    const first = lanes[0]!
    await first.newDatabase('empty')
    await first.passes('empty', 'migrate')
    await first.newDatabase('with_project', 'empty')
    await first.passes('with_project', 'project', 'create', 'target')
    const url = (await service.url)!
    const [ordinary, hostile] = [
      await newTenant(url, admin, 'ordinary'),
      await newTenant(url, admin, 'hostile'),
    ]
    load.start(ordinary, WRITERS, false)
    load.start(hostile, HOSTILE_WRITERS, true)
    const isOver = () => isInterrupted || service.hasEnded || performance.now() - begun > duration_ms
    for (let round = 1; round <= rounds && !isOver(); round++) {
      const proof = round % ROUNDS_WITHOUT_PROOF === 0
      await Promise.all(
        lanes.map((lane, n) => (n % 2 ? lane.exportProject(ordinary.name) : lane.backUp(proof))),
      )
      say(`round ${round}: ${tally.summary}`)
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
    for (const lane of lanes) lane.close()
    await service.stop()
    await postgres.stop('SIGINT')
    await rm(work, { recursive: true, force: true })
  }
  return report(tally, load, (performance.now() - begun) / 1_000)
}

/** The service that is backed up, and what it says about itself. */
class Service {
  readonly url: Promise<string | undefined>
  hasEnded = false
  private readonly launched: Launched
  private readonly logged: string[] = []
  private isStopping = false

  constructor(postgres: Postgres, admin: string, tally: Tally) {
    const env = { DATABASE_URL: postgres.url(), ANNALS_ADMIN_TOKEN: admin }
    this.launched = launchService({ env, stderr: 'pipe' })
    this.url = this.launched.url
    createInterface({ input: this.launched.child.stderr! }).on('line', (line) => {
      if (line.includes('"msg":"request failed"')) tally.note(`the service failed: ${line}`)
      this.logged.push(line)
      if (this.logged.length > LOGGED_LINES) this.logged.shift()
    })
    void this.launched.exited.then(({ code, signal }) => {
      this.hasEnded = true
      if (!this.isStopping) tally.note(`the service ended with ${signal ?? code}:\n${this.logged.join('\n')}`)
    })
  }

  async stop(): Promise<void> {
    this.isStopping = true
    this.launched.child.kill('SIGTERM')
    await this.launched.exited
  }
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

function report(tally: Tally, { done, refused }: Load, seconds: number): boolean {
  const counts = Object.entries(done).map(([what, many]) => `${what} ${many}`)
  say(`\n${WRITERS + HOSTILE_WRITERS} writers, ${Math.round(seconds)} s: ${counts.join(', ')}`)
  say(`refused, mostly for what was gone: ${JSON.stringify(refused)}`)
  say(`one step in the mean, beside all others: ${tally.means}`)
  say(tally.summary)
  say(`${tally.backups + tally.exports} passed, ${tally.findings.length} failed`)
  return tally.findings.length === 0
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
