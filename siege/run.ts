import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../lab/statistics.ts'
import type { Attack } from './attackers/attack.ts'
import { strike } from './attackers/strike.ts'
import { type Judged, judge, mayBeChance } from './verdict.ts'
import type { Deed } from './victim/victim.ts'
import { STOP_MS_MAX } from './world/service.ts'
import type { World } from './world/world.ts'

/** Of an attack in the short form. */
const SECONDS = 2.6
const WARM_UP_MS = 2_000
const QUIET_MS = 2_000
const RECOVERY_MS_MAX = 15_000
const LOOK_MS = 100
/** Recovery is judged by so many of the victim's last requests. */
const CALM_MS = 1_000
const CALM_DEEDS_MIN = 20
/** Times of the quiet median, or ms, whichever is more: a machine may have other things to do. */
const CALM_TIMES_MAX = 5
const CALM_MS_MAX = 100

/** The service before anybody attacked it. */
export interface Baseline {
  p50_ms: number
  files: number
  kept_mb: number | undefined
}

export async function quietly({ service, victim }: World): Promise<{ baseline: Baseline; judged: Judged }> {
  await victim.start(service)
  // A process that is new compiles what it is asked for.
  await sleep(WARM_UP_MS)
  victim.take()
  service.takeStood()
  service.rss_max_mb = 0
  await sleep(QUIET_MS)
  await victim.stop()
  const deeds = victim.take()
  const baseline = {
    p50_ms: medianOf(deeds),
    files: service.openFiles,
    kept_mb: await service.keptMegabytes(),
  }
  const judged = judge({
    attack: 'none',
    deeds,
    stood: service.takeStood(),
    rss_max_mb: service.rss_max_mb,
    kept_mb_more: 0,
    files_more: 0,
    answers: {},
    allowed: [],
    errors: service.takeErrors(),
    recovered_ms: 0,
    hasFallen: false,
    problems: [],
  })
  return { baseline, judged }
}

/** Runs one attack, once more where what it did may be chance, and waits until the service has recovered. */
export async function endure(
  ...[world, attack, baseline, options]: Parameters<typeof endureOnce>
): Promise<Judged> {
  const judged = await endureOnce(world, attack, baseline, options)
  return mayBeChance(judged) ? endureOnce(world, attack, baseline, options) : judged
}

async function endureOnce(
  world: World,
  attack: Attack,
  baseline: Baseline,
  { seed, isShort, stopped }: { seed: number; isShort: boolean; stopped: AbortSignal },
): Promise<Judged> {
  const { service, victim, target } = world
  service.rss_max_mb = service.rss_mb
  service.takeStood()
  service.takeErrors()
  await victim.start(service)
  const problems: string[] = []
  const { seconds: short_s = SECONDS } = attack
  const seconds = isShort ? short_s : short_s * 5
  const order = { name: attack.name, seed, seconds, isShort, target: { ...target, url: service.url } }
  const answers = await strike(order, stopped).catch((error: Error) => {
    problems.push(`the attack itself failed: ${error.message}`)
    return {}
  })
  const over_at = performance.now()
  const recovered_ms = await recovered(world, baseline, over_at)
  await victim.stop()
  const deeds = victim.take()
  const hasFallen = !service.isUp
  const kept_mb = recovered_ms === undefined ? undefined : await service.keptMegabytes()
  const judged = judge({
    attack: attack.name,
    deeds,
    stood: service.takeStood(),
    rss_max_mb: service.rss_max_mb,
    kept_mb_more:
      kept_mb === undefined || baseline.kept_mb === undefined ? undefined : kept_mb - baseline.kept_mb,
    files_more: recovered_ms === undefined ? 0 : service.openFiles - baseline.files,
    answers,
    allowed: attack.answers,
    errors: service.takeErrors(),
    recovered_ms,
    hasFallen,
    problems,
  })
  // What this attack left must not count against the next one.
  if (judged.broken.length > 0 && !mayBeChance(judged) && !stopped.aborted) {
    if (recovered_ms === undefined) await service.kill()
    else await service.stop(STOP_MS_MAX * 2)
    await service.start()
  }
  return judged
}

/** ms until the victim is served as before; undefined if not in time. */
async function recovered(
  { service, victim }: World,
  baseline: Baseline,
  over_at: number,
): Promise<number | undefined> {
  const isCalm = () => {
    const recent = victim.since(performance.now() - CALM_MS)
    return (
      recent.length >= CALM_DEEDS_MIN &&
      recent.every(({ isGood }) => isGood) &&
      medianOf(recent) <= Math.max(CALM_TIMES_MAX * baseline.p50_ms, CALM_MS_MAX)
    )
  }
  while (performance.now() < over_at + RECOVERY_MS_MAX && service.isUp) {
    if (isCalm()) return Math.max(0, performance.now() - over_at - CALM_MS)
    await sleep(LOOK_MS)
  }
  return undefined
}

function medianOf(deeds: Deed[]): number {
  return deeds.length === 0 ? 0 : median(deeds.map(({ took_ms, starved_ms }) => took_ms - starved_ms))
}
