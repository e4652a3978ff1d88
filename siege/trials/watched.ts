import { type Judged, judge } from '../verdict.ts'
import { STOP_MS_MAX } from '../world/service.ts'
import type { World } from '../world/world.ts'

/** What a trial's own part came to. */
export interface Watched {
  /** Ends what was done to it, once the service has ended. */
  release?: () => Promise<unknown>
}

/**
 * Looks at the service, which is up, while something is done to it, and ends it. It must live through that, end when it is
 * told to, and leave no PostgreSQL behind.
 */
export async function watched(world: World, attack: string, work: () => Promise<Watched>): Promise<Judged> {
  const { service, victim } = world
  service.rss_max_mb = 0
  service.takeStood()
  service.takeErrors()
  const problems: string[] = []
  const { release } = await work()
  await victim.stop()
  const postgres = await service.postgresPid()
  const hasFallen = !service.isUp
  const { code, took_ms } = await service.stop(STOP_MS_MAX * 2)
  await release?.()
  if (code !== 0 && !hasFallen) problems.push(`it ended with ${code} after SIGTERM`)
  if (took_ms > STOP_MS_MAX)
    problems.push(`it ended ${Math.round(took_ms)} ms after SIGTERM, more than ${STOP_MS_MAX}`)
  if (postgres === undefined) problems.push('its PostgreSQL was not found')
  problems.push(...(await withoutOrphan(world)))
  return judge({
    attack,
    deeds: victim.take(),
    stood: service.takeStood(),
    rss_max_mb: service.rss_max_mb,
    kept_mb_more: undefined,
    files_more: 0,
    answers: {},
    allowed: [],
    errors: service.takeErrors(),
    recovered_ms: 0,
    hasFallen,
    problems,
  })
}

/** Ends a PostgreSQL whose service is gone; says that it was there. */
export async function withoutOrphan({ service }: World): Promise<string[]> {
  const orphan = await service.postgresPid()
  if (orphan === undefined) return []
  await service.endPostgres(orphan)
  return ['its PostgreSQL was left behind']
}
