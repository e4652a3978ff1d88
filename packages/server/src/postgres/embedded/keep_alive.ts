import type { Place } from './postmaster.js'
import { isAlive } from './postmaster_file.js'
import { boundLog } from './server_log.js'
import { shortPathTo } from './short_path.js'

const LOOK_MS = 1000
const RETRY_MS = 5000
const UPKEEP_MS = 3_600_000

/**
 * Restarts the server if it dies under its clients, for example when the system runs out of memory and kills it:
 *
 *   watching ──server gone──▶ reviving ──▶ watching, or, if that failed, waiting ──▶ reviving
 *      └──────────stop───────────┴──────────────────────────┴──▶ stopped
 *
 * All clients do this at once; the lock lets the first one start it, and the others find it running.
 */
export function keepAlive(
  place: Place,
  firstPid: number,
  revive: () => Promise<number>,
): { stop(): Promise<void> } {
  let pid = firstPid
  let stopped = false
  let timer: NodeJS.Timeout
  let reviving: Promise<void> = Promise.resolve()
  let upkeepAt = performance.now() + UPKEEP_MS

  const look = async () => {
    let wait = LOOK_MS
    try {
      if (!isAlive(pid)) {
        place.say('PostgreSQL has ended unexpectedly; restarting it')
        pid = await revive()
      }
      if (performance.now() > upkeepAt) {
        upkeepAt += UPKEEP_MS
        await boundLog(place.directory.log)
        // A cleaner of /tmp may have removed the link to the socket.
        await shortPathTo(place.directory.path)
      }
    } catch (error) {
      place.say(error instanceof Error ? error.message : String(error))
      wait = RETRY_MS
    }
    if (!stopped) schedule(wait)
  }
  const schedule = (wait: number) => {
    timer = setTimeout(() => {
      reviving = look()
    }, wait)
    timer.unref()
  }
  schedule(LOOK_MS)
  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await reviving
    },
  }
}
