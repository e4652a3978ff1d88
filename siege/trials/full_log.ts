import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LabFailure } from '../../lab/failure.ts'
import { mountSmallDisk } from '../../lab/small_disk.ts'
import { type Call, Caller } from '../http.ts'
import { judge } from '../verdict.ts'
import type { World } from '../world/world.ts'
import type { Trial } from './trial.ts'
import { type Watched, watched, withoutOrphan } from './watched.ts'

/** Every request is a line of the log. */
const TALKATIVE = { LOG_LEVEL: 'info' }
const WATCHED_MS = 2_000
const LINES = 1_000
const CALL: Call = { path: '/health' }

/** The log goes to a device that is always full, from the first line on. */
export const fullLogDevice: Trial = {
  name: 'full-log-device',
  does: 'starts the service with its log on /dev/full',
  async run(world) {
    try {
      await world.service.start({ logFile: '/dev/full', env: TALKATIVE })
    } catch (error) {
      if (!(error instanceof LabFailure)) throw error
      const problems = [error.message, ...(await withoutOrphan(world))]
      return judge({ ...NEVER_UP, attack: 'full-log-device', problems })
    }
    return watched(world, 'full-log-device', () => live(world))
  },
}

/** The disk below the log becomes full while the service runs. */
export const fullLogDisk: Trial = {
  name: 'full-log-disk',
  does: 'fills the disk below the log of a service that runs (needs root, on Linux)',
  reasonAgainst: () =>
    process.platform === 'linux' && process.getuid?.() === 0
      ? undefined
      : 'a small disk can only be mounted by root, on Linux',
  async run(world) {
    const path = join(world.work, 'log-disk')
    await mkdir(path)
    const disk = await mountSmallDisk(path)
    try {
      await world.service.start({ logFile: join(path, 'service.log'), env: TALKATIVE })
      return await watched(world, 'full-log-disk', async () => {
        await disk?.fill(0)
        return live(world)
      })
    } finally {
      await disk?.unmount()
    }
  },
}

const NEVER_UP = {
  deeds: [],
  stood: [],
  rss_max_mb: 0,
  kept_mb_more: undefined,
  files_more: 0,
  answers: {},
  allowed: [],
  errors: {},
  recovered_ms: 0,
  hasFallen: true,
}

async function live({ service, victim }: World): Promise<Watched> {
  await victim.start(service)
  const caller = new Caller(service.url)
  for (let line = 0; line < LINES && service.isUp; line += 100)
    await Promise.all(Array.from({ length: 100 }, () => caller.call(CALL)))
  await sleep(WATCHED_MS)
  caller.close()
  return {}
}
