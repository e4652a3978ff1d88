import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Target } from '../attackers/ground.ts'
import { Victim } from '../victim/victim.ts'
import { Service, STOP_MS_MAX } from './service.ts'
import { makeTenants, type VictimTenant } from './tenants.ts'

const SHORT_STOCK = { long_session_entries: 60_000, big_session_megabytes: 20, sessions: 1_000 }
const FULL_STOCK = { long_session_entries: 300_000, big_session_megabytes: 20, sessions: 10_000 }

/** A service under siege, the tenant in it, and the attackers. */
export interface World {
  service: Service
  tenant: VictimTenant
  victim: Victim
  target: Target
  work: string
  /** Ends all of it; what was logged stays when it may be of use. */
  end(keepLogs: boolean): Promise<void>
}

export async function startWorld(options: { isShort: boolean; bin: string | undefined }): Promise<World> {
  const work = await mkdtemp(join(tmpdir(), 'annals-siege-'))
  // PostgreSQL runs as another user where this one is root.
  await chmod(work, 0o755)
  const admin_token = randomBytes(24).toString('hex')
  const env = { ANNALS_ADMIN_TOKEN: admin_token, ANNALS_API_KEY: randomBytes(24).toString('hex') }
  const service = new Service({ work, bin: options.bin, env })
  const end = async (keepLogs: boolean) => {
    await service.stop(STOP_MS_MAX * 2)
    const orphan = await service.postgresPid()
    if (orphan !== undefined) await service.endPostgres(orphan)
    if (!keepLogs) await rm(work, { recursive: true, force: true })
  }
  try {
    await service.start()
    const { victim, target } = await makeTenants(
      service.url,
      admin_token,
      options.isShort ? SHORT_STOCK : FULL_STOCK,
    )
    return { service, tenant: victim, victim: new Victim(victim), target, work, end }
  } catch (error) {
    await end(true)
    throw error
  }
}
