import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { measureCpu } from '../cpu.ts'
import { runLoad } from '../load.ts'
import { residentMegabytes } from '../memory.ts'
import type { Service } from '../service.ts'
import type { BareInserts } from './bare_inserts.ts'
import type { Seen } from './figures.ts'
import { offer } from './offer.ts'
import { AHEAD } from './probing.ts'
import { type Tenant, together } from './tenants.ts'

/** Connections that measure what it can take, and that a tenant at full speed has. */
const FULL_SPEED = 64
/** What a prober asks. */
export const PROBES_PER_SECOND = 50
const PROBER = { connections: 64, priority: AHEAD }
/** How often a quiet tenant is looked at alone and beside a busy one: a checkpoint falls into some of its turns. */
const QUIET_ROUNDS = 5
/** How often a connection that is hardly used is used: before the service would close it. */
const IDLE_S = 60
/** Less than the 15 s after which the service closes a connection that has not sent anything yet. */
const HELD_S_MAX = 12
const SETTLED_AFTER_MS = 5_000

/** What is measured, by whom, and how hard. */
export interface Scene {
  service: Service
  database: { url: string }
  /** The tenants that the overload comes from, and one that wants little. */
  crowd: Tenant[]
  quiet: Tenant
  /** The same without Annals, where that can be measured. */
  bare: BareInserts | undefined
  /** How long the overload lasts, and how many connections it comes over. */
  seconds: number
  connections: number
  /** Connections that are open besides and hardly used, before the overload. */
  idle: number
  /** How many times what the service can take is offered. */
  times: number
}

/** Goes through all steps, one after another, and gives what it saw. */
export async function measure(scene: Scene): Promise<Seen> {
  const { service, seconds } = scene
  const short = Math.min(Math.max(seconds / 15, 2), 20)
  const loads = loadsOf(scene)
  let rss_mb = 0
  const watching = setInterval(async () => {
    rss_mb = Math.max(rss_mb, await residentMegabytes(service.pid))
  }, 100)
  try {
    say(`what it can take, ${short} s`)
    await loads.fullSpeed(2)
    const { per_second: capacity } = await loads.fullSpeed(short)
    const tenants = await quietAloneAndBeside(scene, loads, Math.max(short / 2, 2))
    say(`half of what it can take, ${short} s`)
    const before = await loads.usual(capacity, short)
    const idly = await amongIdleConnections(scene, loads, Math.min(short, HELD_S_MAX))
    const overloaded = await overload(scene, loads, capacity)
    await sleep(SETTLED_AFTER_MS)
    say(`half of what it can take, ${short} s`)
    const after = await loads.usual(capacity, short)
    return { capacity, ...tenants, before, ...idly, ...overloaded, after, rss_mb }
  } finally {
    clearInterval(watching)
  }
}

type Loads = ReturnType<typeof loadsOf>

/** The loads that the steps are made of. */
function loadsOf({ service, crowd }: Scene) {
  const loud = { ...service, token: crowd[0]!.token }
  const services = [service]
  /** As many requests as one tenant gets through. */
  const fullSpeed = (seconds: number) =>
    runLoad({
      services: [loud],
      connections: FULL_SPEED,
      seconds,
      requests: crowd[0]!.requests,
      status: 200,
    })
  /** Few requests, to see how long they take. */
  const probe = (tenants: Tenant[], seconds: number) =>
    offer({ services, ...together(tenants), per_second: PROBES_PER_SECOND, seconds, ...PROBER })
  /** Half of what the service can take, and a prober beside it. */
  const usual = (capacity: number, seconds: number) =>
    Promise.all([
      offer({ services, ...together(crowd), per_second: capacity / 2, connections: 64, seconds }),
      probe(crowd, seconds),
    ])
  return { fullSpeed, probe, usual }
}

async function quietAloneAndBeside({ quiet, bare }: Scene, { probe, fullSpeed }: Loads, seconds: number) {
  say(
    `a quiet tenant alone, and beside one at full speed, ${seconds} s each, ${QUIET_ROUNDS} times; bare INSERTs likewise`,
  )
  const alone = []
  const beside = []
  const bareAlone = []
  const bareBeside = []
  for (let round = 0; round < QUIET_ROUNDS; round += 1) {
    alone.push((await probe([quiet], seconds)).answers['200']!)
    const [probed] = await Promise.all([probe([quiet], seconds), fullSpeed(seconds)])
    beside.push(probed.answers['200']!)
    if (!bare) continue
    bareAlone.push(await bare.probe(seconds))
    const [inserted] = await Promise.all([bare.probe(seconds), bare.fullSpeed(FULL_SPEED, seconds)])
    bareBeside.push(inserted)
  }
  return { alone, beside, bareAlone, bareBeside }
}

async function amongIdleConnections(scene: Scene, { probe }: Loads, seconds: number) {
  const { service, crowd, quiet, idle } = scene
  say(`${idle} idle connections, ${seconds} s`)
  const hardly = { services: [service], ...together(crowd), per_second: idle / IDLE_S, connections: idle }
  const [held, beyond] = await Promise.all([
    offer({ ...hardly, seconds }),
    // Once they are open.
    sleep((seconds / 2) * 1_000).then(() => probe([quiet], seconds / 3)),
  ])
  return { idle, held, beyond, idle_mb: await residentMegabytes(service.pid) }
}

async function overload(scene: Scene, { probe }: Loads, capacity: number) {
  const { service, database, crowd, quiet, seconds, times, connections } = scene
  say(`${times} times what it can take, ${seconds} s`)
  const stopMeasuring = await measureCpu({ services: [service], database })
  // Two processes, so that it is not the one that offers which has too much to do.
  const half = {
    services: [service],
    ...together(crowd),
    per_second: (capacity * times) / 2,
    connections: Math.ceil(connections / 2),
    seconds,
  }
  const waitedBefore = await waitedSeconds(service.pid)
  const [one, other, probed, quietly] = await Promise.all([
    offer(half),
    offer(half),
    probe(crowd, seconds),
    probe([quiet], seconds),
  ])
  const used = await stopMeasuring()
  const waited = ((await waitedSeconds(service.pid)) - waitedBefore) / seconds
  return { crowd: [one, other], probed, quietly, used, waited }
}

/** How long the first thread of a process has waited for a processor; 0 where there is no /proc. */
async function waitedSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => '')
  return Number(text.split(' ')[1] ?? 0) / 1e9
}

function say(sentence: string): void {
  process.stderr.write(`overload: ${sentence}\n`)
}
